"""Tetrahedral elasticity: Σ V ψ(F) with the deformation gradient F constant in each element [PBNG eq. 15]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numba import types

from supple.algebra.matrix3 import det
from supple.kernels import (
    chosen_by_type,
    counters_for,
    gather,
    kernel,
    lanes_of,
    load,
    pack_like,
    physics,
    run,
    select,
    store,
    stream,
    take_chunk,
)
from supple.materials import hessian_bound, psi, step_limit, stress_differential, traction
from supple.terms.tensors import contract_tensors, project_tensors
from supple.terms.term import Elements, Visits, energy, inversion, packed, step_fraction, vertex_force

# The other three vertices as seen from each slot, in an order that keeps the tet positively oriented.
_OTHERS = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])


class TetRows(NamedTuple):
    """start (batches + 1,): first row of each batch; others (rows, 3, lanes): ids of the other three
    vertices; rest (rows, 10, lanes): their shape gradients [1/m], nine numbers, and the rest volume [m³]. The
    visiting vertex's gradient is minus the sum of theirs."""

    start: Any
    others: Any
    rest: Any
    material: Any


@dataclass(frozen=True, eq=False)
class TetElasticity:
    """Σₑ Vₑ ψ(Fₑ): vertices (m, 4); gradients (m, 4, 3) of the shape functions [1/m]; volume (m,) [m³];
    material: parameters are numbers, or arrays (m,)."""

    vertices: np.ndarray
    gradients: np.ndarray
    volume: np.ndarray
    material: Any

    @classmethod
    def from_mesh(cls, points: np.ndarray, tets: np.ndarray, material: Any) -> Self:
        edges = points[tets[:, 1:]] - points[tets[:, :1]]  # rows x_a - x_0
        gradients = np.linalg.inv(edges).transpose(0, 2, 1)  # F = Σ (x_a - x_0) g_aᵀ with g_a rows of Dm⁻¹
        gradients = np.concatenate([-gradients.sum(1, keepdims=True), gradients], axis=1)
        return cls(np.asarray(tets, np.int32), gradients, np.abs(np.linalg.det(edges)) / 6, material)

    @property
    def translatable(self) -> np.ndarray:
        return np.ones(len(self.vertices), bool)

    def rows(self, visits: Visits, start: np.ndarray) -> TetRows:
        element, others = visits.element, _OTHERS[visits.slot]
        ids = np.take_along_axis(self.vertices[element], others, axis=1)
        gradients = self.gradients.astype(visits.dtype)[element[:, None], others].reshape(-1, 9)
        volume = self.volume[element, None].astype(visits.dtype)
        material = type(self.material)._make(
            visits.place(np.asarray(p)[element, None], padding=p[0]) if np.ndim(p) else float(p)
            for p in self.material
        )
        return TetRows(start, visits.place_ids(ids), visits.place(np.hstack([gradients, volume])), material)

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """Kᵃᵇᵢₖ = V Σ Cᵢⱼₖₗ gᵃⱼ gᵇₗ with C = ∂²ψ/∂F∂F, its positive semi-definite part, or its bound."""
        tensors = np.empty((len(elements.own), 81, lanes_of(u.dtype)))
        evaluate = bound_tensors if kind == "bound" else exact_tensors
        run(evaluate, threads, elements.rows, elements.own, u, unit_matrices(), tensors, counters_for(1))
        if kind == "projected":
            run(project_tensors, threads, tensors, counters_for(1))
        blocks = np.empty((len(self.volume), 4, 4, 3, 3))
        run(contract_tensors, threads, tensors, self.gradients, self.volume, blocks, counters_for(1))
        return blocks


def unit_matrices() -> np.ndarray:
    """(9, 9, lanes): row q holds the unit matrix E_q in every lane."""
    return np.repeat(np.eye(9)[:, :, None], lanes_of(np.float64), axis=2)


@physics
def shape_gradients(term, row):
    """(g, h, k): shape gradients of the three other vertices."""
    rest = term.rest
    return (
        (stream(rest, row, 0), stream(rest, row, 1), stream(rest, row, 2)),
        (stream(rest, row, 3), stream(rest, row, 4), stream(rest, row, 5)),
        (stream(rest, row, 6), stream(rest, row, 7), stream(rest, row, 8)),
    )


def rest_volume(term: Any, row: Any) -> Any:
    """V [m³], 0 in lanes without an element."""


@chosen_by_type(rest_volume)
def _rest_volume(term, row):
    """A device computes 1 / (6 |det(g, h, k)|) sooner than it loads a further number."""

    def computed(term, row):
        g, h, k = shape_gradients(term, row)
        inverse = 6.0 * abs(det((g[0], g[1], g[2], h[0], h[1], h[2], k[0], k[1], k[2])))
        return select(inverse > 0.0, 1.0 / max(inverse, 1e-30), inverse)

    return computed if isinstance(row, types.BaseTuple) else lambda term, row: load(term.rest, row, 9)


