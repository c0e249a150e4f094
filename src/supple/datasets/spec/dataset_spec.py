"""Specs of data sets, read from TOML or a dictionary, and the hashes that identify spec, scene and design."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from supple.datasets.errors import SpecError
from supple.datasets.read.quantities import ALL_QUANTITIES
from supple.datasets.spec.key_path import KeyPath
from supple.datasets.spec.parametric_scene import Source
from supple.datasets.spec.spec_tables import DESCRIPTIVE_KEYS, SpecTable, VaryTable
from supple.scene.error_collector import Mistakes, describe_in
from supple.scene.errors import SceneError
from supple.scene.files.file_paths import resolve_path
from supple.scene.files.loader import read_toml
from supple.support.arguments import check_path, format_value, suggest_name

Function = Callable[[int, np.random.Generator], Any]
NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
"""Valid names of quantities, which become folder names."""

CODE_PERMISSION_MESSAGE = (
    "this spec is a program: it imports and runs {name!r}. If you trust it, allow this with "
    "--allow-code of `supple dataset run`, or allow_code=True of supple.dataset(); a Python "
    "function itself needs no permission."
)
"""Message for a spec that names Python code without permission to run it."""


@dataclass(frozen=True, eq=False)
class Spec:
    """Validated spec of a data set.

    Attributes:
        table: Content of the spec.
        source: Scene of the data set.
        sizes: Number of components of each varied quantity.
        path: File of the spec.
        folder: Folder that paths in the spec are relative to.
        function: Design function passed by the caller.
    """

    table: SpecTable
    source: Source
    sizes: dict[str, int]
    path: Path
    folder: Path
    function: Function | None = field(default=None)

    @property
    def title(self) -> str:
        return self.table.title or self.source.file.title

    @property
    def name(self) -> str:
        """Default name of the store."""
        return self.path.stem


def load_spec(spec: Any, function: Function | None = None, allow_code: bool = False) -> Spec:
    """Read and validate a spec from a TOML file or dictionary.

    Args:
        spec: Path, dictionary (paths relative to the working folder), or a spec that is returned unchanged.
        function: Design function passed by the caller.
        allow_code: Permit a design that names Python to import, `function = "module:name"`.

    Raises:
        SpecError: The spec is invalid; the message lists all mistakes.
    """
    if isinstance(spec, Spec):
        return spec
    if isinstance(spec, Mapping):
        path, raw = Path("dataset"), dict(spec)
        folder = Path()
    else:
        path = check_path(spec, "the path of a spec")
        raw, folder = read_toml(path, "spec", SpecError), path.parent
    if callable(raw.get("function")):
        function, raw = raw.pop("function"), raw
    mistakes = Mistakes(path)
    table = _validate_table(raw, mistakes)
    source = _load_source(raw, folder, mistakes)
    if table is not None and source is not None:
        sizes = _check_quantities(table, source, folder, function, mistakes)
        if table.function is not None and not allow_code:
            mistakes.add("function", CODE_PERMISSION_MESSAGE.format(name=table.function))
    _raise_mistakes(mistakes)
    assert table is not None
    assert source is not None
    return Spec(table, source, sizes, path, folder, function)


def _raise_mistakes(mistakes: Mistakes) -> None:
    if mistakes.lines:
        raise SpecError(mistakes.lines)


def _validate_table(raw: dict[str, Any], mistakes: Mistakes) -> SpecTable | None:
    try:
        return SpecTable.model_validate(raw)
    except ValidationError as error:
        mistakes.add_invalid(error, describe_in(SpecTable))
        return None


def _load_source(raw: dict[str, Any], folder: Path, mistakes: Mistakes) -> Source | None:
    """Load the scene even if other fields are invalid, to report all mistakes together."""
    named = raw.get("scene")
    if not isinstance(named, str | os.PathLike):
        return None
    path = resolve_path(folder, str(named))
    try:
        return Source.load(path)
    except SceneError as error:
        mistakes.lines += [f"{mistakes.path}: scene: {line}" for line in str(error).splitlines()]
    return None


def _check_quantities(
    table: SpecTable, source: Source, folder: Path, function: Function | None, mistakes: Mistakes
) -> dict[str, int]:
    """Validate all quantities and return their sizes."""
    sizes: dict[str, int] = {}
    for number, vary in enumerate(table.vary):
        at, label = f"vary[{number}]", vary.label
        if label in sizes:
            mistakes.add(at, f"there are two quantities called {label!r}; give one of them another name.")
        elif not NAME_PATTERN.fullmatch(label.replace("[", "_").replace("]", "")):
            mistakes.add(
                f"{at}.name", f"{label!r} cannot be the name of a folder; use letters, digits, _, - and dots."
            )
        key_paths = mistakes.attempt(f"{at}.path", lambda v=vary: source.vary(v.label, v.paths))  # type: ignore[misc]
        if key_paths is not None:
            sizes[label] = key_paths[0].size
            _check_values(vary, key_paths, table, at, mistakes)
    _check_design(table, folder, function, mistakes)
    for name in table.store.quantities:
        if name not in ALL_QUANTITIES:
            mistakes.add(
                "store.quantities", f"there is no quantity {name!r}; {suggest_name(name, ALL_QUANTITIES)}"
            )
    if not mistakes.lines:
        _check_bounds(table, source, mistakes)
    return sizes


def _check_values(
    vary: VaryTable, key_paths: list[KeyPath], table: SpecTable, at: str, mistakes: Mistakes
) -> None:
    size = key_paths[0].size
    if any(key_path.size != size for key_path in key_paths):
        mistakes.add(
            f"{at}.path", f"its paths need different numbers of values: {[p.size for p in key_paths]}."
        )
    given = [*(vary.range or ()), *(vary.values or ())]
    wrong = next((v for v in given if (len(v) if isinstance(v, list) else 1) != size), None)
    if wrong is not None:
        which = "one number" if size == 1 else f"{size} numbers, or name one of them as {vary.paths[0]}.x"
        if size > 3:
            which = f"{size} numbers, as from design = 'table' or 'function'"
        key = "range" if vary.range is not None else "values"
        mistakes.add(f"{at}.{key}", f"{vary.paths[0]!r} takes {which}; got {format_value(wrong)}.")
    is_drawn = table.design not in ("table", "function")
    if is_drawn and not given:
        mistakes.add(at, f"needs a range or values for design = {table.design!r}.")
    if not is_drawn and given:
        mistakes.add(at, f"has its values from the {table.design}; remove its range or values.")
    if table.design == "grid" and vary.range is not None and vary.steps is None:
        mistakes.add(f"{at}.steps", "is missing: a grid needs the number of values in the range.")
    if table.design != "grid" and vary.steps is not None:
        mistakes.add(f"{at}.steps", f"is only for design = 'grid', but design = {table.design!r}; remove it.")


def _check_design(table: SpecTable, folder: Path, function: Function | None, mistakes: Mistakes) -> None:
    own = table.design in ("grid", "table")
    if own and table.count is not None:
        mistakes.add("count", f"a {table.design} has its own number of samples; remove it.")
    if not own and table.count is None:
        mistakes.add("count", "is missing. Set the number of samples, e.g. 1000.")
    for key in ("table", "function"):
        given = getattr(table, key) is not None or (key == "function" and function is not None)
        if given and table.design != key:
            mistakes.add(key, f"is only for design = {key!r}, but design = {table.design!r}; remove it.")
        if not given and table.design == key:
            mistakes.add(key, f"is missing, and design = {key!r} needs it.")
    if table.design == "table" and table.table is not None and not resolve_path(folder, table.table).exists():
        mistakes.add("table", f"there is no file {resolve_path(folder, table.table)}.")


def _check_bounds(table: SpecTable, source: Source, mistakes: Mistakes) -> None:
    """Report range ends and listed values that the scene does not accept."""
    for number, vary in enumerate(table.vary):
        key = "range" if vary.range is not None else "values"
        for value in vary.range or vary.values or ():
            try:
                source.check({vary.label: value})
            except (SceneError, ValueError) as error:
                sentence = str(error).splitlines()[0].partition(": ")[2] or str(error)
                mistakes.add(
                    f"vary[{number}].{key}", f"{format_value(value)} is not a valid value: {sentence}"
                )


def origin_of(spec: Mapping[str, Any], source: Source) -> str:
    """Hash of everything that determines sample values, excluding the sample count and the design.

    Args:
        spec: Spec as JSON values.
        source: Scene of the data set.
    """
    described = {key: value for key, value in spec.items() if key not in DESCRIPTIVE_KEYS}
    described |= {"count": None, "files": source.files}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    digest.update(source.text.encode())
    model = source.model
    for values in (model.rest, model.cells.astype(np.int64)):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def identity_of(origin: str, count: int | None, columns: Mapping[str, np.ndarray]) -> str:
    """Hash of origin and design values (count, size)."""
    digest = hashlib.sha256(json.dumps([origin, count]).encode())
    for values in columns.values():
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
