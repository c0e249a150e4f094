"""Scene files: TOML read and checked field by field."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from supple.model import Model
from supple.scene.bodies import Body, VertexSet
from supple.scene.build import check_scene
from supple.scene.checks import closest, listed, vector
from supple.scene.errors import SceneFileError
from supple.scene.mistakes import Location, Mistakes, describe_in
from supple.scene.motions import Compose
from supple.scene.scene import Scene
from supple.scene.schema import (
    Attach,
    Force,
    Pin,
    SceneTable,
    Solid,
    Solver,
    Start,
    Stop,
    Target,
    Traction,
    Where,
)
from supple.solvers import SOLVERS


@dataclass(frozen=True, eq=False)
class SceneFile:
    """What a scene file says: the scene, and how to solve it.

    solver: `method` and a dict of `options`. stop: `tolerance`, `max_iterations` and `time_budget` [s], None
    where the file does not say. start: where free vertices start, None for the rest shape.
    """

    path: Path
    title: str
    scene: Scene
    solver: Solver
    stop: Stop
    start: Start | None

    def start_positions(self, model: Model) -> np.ndarray | None:
        """The initial guess (n, 3) [m] that the file asks for, or None for the rest shape."""
        return None if self.start is None else self.start.positions(model)


def load_scene(path: str | os.PathLike[str]) -> SceneFile:
    """Read a scene file. All mistakes in it are reported at once, in one `SceneFileError`."""
    path = Path(path)
    mistakes = Mistakes(path)
    raw = _read(path)
    table, kept = _validated(raw, mistakes)
    scene = _Reader(table, kept, _solid_names(raw), path.parent, mistakes).read()
    if "solid" not in raw:
        mistakes.add("solid", "is missing. A scene needs at least one [[solid]] with a mesh and a material.")
    _check_solver(table.solver, mistakes)
    mistakes.raise_any()
    mistakes.attempt("pin", lambda: check_scene(scene))
    mistakes.raise_any()
    return SceneFile(path, table.title or path.stem, scene, table.solver, table.stop, table.start)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SceneFileError(
            [f"{path}: there is no such scene file (looked for {path.absolute()})."]
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SceneFileError([f"{path}: cannot be read as text: {error}."]) from error
    except tomllib.TOMLDecodeError as error:
        raise SceneFileError([f"{path}: this is not TOML: {error}."]) from error


def _validated(raw: dict[str, Any], mistakes: Mistakes) -> tuple[SceneTable, dict[str, list[int]]]:
    """What is valid in a file, and the numbers that its [[entries]] have there."""
    kept = {key: list(range(len(value))) for key, value in raw.items() if isinstance(value, list)}
    try:
        return SceneTable.model_validate(raw), kept
    except ValidationError as error:
        mistakes.add_invalid(error, describe_in(SceneTable))
        wrong = {_entry(details["loc"]) for details in error.errors()}
    valid: dict[str, Any] = {key: value for key, value in raw.items() if (key,) not in wrong}
    for key, numbers in kept.items():
        if key in valid:
            kept[key] = [i for i in numbers if (key, i) not in wrong]
            valid[key] = [raw[key][i] for i in kept[key]]
    return SceneTable.model_validate(valid), kept


def _entry(location: Location) -> Location:
    """The smallest part of a file that can be left out: one of the [[entries]], or a top-level key."""
    is_entry = len(location) > 2 and isinstance(location[1], int)
    return location[:2] if is_entry else location[:1]


def _check_solver(solver: Solver, mistakes: Mistakes) -> None:
    """Refuse unknown methods and options; the solver's own class checks the values."""
    if solver.method not in SOLVERS:
        mistakes.add(
            "solver.method", f"there is no solver {solver.method!r}; {closest(solver.method, SOLVERS)}"
        )
        return
    kind: Any = SOLVERS[solver.method]
    known = [field.name for field in fields(kind)]
    for name in sorted(solver.options.keys() - known):
        mistakes.add(f"solver.{name}", f"unknown key; {closest(name, known)}")
    try:
        TypeAdapter(kind).validate_python(solver.options)
    except ValidationError as error:
        mistakes.add_invalid(error, lambda location: (known, ""), at=("solver",))


