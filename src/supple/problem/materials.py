"""Materials that differ from those of a model, for all copies of the state or from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from supple.model import Conditions, Model
from supple.terms import same_kind


def with_materials(model: Model, materials: tuple) -> Model:
    """The model with other materials of its elastic terms."""
    left = iter(materials)

    def varied(term: Any) -> Any:
        return term if term.material is None else replace(term, material=next(left))

    return replace(model, terms=tuple(varied(term) for term in model.terms))


def are_varied(conditions: Sequence[Conditions]) -> bool:
    """Whether some have materials of their own."""
    return any(c.materials is not None for c in conditions)


def are_alike(model: Model, materials: Sequence[Any]) -> bool:
    """Whether the same parameters of each are uniform as in the elastic terms of a model, so that its layout
    serves them."""
    return all(map(same_kind, materials_of(model), materials))


def materials_of(model: Model) -> tuple:
    """One material for each elastic term."""
    return tuple(term.material for term in model.terms if term.material is not None)
