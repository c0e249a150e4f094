"""Scene paths, the addresses of numbers in a scene file.

Examples are `gravity.y`, `solid.bar.material.young` and `pin.end.motion.rotate.angle`.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from supple.scene.schema.base import Choice
from supple.scene.schema.materials import MeasuredTable
from supple.support.arguments import closest, shown

Key = str | int
AXES = ("x", "y", "z")

VARYING = (
    "gravity",
    "solid",
    "cloth",
    "pin",
    "force",
    "body_force",
    "traction",
    "pressure",
    "cavity",
    "cable",
    "wind",
    "attach",
    "obstacle",
    "spring",
    "contact",
)
"""Scene tables that may vary between samples; all others configure solving and display."""


@dataclass(frozen=True)
class Place:
    """Number, or list of numbers, in a scene file.

    Attributes:
        text: Scene path as given by the user.
        keys: Keys from the root of the scene file to the value.
        now: Value in the scene file.
        around: Enclosing list, if the value is one of its numbers.
    """

    text: str
    keys: tuple[Key, ...]
    now: Any
    around: list[Any] | None = None

    @property
    def size(self) -> int:
        """Number of components."""
        return len(self.now) if isinstance(self.now, list) else 1

    @property
    def rebuilds(self) -> bool:
        """True if another value requires a new model, not only other pins, forces or materials."""
        table, *_, last = self.keys if len(self.keys) > 1 else (*self.keys, "")
        inner = {str(key) for key in self.keys[2:]}
        if table in ("gravity", "force", "body_force", "traction"):
            return table != "gravity" and str(self.keys[2]) not in ("force", "traction")
        if table in ("solid", "cloth"):
            of_fabric = table == "cloth" and "hylc" in inner
            return last != "density" and (str(self.keys[2]) not in ("material", "membrane") or of_fabric)
        return not (table == "pin" and str(self.keys[2]) == "motion")

    def put(self, tables: dict[str, Any], value: Any) -> dict[str, Any]:
        """Copy of the scene tables with a value replaced; unaffected tables are shared."""
        return self._put(tables, self.keys, value)

    def _put(self, here: Any, keys: tuple[Key, ...], value: Any) -> Any:
        if not keys:
            return value
        key, *rest = keys
        if isinstance(key, int) and not isinstance(here, list):
            here = self.around
        new: Any = copy(here)
        below = here.get(key) if isinstance(here, dict) else here[key]
        if below is None and rest and not isinstance(rest[0], int):
            below = {}
        new[key] = self._put(below, tuple(rest), value)
        return new


def find(table: BaseModel, text: str) -> Place:
    """Resolve a scene path in validated scene tables.

    Raises:
        ValueError: The path does not lead to a number; the message names the closest match.
    """
    parts = re.findall(r"[^.\[\]]+", text)
    if not parts or parts[0] not in VARYING:
        first = parts[0] if parts else ""
        raise ValueError(f"the scene has nothing to vary at {text!r}; {closest(first, VARYING)}")
    if not (found := getattr(table, parts[0])):
        missing = f"[{parts[0]}]" if found is None else f"[[{parts[0]}]]"
        raise ValueError(
            f"the scene has no {missing}, so that {text!r} has no value to replace; add {missing} to the "
            "scene."
        )
    keys: list[Key] = []
    here: Any = table
    around: list[Any] | None = None
    for k, part in enumerate(parts):
        way = _step(here, part, parts[0] if k == 1 else "")
        if way is None:
            raise ValueError(_nothing(text, parts[:k], part, here, parts[0] if k == 1 else ""))
        for key in way:
            around = here if isinstance(here, list) and isinstance(key, int) else None
            here = _given(here)[str(key)] if isinstance(here, BaseModel) else here[key]
            keys.append(key)
    return Place(text, tuple(keys), _numbers(here, text), around)


def _numbers(found: Any, text: str) -> Any:
    """Check that a scene value consists of floating-point numbers."""
    several = found if isinstance(found, list) else [found]
    if several and all(isinstance(v, float) for v in several):
        return found
    if several and all(isinstance(v, int) and not isinstance(v, bool) for v in several):
        raise ValueError(f"{text!r} is a count, which stays: all samples of a set have the same mesh")
    if isinstance(found, BaseModel):
        inside = ", ".join(_known(found))
        raise ValueError(f"{text!r} is a table of the scene; name a number in it, one of {inside}")
    what = "not given in the scene, so that it has no value to replace" if found is None else shown(found)
    raise ValueError(f"only numbers can vary, and {text!r} is {what}")


def _given(table: BaseModel) -> dict[str, Any]:
    """Values set in a table by name; a preset material lists all of its parameters."""
    found = {name: getattr(table, name) for name in type(table).model_fields}
    if isinstance(table, MeasuredTable):
        found |= table.given()
    return {name: value for name, value in found.items() if value is not None}


def _step(here: Any, part: str, entries: str) -> tuple[Key, ...] | None:
    """Keys for one component of a scene path; None for unknown names.

    Args:
        here: Table or list to search.
        part: Component of the path.
        entries: Name of the list, for default names of its entries.
    """
    if isinstance(here, BaseModel):
        if part in _given(here):
            return (part,)
        if isinstance(here, Choice):
            kind, inner = here.chosen
            below = _step(inner, part, "")
            return None if below is None else (kind, *below)
        return None
    if not isinstance(here, list):
        return None
    if part.isdigit():
        return (int(part),) if int(part) < len(here) else None
    if part in AXES and len(here) == 3 and not isinstance(here[0], BaseModel):
        return (AXES.index(part),)
    for number, entry in enumerate(here):
        named = getattr(entry, "name", None) if isinstance(entry, BaseModel) else None
        if part == named or (entries and part == f"{entries}{number}"):
            return (number,)
    having = [(n, way) for n, entry in enumerate(here) if (way := _step(entry, part, "")) is not None]
    return (having[0][0], *having[0][1]) if len(having) == 1 else None


def _known(here: Any, entries: str = "") -> list[str]:
    """Names available in a table or list."""
    if isinstance(here, Choice):
        kind, inner = here.chosen
        return [kind, *_known(inner)]
    if isinstance(here, BaseModel):
        return list(_given(here))
    if isinstance(here, list):
        if here and isinstance(here[0], BaseModel):
            return [getattr(entry, "name", None) or f"{entries}{n}" for n, entry in enumerate(here)]
        return list(AXES) if len(here) == 3 else [f"{n}" for n in range(len(here))]
    return []


def _nothing(text: str, before: list[str], part: str, here: Any, entries: str) -> str:
    where = ".".join(before) or "the scene"
    known = _known(here, entries)
    hint = closest(part, known) if known else "there is nothing inside it."
    return f"the scene has no {text!r}: {where} has no {part!r}; {hint}"
