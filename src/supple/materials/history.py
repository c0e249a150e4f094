"""Internal variables of materials, such as plastic strains: parameters that steps update per element."""

from __future__ import annotations

from typing import Any

from supple.materials.parameters import Parameter, table_of


def evolving(kind: Any) -> list[Parameter]:
    """Return the internal variables among the stored parameters of a material class."""
    return [p for p in kind.stored if p.evolves]


def by_element(material: Any, count: int) -> Any:
    """Return a material whose internal variables have one entry for each of `count` elements."""
    tables = {}
    for p in evolving(type(material)):
        table = table_of(getattr(material, p.name), count)
        tables[p.name] = table[:, 0] if p.kind == "scalar" else table
    return material._replace(**tables) if tables else material
