"""Scene files in TOML, validated field by field; errors name the path."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from supple.model.model import Model
from supple.postprocess.evaluation import parse_quantities
from supple.scene.build import check_scene
from supple.scene.error_collector import Location, Mistakes, describe_in
from supple.scene.errors import SceneFileError
from supple.scene.files.from_tables import EntryNumbers, Reader
from supple.scene.files.scene_table import SceneTable, scene_table
from supple.scene.scene import Scene
from supple.scene.tables.initial import InitialState
from supple.scene.tables.output import Output, View
from supple.scene.tables.solver import Solver, StopCriteria
from supple.solvers import SOLVERS
from supple.solvers import Solver as Method
from supple.solvers.base import idle_options
from supple.solvers.options import option_names, part_with
from supple.support.arguments import check_path, format_value, suggest_name
from supple.support.input_files import InputFileError, read_text


def read_toml(path: Path, what: str, refused: Callable[[list[str]], Exception]) -> dict[str, Any]:
    """Read tables from a TOML file.

    Args:
        path: Path of the file.
        what: Name of the expected kind of file, for messages.
        refused: Makes the exception from a list of messages.
    """
    try:
        return tomllib.loads(read_text(path))
    except FileNotFoundError:
        raise refused([f"{path}: there is no such {what} (looked for {path.absolute()})."]) from None
    except InputFileError as error:
        raise refused([f"{path}: {error}."]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise refused([f"{path}: cannot be read as text: {error}."]) from error
    except RecursionError:
        raise refused([f"{path}: brackets are nested too deeply for a {what}."]) from None
    except tomllib.TOMLDecodeError as error:
        raise refused([f"{path}: not valid TOML: {error}."]) from error
    except ValueError:  # the number has more digits than Python converts
        raise refused([f"{path}: {_too_long_number(path)}."]) from None


def _too_long_number(path: Path) -> str:
    """Locate the line with an integer beyond Python's conversion limit."""
    most = sys.get_int_max_str_digits()
    number = re.compile(rf"(?:\d_?){{{most + 1},}}")
    lines = [k for k, line in enumerate(read_text(path).splitlines(), start=1) if number.search(line)]
    where = f"line {lines[0]} has" if lines else "there is"
    return f"{where} a whole number of more than {most:,} digits"


@dataclass(frozen=True, eq=False, repr=False)
class SceneFile:
    """Scene file content: scene, solver, display and output settings.

    Attributes:
        path: Path of the file.
        title: Title of the scene.
        scene: The scene.
        solver: Solver, with `method` and a dict of `options`.
        stop: Termination criteria `tolerance`, `max_iterations`, `time_limit` [s] and `position_tolerance`,
            None for those that the file omits.
        initial: Initial positions of free vertices, None for the rest shape.
        view: Display settings of pictures.
        folder: Folder that paths in the file are relative to.
        output: Quantities (`fields`) in frame files.
    """

    path: Path
    title: str
    scene: Scene
    solver: Solver
    stop: StopCriteria
    initial: InitialState | None
    view: View
    folder: Path
    output: Output = field(default_factory=Output)

    def __repr__(self) -> str:
        return f"<SceneFile {str(self.path)!r}: {self.solver.method}, {self.scene!r}>"

    def initial_positions(self, model: Model) -> np.ndarray | None:
        """Return initial positions (n, 3) [m], None for the rest shape.

        Args:
            model: Model of the scene.

        Returns:
            (n, 3) positions [m], or None.
        """
        return None if self.initial is None else self.initial.positions(model, self.folder)

    def initial_velocities(self, model: Model) -> np.ndarray | None:
        """Return initial velocities (n, 3) [m/s], None for rest.

        Args:
            model: Model of the scene.

        Returns:
            (n, 3) velocities [m/s], or None.
        """
        return None if self.initial is None else self.initial.velocities(model, self.folder)


def file_without_path(scene: Scene) -> SceneFile:
    """Wrap a scene made in Python as a scene file with default settings."""
    return SceneFile(Path(), "scene", scene, Solver(), StopCriteria(), None, View(), Path())


