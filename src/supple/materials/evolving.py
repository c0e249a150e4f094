"""Parameters of materials that steps change, as plastic strains: they have an entry for each element."""

from __future__ import annotations

from typing import Any

from supple.materials.parameters import Parameter, table_of


def evolving(kind: Any) -> list[Parameter]:
    """Those of the stored parameters of a material's class that steps change."""
    return [p for p in kind.stored if p.evolves]


def by_element(material: Any, count: int) -> Any:
    """A material with an entry for each of so many elements for every parameter that evolves."""
    tables = {}
    for p in evolving(type(material)):
        table = table_of(getattr(material, p.name), count)
        tables[p.name] = table[:, 0] if p.kind == "scalar" else table
    return material._replace(**tables) if tables else material
