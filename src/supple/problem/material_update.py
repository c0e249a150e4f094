"""Material changes of a problem, uniform over the batch or per batch member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from supple.model.model import Conditions, Model
from supple.terms import have_same_kernels

if TYPE_CHECKING:
    from supple.problem.problem import Problem


def with_materials(model: Model, materials: tuple) -> Model:
    """Replace the materials of the elastic terms of a model."""
    left = iter(materials)

    def replace_material(term: Any) -> Any:
        return term if term.material is None else replace(term, material=next(left))

    return replace(model, terms=tuple(replace_material(term) for term in model.terms))


def are_varied(conditions: Sequence[Conditions]) -> bool:
    """True if any conditions specify materials."""
    return any(c.materials is not None for c in conditions)


def have_same_layout(model: Model, materials: Sequence[Any]) -> bool:
    """True if the same parameters are uniform as in the model, so that its layout fits."""
    return all(map(have_same_kernels, materials_of(model), materials))


def materials_of(model: Model) -> tuple:
    """One material per elastic term."""
    return tuple(term.material for term in model.terms if term.material is not None)


def change_materials(problem: Problem, materials: Mapping[int, Any] | None) -> None:
    """Set materials of a problem by term index; unchanged ones are skipped."""
    for term, material in (materials or {}).items():
        if material != problem.model.terms[term].material:
            problem.set_parameters(term, material)


def changing_materials(model: Model) -> dict[int, Any] | None:
    """Present time-dependent materials by term index, or None."""
    return {term: model.terms[term].material for term, _ in model.changing} or None


def valid_prefixes(problem: Problem) -> list[str]:
    """Names of prepared solver data that remains valid for the present material values.

    It is kept only if the problem has `keeps_prepared`. Block-diagonal batches with varied materials read
    their materials each time.
    """
    if problem.layout.varied:
        return ["block-diagonal"]
    prepared = problem._shared if problem.keeps_prepared and problem.batch_size == 1 else {}
    assembly, levels = prepared.get("assembly"), prepared.get("multilevel")
    if assembly is None or not assembly.update_materials():
        return []
    names = ["assembly", "parts", "noise"]
    return [*names, "multilevel"] if levels is None or levels.update_materials(assembly) else names