def _solid_names(raw: dict[str, Any]) -> list[str]:
    """The names of all solids of a file, valid or not."""
    solids = raw.get("solid", [])
    return [
        str(solid.get("name") or f"solid{i}") if isinstance(solid, dict) else f"solid{i}"
        for i, solid in enumerate(solids if isinstance(solids, list) else [solids])
    ]


class _Reader:
    """Fills a scene from valid tables; what is impossible becomes a mistake of its field.

    A solid that is wrong is None in `bodies`, and what refers to it is passed over in silence.
    """

    def __init__(
        self,
        table: SceneTable,
        kept: dict[str, list[int]],
        names: list[str],
        folder: Path,
        mistakes: Mistakes,
    ) -> None:
        self.table, self.kept, self.folder, self.mistakes = table, kept, folder, mistakes
        self.bodies: dict[str, Body | None] = dict.fromkeys(names)
        self.scene = Scene(vector(table.gravity, "gravity"), table.quasistatic, table.dt, table.frames)

    def read(self) -> Scene:
        for number, field, entry in self._entries("solid"):
            self._solid(number, field, entry)
        for _, field, entry in self._entries("pin"):
            self._pin(field, entry)
        for _, field, entry in self._entries("force"):
            self._load(field, entry, self.scene.add_force, entry.force)
        for _, field, entry in self._entries("traction"):
            self._load(field, entry, self.scene.add_traction, entry.traction)
        for _, field, entry in self._entries("attach"):
            self._attach(field, entry)
        return self.scene

    def _entries(self, key: str) -> Iterator[tuple[int, str, Any]]:
        for number, entry in zip(self.kept.get(key, []), getattr(self.table, key), strict=True):
            yield number, f"{key}[{number}]", entry

    def _solid(self, number: int, field: str, solid: Solid) -> None:
        name = solid.name or f"solid{number}"
        mesh = self.mistakes.attempt(f"{field}.mesh", lambda: solid.mesh.make(self.folder))
        material = self.mistakes.attempt(f"{field}.material", solid.material.make)
        if mesh is not None and material is not None:
            self.bodies[name] = self.mistakes.attempt(
                f"{field}.name", lambda: self.scene.add_solid(mesh, material, solid.density, name)
            )

    def _pin(self, field: str, pin: Pin) -> None:
        vertices = self._vertices(field, pin.solid, pin.where)
        attempts = [
            self.mistakes.attempt(f"{field}.motion[{i}]", motion.make) for i, motion in enumerate(pin.motion)
        ]
        motions = tuple(motion for motion in attempts if motion is not None)
        if vertices is not None and len(motions) == len(pin.motion):
            motion = Compose(motions) if motions else None
            self.mistakes.attempt(field, lambda: self.scene.pin(vertices, motion))

    def _load(
        self, field: str, entry: Force | Traction, add: Callable[..., None], value: list[float]
    ) -> None:
        vertices = self._vertices(field, entry.solid, entry.where)
        if vertices is not None:
            self.mistakes.attempt(field, lambda: add(vertices, value))

    def _attach(self, field: str, entry: Attach) -> None:
        a = self._vertices(field, entry.solid, entry.where)
        b: Any = None
        if entry.to is not None:
            b = entry.to.points or self._target(f"{field}.to", entry.to)
        if a is None or (b is None and entry.to is not None):
            return
        options = entry.model_dump(include={"stiffness", "normal", "tangent_stiffness", "keep_offset"})
        self.mistakes.attempt(field, lambda: self.scene.attach(a, b, **options))

    def _target(self, field: str, to: Target) -> VertexSet | Body | None:
        if to.where is None:
            return self._body(field, to.solid)
        return self._vertices(field, to.solid, to.where)

    def _vertices(self, field: str, solid: str | None, where: Where | None) -> VertexSet | None:
        body = self._body(field, solid)
        if body is None:
            return None
        if where is None:
            return body.all
        return self.mistakes.attempt(f"{field}.where", lambda: body.where(where.selection()))

    def _body(self, field: str, name: str | None) -> Body | None:
        if name is None and len(self.bodies) == 1:
            (name,) = self.bodies
        if name is None:
            self.mistakes.add(f"{field}.solid", f"is missing. Name one of {listed(self.bodies)}.")
            return None
        if name not in self.bodies:
            self.mistakes.add(
                f"{field}.solid",
                f"there is no solid {name!r}; the scene has {listed(self.bodies) or 'none'}.",
            )
        return self.bodies.get(name)
