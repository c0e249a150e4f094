"""Mesh fields that vary between samples: `solid.NAME.field.FIELD`, one number per cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.checks import closest
from supple.datasets.places import Place
from supple.scene.schema import SceneTable

if TYPE_CHECKING:
    from supple.datasets.source import Source, Values

FIELD = "field"


def field_place(source: Source, text: str) -> Place | None:
    """Parse the scene path of a mesh field; None for other paths.

    Raises:
        ValueError: The scene has no such body or field; the message names the closest match.
    """
    match = re.fullmatch(r"(solid|cloth)[.\[]([^.\[\]]+)\]?\.field\.(.+)", text)
    if match is None:
        return None
    kind, name, field = match.groups()
    entries: Sequence[Any] = getattr(source.table, kind)
    names = [entry.name or f"{kind}{number}" for number, entry in enumerate(entries)]
    number = int(name) if name.isdigit() and int(name) < len(names) else None
    if number is None and name not in names:
        raise ValueError(f"the scene has no {kind} {name!r}; {closest(name, names)}")
    number = names.index(name) if number is None else number
    mesh = source.file.scene.bodies[number + (len(source.table.solid) if kind == "cloth" else 0)].mesh
    return Place(text, (kind, number, FIELD, field), mesh.field(field).ravel().tolist())


def is_field(place: Place) -> bool:
    return len(place.keys) == 4 and place.keys[2] == FIELD


def meshes_with(source: Source, values: Values, table: SceneTable, folder: Path) -> dict[Any, Any]:
    """Meshes by their tables, with varied fields replaced by sampled values.

    Bodies that share a mesh share its fields.
    """
    known = source.meshes
    found = dict(known)
    for place, value in _fields(source, values):
        mesh = getattr(table, str(place.keys[0]))[place.keys[1]].mesh
        key, name = mesh.model_dump_json(), str(place.keys[3])
        if key not in found:
            found[key] = known[key] = mesh.make(folder)
        shape = found[key].field(name).shape
        found[key] = found[key].with_data({name: np.reshape(value, shape)})
    return found


def _fields(source: Source, values: Values) -> Iterator[tuple[Place, Any]]:
    for label, value in values.items():
        for place in source.places[label]:
            if is_field(place):
                yield place, value
