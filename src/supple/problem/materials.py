"""Materials that differ from those of a model, for all copies of the state or from one to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from supple.model import Conditions, Model
from supple.terms import same_kind

if TYPE_CHECKING:
    from supple.problem.problem import Problem


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


def change_materials(problem: Problem, materials: Mapping[int, Any] | None) -> None:
    """Let a problem have these materials, by the number of their term; those that it has already stay."""
    for term, material in (materials or {}).items():
        if material != problem.model.terms[term].material:
            problem.set_parameters(term, material)


def changing_materials(model: Model) -> dict[int, Any] | None:
    """The materials that vary in time as a model has them, by the number of their term; None where none
    does."""
    return {term: model.terms[term].material for term, _ in model.changing} or None


def still_of_use(problem: Problem) -> list[str]:
    """What solvers have prepared that goes over to the values that materials have now, where a problem keeps
    that; copies of different materials that are gathered get theirs each time."""
    if problem.layout.varied:
        return ["gathered"]
    prepared = problem._shared if problem.keeps_prepared and problem.copies == 1 else {}
    assembly, levels = prepared.get("assembly"), prepared.get("multilevel")
    if assembly is None or not assembly.take_materials():
        return []
    kept = ["assembly", "parts", "noise"]
    return [*kept, "multilevel"] if levels is None or levels.take_materials(assembly) else kept
