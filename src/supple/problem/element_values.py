"""What each element of a term has to tell: its energy, and its deformation and stress or its force."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import each, enter, gather, generic, inside, kernel, leave, proceed, store
from supple.materials import stress
from supple.problem.problem import Problem
from supple.terms import energy, vertex_force
from supple.terms.elastic import deformation_at, material_at, measure


class Deformed(NamedTuple):
    """Energy [J], deformation gradient F and first Piola-Kirchhoff stress P [Pa] of elements."""

    term: Any


class Pulling(NamedTuple):
    """Energy [J] of elements, and their force [N] on the first of their vertices."""

    term: Any


FIELDS = {Deformed: 19, Pulling: 4}
"""How many numbers each of them is."""


@generic
def numbers_of(quantity, row, u, ui):
    """The numbers of the elements in one row, a tuple."""


@numbers_of.of(Deformed)
def _deformed(quantity, row, u, ui):
    F = deformation_at(quantity.term, row, u, ui)
    P = stress(material_at(quantity.term, row), F)
    return (energy(quantity.term, row, u, ui),) + F + P  # noqa: RUF005


@numbers_of.of(Pulling)
def _pulling(quantity, row, u, ui):
    f, _ = vertex_force(quantity.term, row, u, ui)
    return (energy(quantity.term, row, u, ui),) + f  # noqa: RUF005


_store_all = each("values, row, numbers", "store(values, row, i, numbers[i])", store, over="numbers")


@kernel
def evaluate_numbers(team, quantity, own, u, values):
    """The numbers of all elements into values (copies, rows, fields, lanes)."""
    last = len(own)
    row = enter(team, 0, 0, last)
    while inside(row, last):
        _store_all(values, row, numbers_of(quantity, row, u, gather(u, own, row, 0)))
        row = proceed(team, 0, row, 0, last)
    leave(team, 0, 0, last)


def is_deformed(problem: Problem, term: int) -> bool:
    """Whether the elements of a term are of a material, and so have a deformation gradient."""
    return measure.known(type(problem.layout.elements[term].rows))


def element_values(problem: Problem, term: int) -> np.ndarray:
    """(m, 19 or 4) float64: the numbers of every element of a term where the problem is, see `Deformed` and
    `Pulling`."""
    elements, count = problem.layout.elements[term], len(problem.model.terms[term].vertices)
    quantity = Deformed if is_deformed(problem, term) else Pulling
    shape = 1, len(elements.own), FIELDS[quantity], problem.device.lanes
    values = problem.shared(f"numbers of the elements of term {term}", lambda: problem.zeros(shape))
    problem.device.run(evaluate_numbers, 1, quantity(elements.rows), elements.own, problem.u, values)
    problem.device.pull(values)
    return np.moveaxis(values[0], 1, 2).reshape(-1, FIELDS[quantity])[:count].astype(float)
