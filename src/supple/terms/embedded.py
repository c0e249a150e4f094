"""Elements that a grid carries: Σ V ψ(F) over tetrahedra whose corners are interpolated from many nodes.

A corner p of an element moves by Σᵢ wᵢₚ uᵢ, so that F = F₀ + Σᵢ uᵢ Gᵢᵀ with Gᵢ = Σₚ wᵢₚ gₚ: as for the
element itself, with the nodes as corners. A tetrahedron has 8 to 32 of them; loops go over them, where the
kernels of other elements have every corner written out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add_diagonal, det, outer, plus9, sub
from supple.kernels import gather, pack_like, physics, select, stream
from supple.materials import psi, step_limit
from supple.terms.elastic import Elastic, deformation_at, material_at, of_volume, response, rest_volume
from supple.terms.element_tensors import load_matrix, tensors_of
from supple.terms.parameters import placed
from supple.terms.placing import place_elements
from supple.terms.term import (
    Elements,
    Visits,
    confined_force,
    energy,
    inversion,
    step_fraction,
    vertex_force,
)


class EmbeddedRows(NamedTuple):
    """start (batches + 1,): first row of each batch; others (rows, k - 1, lanes): ids of the other nodes;
    rest (rows, 3 (k - 1) + 1, lanes): their gradients G [1/m] and the rest volume [m³]; strain (rows, 9,
    lanes): F₀ - I. The visiting node's gradient is minus the sum of theirs."""

    start: Any
    others: Any
    rest: Any
    strain: Any
    material: Any


@dataclass(frozen=True, eq=False)
class EmbeddedElasticity(Elastic):
    """Σₑ Vₑ ψ(F₀ + Σᵢ uᵢ Gᵢᵀ): vertices (m, k), those nodes that carry an element, the first one again where
    there are fewer; gradients (m, k, 3): their G [1/m], 0 there; start (m, 3, 3): F₀, where nodes have no
    displacement."""

    start: np.ndarray

    name: ClassVar[str] = "tetrahedra that a grid carries"

    def rows(self, visits: Visits, start: np.ndarray) -> Any:
        ids, rest = place_elements(visits, self.vertices, self.gradients, self.volume)
        strain = visits.place((self.start - np.eye(3)).reshape(-1, 9)[visits.element])
        return EmbeddedRows(start, ids, rest, strain, placed(self.material, visits.elements, visits.dtype))

    def deformations(self, displacements: np.ndarray) -> np.ndarray:
        """F (m, 3, 3) at displacements (n, 3) [m] of all nodes."""
        return self.start + np.einsum("eai,eaj->eij", displacements[self.vertices], self.gradients)

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """Kᵃᵇᵢₖ = V Σ Cᵢⱼₖₗ Gᵃⱼ Gᵇₗ with C = ∂²ψ/∂F∂F, its positive semi-definite part, or its bound."""
        tensors = tensors_of(elements, u, kind, threads)
        m, k = self.vertices.shape
        C = np.swapaxes(tensors, 1, 2).reshape(-1, 3, 3, 3, 3)[:m]
        right = np.matmul(C.reshape(m, 27, 3), self.volume[:, None, None] * np.swapaxes(self.gradients, 1, 2))
        both = np.matmul(self.gradients[:, None], right.reshape(m, 3, 3, 3 * k))  # (m, i, a, (k, b))
        return both.reshape(m, 3, k, 3, k).transpose(0, 2, 4, 1, 3)


@physics
def gradient_of(rows, row, slot):
    """G of another node of the elements in a row."""
    first = 3 * slot
    return stream(rows.rest, row, first), stream(rows.rest, row, first + 1), stream(rows.rest, row, first + 2)


@physics
def own_gradient(rows, row):
    """G of the visiting node."""
    g = gradient_of(rows, row, 0)
    g = (-g[0], -g[1], -g[2])
    for slot in range(1, rows.others.shape[1]):
        g = sub(g, gradient_of(rows, row, slot))
    return g


@deformation_at.of(EmbeddedRows)
def _deformation_at(rows, row, u, ui):
    """F = F₀ + Σ (uₐ - uᵢ) Gₐᵀ over the other nodes."""
    F = add_diagonal(load_matrix(rows.strain, row), 1.0)
    for slot in range(rows.others.shape[1]):
        F = plus9(F, outer(sub(gather(u, rows.others, row, slot), ui), gradient_of(rows, row, slot)))
    return F


@vertex_force.of(EmbeddedRows)
def _vertex_force(rows, row, u, ui):
    f, A, _ = confined_force(rows, row, u, ui)
    return f, A


@confined_force.of(EmbeddedRows)
def _confined_force(rows, row, u, ui):
    """f = -V P G,  A = V hessian_bound(F, G, G)."""
    F = deformation_at(rows, row, u, ui)
    return of_volume(rest_volume(rows, row), response(material_at(rows, row), F, own_gradient(rows, row)))


@energy.of(EmbeddedRows)
def _energy(rows, row, u, ui):
    V = rest_volume(rows, row)
    return select(V > 0.0, V * psi(material_at(rows, row), deformation_at(rows, row, u, ui)), V)


@step_fraction.of(EmbeddedRows)
def _step_fraction(rows, row, u, ui, step):
    F = deformation_at(rows, row, u, ui)
    return step_limit(material_at(rows, row), F, own_gradient(rows, row), step)


@inversion.of(EmbeddedRows)
def _inversion(rows, row, u, ui):
    J = det(deformation_at(rows, row, u, ui))
    return select(J < 0.0, pack_like(1.0, J), pack_like(0.0, J))
