"""Materials that differ from one copy of the state to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from supple.model import Conditions, Model


def numbered(model: Model) -> Model:
    """The model with the number of its element in place of every material parameter: laid out like that, rows
    tell which parameters they need (`Varied`)."""

    def of(term: Any) -> Any:
        if term.material is None:
            return term
        numbers = np.arange(len(term.vertices), dtype=float)
        return replace(term, material=type(term.material)._make([numbers] * len(term.material)))

    return replace(model, terms=tuple(of(term) for term in model.terms))


def with_materials(model: Model, materials: tuple) -> Model:
    """The model with other materials of its elastic terms."""
    left = iter(materials)

    def varied(term: Any) -> Any:
        return term if term.material is None else replace(term, material=next(left))

    return replace(model, terms=tuple(varied(term) for term in model.terms))


def are_varied(conditions: Sequence[Conditions]) -> bool:
    """Whether some have materials of their own."""
    return any(c.materials is not None for c in conditions)


def are_uniform(materials: Sequence[Any]) -> bool:
    """Whether each is the same in all elements."""
    return all(np.ndim(parameter) == 0 for material in materials for parameter in material)


def materials_of(model: Model) -> tuple:
    """One material for each elastic term."""
    return tuple(term.material for term in model.terms if term.material is not None)


def place_parameters(rows: Any, materials: Sequence, elements: int, dtype: np.dtype) -> Any:
    """Rows of a numbered term, with the parameters of every copy in place of the numbers."""
    number = np.rint(rows.material[0]).astype(np.int64)
    tables = [
        np.stack([np.broadcast_to(material[k], elements) for material in materials]).astype(dtype)
        for k in range(len(rows.material))
    ]
    placed = (np.ascontiguousarray(table[:, number]) for table in tables)
    return rows._replace(material=type(rows.material)._make(placed))


def replace_uniform(rows: Any, material: Any) -> Any:
    """Rows of a term with another material that is the same in all elements."""
    return rows._replace(material=material._make(map(float, material)))
