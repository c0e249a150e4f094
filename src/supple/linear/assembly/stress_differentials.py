"""Deformation gradient F, stress P and stress differential δP of the elements of a term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.kernels import gather
from supple.linear.assembly.block_kernels import host_elements
from supple.materials import stress, stress_differential
from supple.problem.device import Cpu
from supple.problem.element_quantities import NUMBERS_PER_ELEMENT, evaluate_numbers, numbers_of
from supple.terms.base.elastic import (
    corner_vectors,
    corners,
    displacement_gradient,
    material_at,
    measure,
)
from supple.terms.base.elastic import shape_gradients as gradients_of
from supple.terms.base.packed_parameters import pack_material

if TYPE_CHECKING:
    from supple.problem.problem import Problem


class Differentials(NamedTuple):
    """F, P = ∂ψ/∂F [Pa] and δP = (∂²ψ/∂F∂F) : G, nine numbers each, with G = Σ wₐ gₐᵀ.

    Attributes:
        term: Packed element data of the term.
        own: Vertex of each packed incidence.
        along: Padded vectors w of all vertices.
    """

    term: Any
    own: Any
    along: Any


NUMBERS_PER_ELEMENT[Differentials] = 27


@numbers_of.of(Differentials)
def _differentials(quantity, row, u, ui):
    rows, along = quantity.term, quantity.along
    g = gradients_of(rows, row)
    F = measure(rows, corners(rows, row, u, ui), g)
    G = displacement_gradient(corner_vectors(rows, row, along, gather(along, quantity.own, row, 0)), g)
    material = material_at(rows, row)
    return F + stress(material, F) + stress_differential(material, F, G)


def differentials(
    problem: Problem, index: int, along: np.ndarray, material: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute F, P and δP of a term's elements on the host, at the problem's u.

    Args:
        problem: Problem that owns the term.
        index: Index of the term in the model.
        along: (n, 3) direction at the vertices.
        material: Replacement material of the same class, or None.

    Returns:
        F, P and δP, each (m, 3, 3).
    """
    elements, model = host_elements(problem, index), problem.model
    rows = elements.rows
    if material is not None:
        rows = rows._replace(material=pack_material(material, elements.element, problem.dtype))
    records = np.zeros((model.vertices + 1, problem.u.shape[1]), problem.dtype)
    records[:-1, :3] = along
    problem.device.download(problem.u)
    host = Cpu(model.vertices + 1, problem.dtype, problem.device.threads)
    values = host.zeros((1, len(elements.own), NUMBERS_PER_ELEMENT[Differentials], host.lanes), problem.dtype)
    quantity = Differentials(rows, elements.own, records)
    host.run(evaluate_numbers, 1, quantity, elements.own, problem.u, values)
    numbers = np.moveaxis(values[0], 1, 2).reshape(-1, 3, 3, 3)[: len(model.terms[index].vertices)]
    return numbers[:, 0], numbers[:, 1], numbers[:, 2]