@physics
def material_at(term, row):
    """The material of the elements in a row."""
    return packed(term.material, row, load(term.rest, row, 9))


@physics
def deformation_gradient(ui, a, b, c, g, h, k):
    """F = I + Σ (u_a - u_i) g_aᵀ over the three others [PBNG eq. 15]; with displacements u instead of
    positions its rounding error does not grow with the distance from the origin."""
    a0, a1, a2 = a[0] - ui[0], a[1] - ui[1], a[2] - ui[2]
    b0, b1, b2 = b[0] - ui[0], b[1] - ui[1], b[2] - ui[2]
    c0, c1, c2 = c[0] - ui[0], c[1] - ui[1], c[2] - ui[2]
    return (
        1.0 + (a0 * g[0] + b0 * h[0] + c0 * k[0]),
        a0 * g[1] + b0 * h[1] + c0 * k[1],
        a0 * g[2] + b0 * h[2] + c0 * k[2],
        a1 * g[0] + b1 * h[0] + c1 * k[0],
        1.0 + (a1 * g[1] + b1 * h[1] + c1 * k[1]),
        a1 * g[2] + b1 * h[2] + c1 * k[2],
        a2 * g[0] + b2 * h[0] + c2 * k[0],
        a2 * g[1] + b2 * h[1] + c2 * k[1],
        1.0 + (a2 * g[2] + b2 * h[2] + c2 * k[2]),
    )


@physics
def own_gradient(g, h, k):
    """The visiting vertex's shape gradient: the four sum to zero."""
    return (-(g[0] + h[0] + k[0]), -(g[1] + h[1] + k[1]), -(g[2] + h[2] + k[2]))


@physics
def _deformation(u, term, row, ui):
    """(F, g): deformation gradient and the visiting vertex's shape gradient."""
    g, h, k = shape_gradients(term, row)
    a, b, c = gather(u, term.others, row, 0), gather(u, term.others, row, 1), gather(u, term.others, row, 2)
    return deformation_gradient(ui, a, b, c, g, h, k), own_gradient(g, h, k)


@vertex_force.of(TetRows)
def _vertex_force(term, row, u, ui):
    """f = -V P g,  A = V hessian_bound(F, g, g)."""
    F, g = _deformation(u, term, row, ui)
    V = rest_volume(term, row)
    material = material_at(term, row)
    f = traction(material, F, g)
    A = hessian_bound(material, F, g, g)
    return (
        (-V * f[0], -V * f[1], -V * f[2]),
        (V * A[0], V * A[4], V * A[8], V * A[1], V * A[2], V * A[5]),
    )


@energy.of(TetRows)
def _energy(term, row, u, ui):
    F, _ = _deformation(u, term, row, ui)
    V = load(term.rest, row, 9)
    return select(V > 0.0, V * psi(material_at(term, row), F), V)


@inversion.of(TetRows)
def _inversion(term, row, u, ui):
    J = det(_deformation(u, term, row, ui)[0])
    return select(J < 0.0, pack_like(1.0, J), pack_like(0.0, J))


@step_fraction.of(TetRows)
def _step_fraction(term, row, u, ui, step):
    F, g = _deformation(u, term, row, ui)
    return step_limit(material_at(term, row), F, g, step)


@physics
def _matrix_at(matrices, q):
    return (
        load(matrices, q, 0),
        load(matrices, q, 1),
        load(matrices, q, 2),
        load(matrices, q, 3),
        load(matrices, q, 4),
        load(matrices, q, 5),
        load(matrices, q, 6),
        load(matrices, q, 7),
        load(matrices, q, 8),
    )


@kernel
def exact_tensors(term, own, u, units, out, counters):
    """out[row, 9 p + q] = ∂²ψ/∂F_p∂F_q of the elements in each row."""
    rows = len(own)
    row = take_chunk(counters, 0, rows)
    while row >= 0:
        F, _ = _deformation(u, term, row, gather(u, own, row, 0))
        material = material_at(term, row)
        for q in range(9):
            dP = stress_differential(material, F, _matrix_at(units, q))
            for p in range(9):
                store(out, row, 9 * p + q, dP[p])
        row = take_chunk(counters, 0, rows)


@kernel
def bound_tensors(term, own, u, units, out, counters):
    """The same for the positive definite bound: C_ijkl = A(e_j, e_l)_ik."""
    rows = len(own)
    row = take_chunk(counters, 0, rows)
    while row >= 0:
        F, _ = _deformation(u, term, row, gather(u, own, row, 0))
        material = material_at(term, row)
        for j in range(3):
            for l in range(3):
                g, h = _matrix_at(units, j), _matrix_at(units, l)
                A = hessian_bound(material, F, (g[0], g[1], g[2]), (h[0], h[1], h[2]))
                for i in range(3):
                    for k in range(3):
                        store(out, row, 9 * (3 * i + j) + 3 * k + l, A[3 * i + k])
        row = take_chunk(counters, 0, rows)
