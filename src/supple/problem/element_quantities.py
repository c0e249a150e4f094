"""Element quantities of a term: energy, deformation and stress, or force."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import det, matmul, scale_matrix, transpose
from supple.algebra.svd import rotation_svd, symmetric_eigen
from supple.algebra.symmetric import symmetric_part
from supple.kernels import (
    device_function,
    do,
    each,
    gather,
    generic,
    kernel,
    overload_by_type,
    parallel_for,
    store,
)
from supple.materials import stress
from supple.problem.problem import Problem
from supple.terms import energy, vertex_force
from supple.terms.base.elastic import deformation_at, material_at, measure


class StoredEnergy(NamedTuple):
    """Energy of elements [J]."""

    term: Any


class ScalarQuantities(NamedTuple):
    """Energy of elements [J], and scalar measures of F and stress [Pa], see `scalar_quantities`."""

    term: Any


class TensorQuantities(NamedTuple):
    """The quantities of `ScalarQuantities`, then F, and the first Piola-Kirchhoff stress P [Pa]."""

    term: Any


class FirstVertexForce(NamedTuple):
    """Energy of elements [J], and their force on their first vertex [N]."""

    term: Any


NUMBERS_PER_ELEMENT: dict[Any, int] = {
    StoredEnergy: 1,
    ScalarQuantities: 10,
    TensorQuantities: 28,
    FirstVertexForce: 4,
}
"""Number of values of each quantity."""


def cauchy(material: Any, F: Any, P: Any, J: Any) -> Any:
    """Cauchy stress σ = P Fᵀ/J as a 9-tuple.

    For small-strain materials, which have only one stress, P itself.
    """


@overload_by_type(cauchy)
def _cauchy(material, F, P, J):
    if getattr(material.instance_class, "objective", True):
        return lambda material, F, P, J: scale_matrix(1.0 / J, matmul(P, transpose(F)))
    return lambda material, F, P, J: P


@device_function
def sort_descending(a, b, c):
    """Sort three numbers in descending order."""
    high, low = max(a, b), min(a, b)
    return max(high, c), max(low, min(high, c)), min(low, c)


@device_function
def scalar_quantities(material, F, P):
    """Scalar measures of deformation and stress.

    Returns:
        J; the von Mises stress √(3/2 s:s) of the deviator s of σ; the pressure -tr(σ)/3; the eigenvalues of
        σ; and the singular values of F, both in descending order. The last singular value is negative if J
        is.
    """
    J = det(F)
    S = symmetric_part(cauchy(material, F, P, J))
    pressure = -(S[0] + S[1] + S[2]) / 3.0
    x, y, z = S[0] + pressure, S[1] + pressure, S[2] + pressure
    shear = S[3] * S[3] + S[4] * S[4] + S[5] * S[5]
    von_mises = math.sqrt(1.5 * (x * x + y * y + z * z) + 3.0 * shear)
    (a, b, c), _ = symmetric_eigen(x, y, z, S[3], S[4], S[5])
    _, stretches, _ = rotation_svd(F)
    return (J, von_mises, pressure) + sort_descending(a - pressure, b - pressure, c - pressure) + stretches  # noqa: RUF005


@generic
def numbers_of(quantity, row, u, ui):
    """Values of a quantity for elements in one packed row, a tuple."""


@numbers_of.of(StoredEnergy)
def _energy_value(quantity, row, u, ui):
    return (energy(quantity.term, row, u, ui),)


@numbers_of.of(ScalarQuantities)
def _scalar_values(quantity, row, u, ui):
    F = deformation_at(quantity.term, row, u, ui)
    material = material_at(quantity.term, row)
    return (energy(quantity.term, row, u, ui),) + scalar_quantities(material, F, stress(material, F))  # noqa: RUF005


@numbers_of.of(TensorQuantities)
def _tensor_values(quantity, row, u, ui):
    F = deformation_at(quantity.term, row, u, ui)
    material = material_at(quantity.term, row)
    P = stress(material, F)
    return (energy(quantity.term, row, u, ui),) + scalar_quantities(material, F, P) + F + P  # noqa: RUF005


@numbers_of.of(FirstVertexForce)
def _vertex_force_values(quantity, row, u, ui):
    f, _ = vertex_force(quantity.term, row, u, ui)
    return (energy(quantity.term, row, u, ui),) + f  # noqa: RUF005


_store_all = each("values, row, numbers", "store(values, row, i, numbers[i])", store, over="numbers")


class Numbers(NamedTuple):
    """Store one quantity for all elements in a packed row."""

    quantity: Any
    own: Any
    u: Any
    values: Any


@do.of(Numbers)
def _numbers(work, row):
    ui = gather(work.u, work.own, row, 0)
    _store_all(work.values, row, numbers_of(work.quantity, row, work.u, ui))


@kernel
def evaluate_numbers(team, quantity, own, u, values):
    """Store the values of a quantity for all elements in an array (batch, rows, fields, lanes)."""
    parallel_for(team, 0, 0, len(own), Numbers(quantity, own, u, values))


def is_deformed(problem: Problem, term: int) -> bool:
    """True if the elements of a term have a material, and therefore a deformation gradient."""
    return measure.has_implementation(type(problem.layout.elements[term].rows))


def element_values(problem: Problem, term: int, quantity: Any) -> np.ndarray:
    """Evaluate one element quantity of a term at the present displacements.

    Args:
        problem: Problem to evaluate.
        term: Index of the term.
        quantity: `StoredEnergy`, `ScalarQuantities`, `TensorQuantities` or `FirstVertexForce`.

    Returns:
        (m, values) float64.
    """
    elements, count = problem.layout.elements[term], len(problem.model.terms[term].vertices)
    shape = 1, len(elements.own), NUMBERS_PER_ELEMENT[quantity], problem.device.lanes
    name = f"{quantity.__name__} of the elements of term {term}"
    values = problem.get_shared(name, lambda: problem.zeros(shape))
    problem.device.run(evaluate_numbers, 1, quantity(elements.rows), elements.own, problem.u, values)
    problem.device.download(values)
    return np.moveaxis(values[0], 1, 2).reshape(-1, NUMBERS_PER_ELEMENT[quantity])[:count].astype(float)
