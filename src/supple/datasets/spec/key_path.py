"""Scene paths, the addresses of numbers in a scene file.

Examples are `gravity.y`, `solid.bar.material.young` and `pin.end.motion.rotate.angle`.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from supple.scene.tables.materials import PresetTable
from supple.scene.tables.table import Choice
from supple.support.arguments import format_value, suggest_name

Key = str | int
AXES = ("x", "y", "z")

VARIABLE_TABLES = (
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
class KeyPath:
    """Number, or list of numbers, in a scene file.

    Attributes:
        text: Scene path as given by the user.
        keys: Keys from the root of the scene file to the value.
        value: Value in the scene file.
        enclosing_list: Enclosing list, if the value is one of its numbers.
    """

    text: str
    keys: tuple[Key, ...]
    value: Any
    enclosing_list: list[Any] | None = None

    @property
    def size(self) -> int:
        """Number of components."""
        return len(self.value) if isinstance(self.value, list) else 1

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

    def with_value(self, tables: dict[str, Any], value: Any) -> dict[str, Any]:
        """Copy of the scene tables with a value replaced; unaffected tables are shared."""
        return self._replace(tables, self.keys, value)

    def _replace(self, node: Any, keys: tuple[Key, ...], value: Any) -> Any:
        if not keys:
            return value
        key, *rest = keys
        if isinstance(key, int) and not isinstance(node, list):
            node = self.enclosing_list
        new: Any = copy(node)
        below = node.get(key) if isinstance(node, dict) else node[key]
        if below is None and rest and not isinstance(rest[0], int):
            below = {}
        new[key] = self._replace(below, tuple(rest), value)
        return new


def resolve_key_path(table: BaseModel, text: str) -> KeyPath:
    """Resolve a scene path in validated scene tables.

    Raises:
        ValueError: The path does not lead to a number; the message names the closest match.
    """
    parts = re.findall(r"[^.\[\]]+", text)
    if not parts or parts[0] not in VARIABLE_TABLES:
        first = parts[0] if parts else ""
        raise ValueError(f"the scene has nothing to vary at {text!r}; {suggest_name(first, VARIABLE_TABLES)}")
    if not (entries := getattr(table, parts[0])):
        missing = f"[{parts[0]}]" if entries is None else f"[[{parts[0]}]]"
        raise ValueError(
            f"the scene has no {missing}, so {text!r} has no value to replace; add {missing} to the scene."
        )
    keys: list[Key] = []
    node: Any = table
    enclosing_list: list[Any] | None = None
    for k, part in enumerate(parts):
        child = child_keys(node, part, parts[0] if k == 1 else "")
        if child is None:
            raise ValueError(_missing_message(text, parts[:k], part, node, parts[0] if k == 1 else ""))
        for key in child:
            enclosing_list = node if isinstance(node, list) and isinstance(key, int) else None
            node = values_in(node)[str(key)] if isinstance(node, BaseModel) else node[key]
            keys.append(key)
    return KeyPath(text, tuple(keys), check_numeric(node, text), enclosing_list)


def check_numeric(value: Any, text: str) -> Any:
    """Check that a scene value consists of floating-point numbers."""
    components = value if isinstance(value, list) else [value]
    if components and all(isinstance(v, float) for v in components):
        return value
    if components and all(isinstance(v, int) and not isinstance(v, bool) for v in components):
        raise ValueError(f"{text!r} is a count and cannot vary, because all samples share one mesh")
    if isinstance(value, BaseModel):
        inside = ", ".join(names_in(value))
        raise ValueError(f"{text!r} is a table of the scene; name a number in it, one of {inside}")
    what = "not set in the scene, so it has no value to replace" if value is None else format_value(value)
    raise ValueError(f"only numbers can vary, and {text!r} is {what}")


def values_in(table: BaseModel) -> dict[str, Any]:
    """Values set in a table by name; a preset material lists all of its parameters."""
    values = {name: getattr(table, name) for name in type(table).model_fields}
    if isinstance(table, PresetTable):
        values |= table.given()
    return {name: value for name, value in values.items() if value is not None}


def child_keys(node: Any, part: str, entries: str) -> tuple[Key, ...] | None:
    """Keys for one component of a scene path; None for unknown names.

    Args:
        node: Table or list to search.
        part: Component of the path.
        entries: Name of the list, for default names of its entries.
    """
    if isinstance(node, BaseModel):
        if part in values_in(node):
            return (part,)
        if isinstance(node, Choice):
            kind, inner = node.chosen
            below = child_keys(inner, part, "")
            return None if below is None else (kind, *below)
        return None
    if not isinstance(node, list):
        return None
    if part.isdigit():
        return (int(part),) if int(part) < len(node) else None
    if part in AXES and len(node) == 3 and not isinstance(node[0], BaseModel):
        return (AXES.index(part),)
    for number, entry in enumerate(node):
        named = getattr(entry, "name", None) if isinstance(entry, BaseModel) else None
        if part == named or (entries and part == f"{entries}{number}"):
            return (number,)
    having = [
        (n, child) for n, entry in enumerate(node) if (child := child_keys(entry, part, "")) is not None
    ]
    return (having[0][0], *having[0][1]) if len(having) == 1 else None


def names_in(node: Any, entries: str = "") -> list[str]:
    """Names available in a table or list."""
    if isinstance(node, Choice):
        kind, inner = node.chosen
        return [kind, *names_in(inner)]
    if isinstance(node, BaseModel):
        return list(values_in(node))
    if isinstance(node, list):
        if node and isinstance(node[0], BaseModel):
            return [getattr(entry, "name", None) or f"{entries}{n}" for n, entry in enumerate(node)]
        return list(AXES) if len(node) == 3 else [f"{n}" for n in range(len(node))]
    return []


def _missing_message(text: str, before: list[str], part: str, node: Any, entries: str) -> str:
    where = ".".join(before) or "the scene"
    known = names_in(node, entries)
    hint = suggest_name(part, known) if known else "there is nothing inside it."
    return f"the scene has no {text!r}: {where} has no {part!r}; {hint}"