def load_scene(path: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> SceneFile:
    """Read a scene file; one `SceneFileError` reports all its errors at once.

    Args:
        path: Path of the file.
        folder: Folder that paths in the file are relative to. Default: the folder of the file; give it for a
            copy of a scene file.

    Returns:
        The scene with its solver, termination criteria and display settings.

    Raises:
        SceneFileError: The file cannot be read or is invalid.
    """
    path = check_path(path, "the path of a scene file")
    folder = path.parent if folder is None else check_path(folder, "a folder")
    mistakes = Mistakes(path)
    raw = read_toml(path, "scene file", SceneFileError)
    table, valid_numbers = _validate(raw, mistakes)
    scene = Reader(table, valid_numbers, _body_names(raw), folder, mistakes).read()
    if not raw.get("solid") and not raw.get("cloth"):
        mistakes.add(
            "solid",
            "is missing. A scene needs at least one [[solid]] or [[cloth]] with its mesh and material.",
        )
    _check_solver(table.solver, mistakes)
    mistakes.attempt("output.fields", lambda: parse_quantities(table.output.fields))
    mistakes.raise_any()
    _check_scene(scene, mistakes)
    mistakes.raise_any()
    title = table.title or path.stem
    return SceneFile(
        path, title, scene, table.solver, table.stop, table.initial, table.view, folder, table.output
    )


IN_TOML = {
    "quasistatic=False": "quasistatic = false",
    "gravity=(0, 0, 0)": "gravity = [0, 0, 0]",
    'contact="grid"': 'method = "grid"',
    "add_traction(..., pressure, following=True)": "a [[traction]] with following = true",
}
"""Python code in error messages, with its spelling in scene files."""


def _check_scene(scene: Scene, mistakes: Mistakes) -> None:
    try:
        check_scene(scene)
    except (ValueError, OSError) as error:
        sentence = str(error)
        for python, toml in IN_TOML.items():
            sentence = sentence.replace(python, toml)
        mistakes.add(getattr(error, "at", None) or "pin", sentence)


def _validate(raw: dict[str, Any], mistakes: Mistakes) -> tuple[SceneTable, EntryNumbers]:
    """Return valid tables, and original numbers of valid [[entries]]."""
    wrong: set[Location] = set()
    tables = scene_table()
    try:
        tables.model_validate(raw)
    except ValidationError as error:
        mistakes.add_invalid(error, describe_in(tables))
        wrong = {_entry(details["loc"]) for details in error.errors()}
    valid = {key: value for key, value in raw.items() if (key,) not in wrong}
    valid_numbers = {
        key: [i for i in range(len(entries)) if (key, i) not in wrong]
        for key, entries in valid.items()
        if isinstance(entries, list)
    }
    valid |= {key: [raw[key][i] for i in numbers] for key, numbers in valid_numbers.items()}
    return tables.model_validate(valid), valid_numbers


def _entry(location: Location) -> Location:
    """Return the smallest removable location: one of the [[entries]], or a top-level key."""
    is_entry = len(location) > 2 and isinstance(location[1], int)
    return location[:2] if is_entry else location[:1]


def _check_solver(solver: Solver, mistakes: Mistakes) -> None:
    """Report unknown methods and options; the class of the solver checks the values."""
    if solver.method not in SOLVERS:
        mistakes.add(
            "solver.method", f"there is no solver {solver.method!r}; {suggest_name(solver.method, SOLVERS)}"
        )
        return
    kind: Any = SOLVERS[solver.method]
    known = option_names(kind)
    before = len(mistakes.lines)
    for name in sorted(solver.options.keys() - known):
        mistakes.add(f"solver.{name}", _unknown(kind, name, solver.options[name]))
    _check_values(
        kind, {name: solver.options[name] for name in sorted(solver.options.keys() & known)}, mistakes
    )
    if len(mistakes.lines) == before:
        for name, sentence in idle_options(kind, solver.options).items():
            mistakes.add(f"solver.{name}", f"{sentence}. Remove one of them.")


def _check_values(kind: Any, options: dict[str, Any], mistakes: Mistakes) -> None:
    """Check options together, because some depend on others; after failure, check them individually."""
    try:
        kind(**options)
    except ValueError as error:
        before = len(mistakes.lines)
        for name, value in options.items():
            mistakes.attempt(f"solver.{name}", partial(kind, **{name: value}))
        if len(mistakes.lines) == before:
            mistakes.add("solver", str(error))


def _unknown(kind: type[Method], name: str, value: Any) -> str:
    """Describe an unknown option: its correct table or method, or the closest known name."""
    match = part_with(kind, name)
    owners = [owner for owner, other in SOLVERS.items() if name in option_names(other)]
    if match is None and owners:
        methods = " or ".join(f'method = "{owner}"' for owner in owners)
        return f"is not an option of {kind.name}, but of others: add {methods}, or remove it."
    if match is None:
        return f"unknown key; {suggest_name(name, option_names(kind))}"
    part, having = match
    example = f'{part} = {{ kind = "{having[0]}", {name} = {format_value(value)} }}'
    return f"is an option of the {part}: write {example}."


def _body_names(raw: dict[str, Any]) -> list[str]:
    """List names of all solids and cloth, including invalid ones."""
    return [name for kind in ("solid", "cloth") for name in _names(kind, raw.get(kind, []))]


def _names(kind: str, entries: Any) -> list[str]:
    return [
        str(entry.get("name", f"{kind}{i}")) if isinstance(entry, dict) else f"{kind}{i}"
        for i, entry in enumerate(entries if isinstance(entries, list) else [entries])
    ]
