"""Changing the parameters of a problem's materials: every arrangement of a term's rows gets the new table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from supple.materials import Material
from supple.model import Model
from supple.ordering import ElementBatches, Links
from supple.terms import refreshed, same_kind


def set_parameters(problem: Any, term: int, material: Material) -> None:
    """Give a term of the problem's model a material that differs from its own in values only, as an
    activation that varies in time. What is uniform stays so, and no kernel is compiled anew. A run that has
    begun must begin again."""
    old: Any = problem.model.terms[term]
    if not same_kind(old.material, material):
        raise ValueError(
            f"the parameters of {old.name} can get other values; which of them differ from element to "
            f"element, and the kind of material, stay as they are, {old.material!r}; got {material!r}"
        )
    terms = list(problem.model.terms)
    terms[term] = replace(old, material=material)
    take_materials(problem, replace(problem.model, terms=tuple(terms)))


def take_materials(problem: Any, model: Model) -> bool:
    """Go over to a model that differs from the problem's in material parameters only. False where some are
    uniform in one and not in the other, which needs a new problem."""
    pairs = list(zip(problem.model.terms, model.terms, strict=True))
    changed = {k: new.material for k, (old, new) in enumerate(pairs) if old is not new}
    if not all(same_kind(pairs[k][0].material, material) for k, material in changed.items()):
        return False
    for k, material in changed.items():
        _write(problem, k, material)
    problem.model = model
    return True


def _write(problem: Any, k: int, material: Material) -> None:
    """Write parameters into all arrangements of a term. What solvers have prepared beside these is forgotten,
    since it may depend on them."""

    def refresh(rows: Any, element: np.ndarray) -> Any:
        rows, written = refreshed(rows, material, element)
        for array in written:
            problem.push(array)
        return rows

    def among(terms: tuple, element: tuple) -> tuple:
        return (*terms[:k], refresh(terms[k], element[k]), *terms[k + 1 :])

    def kept(name: str, value: Any) -> Any:
        if isinstance(value, Links):
            return replace(value, terms=among(value.terms, value.element))
        mine = name.startswith(f"elements of term {k} ")
        return replace(value, rows=refresh(value.rows, value.element)) if mine else value

    problem.terms = among(problem.terms, problem.element)
    elements = problem.elements[k]
    problem.elements[k] = replace(elements, rows=refresh(elements.rows, elements.element))
    arranged = {n: v for n, v in problem._shared.items() if isinstance(v, Links | ElementBatches)}
    problem._shared = {name: kept(name, value) for name, value in arranged.items()}
    for name in ("_rest_stiffness", "_softness"):
        problem.__dict__.pop(name, None)
