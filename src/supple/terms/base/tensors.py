"""Second derivatives ∂²ψ/∂F∂F of all elements: exact or positive semi-definite, and Hessian blocks.

Tensors are packed as (rows, 81, lanes): entry 9 p + q of a row is ∂²ψ/∂F_p∂F_q of its elements.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.kernels import (
    allocating_kernel,
    claim_chunk,
    counters_for,
    device_function,
    do,
    gather,
    kernel,
    lane_sum,
    lanes_of,
    load,
    run,
    store,
    where,
)
from supple.materials import hessian_bound, stress_differential
from supple.terms.base.elastic import deformation_at, material_at
from supple.terms.base.term import Elements

JACOBI_SWEEPS = 12
"""Maximum number of Jacobi sweeps for a symmetric 9×9 matrix; five or six nearly always suffice."""

OFF_DIAGONAL = 1e-24
"""Off-diagonal part of |C|² at which the iteration stops, relative."""


@allocating_kernel
def project_tensors(tensors, counters):
    """Replace every tensor by its positive semi-definite projection."""
    vectors = np.empty((1, 81, tensors.shape[2]))
    row = claim_chunk(counters, 0, len(tensors))
    while row >= 0:
        _diagonalize(tensors, row, vectors)
        _recompose(tensors, row, vectors)
        row = claim_chunk(counters, 0, len(tensors))


@device_function
def _diagonalize(A, row, V):
    """Cyclic Jacobi rotations: A of a row becomes VᵀA V, diagonal, for the orthogonal V."""
    zero = 0.0 * load(A, row, 0)
    total = zero
    for k in range(81):
        total = total + load(A, row, k) * load(A, row, k)
        store(V, 0, k, zero + (1.0 if k % 10 == 0 else 0.0))
    for _ in range(JACOBI_SWEEPS):
        rest = zero
        for p in range(9):
            for q in range(p):
                rest = rest + load(A, row, 9 * p + q) * load(A, row, 9 * p + q)
        if lane_sum(where(rest > OFF_DIAGONAL * total, zero + 1.0, zero)) == 0.0:
            break
        for p in range(8):
            for q in range(p + 1, 9):
                _rotate(A, row, V, p, q)


@device_function
def _rotate(A, row, V, p, q):
    """Rotate axes p and q so that A_pq vanishes."""
    pp, qq, pq = load(A, row, 10 * p), load(A, row, 10 * q), load(A, row, 9 * p + q)
    h = qq - pp
    root = math.sqrt(h * h + 4.0 * pq * pq) + 1e-300
    t = 2.0 * pq / (h + where(h < 0.0, -root, root))
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    for k in range(9):
        x, y = load(A, row, 9 * p + k), load(A, row, 9 * q + k)
        a, b = c * x - s * y, s * x + c * y
        store(A, row, 9 * p + k, a)
        store(A, row, 9 * q + k, b)
        store(A, row, 9 * k + p, a)
        store(A, row, 9 * k + q, b)
        x, y = load(V, 0, 9 * p + k), load(V, 0, 9 * q + k)
        store(V, 0, 9 * p + k, c * x - s * y)
        store(V, 0, 9 * q + k, s * x + c * y)
    zero = 0.0 * pq
    store(A, row, 10 * p, pp - t * pq)
    store(A, row, 10 * q, qq + t * pq)
    store(A, row, 9 * p + q, zero)
    store(A, row, 9 * q + p, zero)


@device_function
def _recompose(A, row, V):
    """A = Σ max(λ, 0) v vᵀ over the diagonal λ of A and the rows v of V."""
    for k in range(9):
        root = math.sqrt(max(load(A, row, 10 * k), 0.0 * load(A, row, 0)))
        for p in range(9):
            store(V, 0, 9 * k + p, root * load(V, 0, 9 * k + p))
    for p in range(9):
        for q in range(p + 1):
            value = 0.0 * load(A, row, 0)
            for k in range(9):
                value = value + load(V, 0, 9 * k + p) * load(V, 0, 9 * k + q)
            store(A, row, 9 * p + q, value)
            store(A, row, 9 * q + p, value)


@allocating_kernel
def contract_tensors(tensors, gradients, volumes, blocks, counters):
    """Hessian blocks blocks[e, a, b, i, k] = V Σ C_ijkl gᵃ_j gᵇ_l of each element e.

    gradients (m, k, 3) [1/m], volumes (m,) [m³].
    """
    lanes, corners = tensors.shape[2], gradients.shape[1]
    half = np.empty((3, 3, 3))
    row = claim_chunk(counters, 0, len(tensors))
    while row >= 0:
        for lane in range(min(lanes, len(volumes) - row * lanes)):
            e = row * lanes + lane
            for b in range(corners):
                for ij in range(9):
                    for k in range(3):
                        value = 0.0
                        for l in range(3):
                            value += tensors[row, 9 * ij + 3 * k + l, lane] * gradients[e, b, l]
                        half[ij // 3, ij % 3, k] = volumes[e] * value
                for a in range(corners):
                    for i in range(3):
                        for k in range(3):
                            value = 0.0
                            for j in range(3):
                                value += gradients[e, a, j] * half[i, j, k]
                            blocks[e, a, b, i, k] = value
        row = claim_chunk(counters, 0, len(tensors))


def tensors_of(elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
    """Compute ∂²ψ/∂F∂F of every element.

    Args:
        elements: Data packed by elements.
        u: Displacements, padded vectors [m].
        kind: "exact", "projected" (positive semi-definite) or "bound" (positive definite bound).
        threads: Number of threads.

    Returns:
        (rows, 81, lanes) tensors [Pa].
    """
    tensors = np.empty((len(elements.own), 81, lanes_of(u.dtype)))
    tensor_class = BoundTensors if kind == "bound" else ExactTensors
    work = tensor_class(elements.rows, elements.own, u, unit_matrices(), tensors)
    run(_at_all_rows, threads, work, counters_for(1))
    if kind == "projected":
        run(project_tensors, threads, tensors, counters_for(1))
    return tensors


def unit_matrices() -> np.ndarray:
    """(9, 9, lanes): row q holds the unit matrix E_q in every lane."""
    return np.repeat(np.eye(9)[:, :, None], lanes_of(np.float64), axis=2)


@device_function
def load_matrix(data, row):
    """Load the nine numbers of a row."""
    return (
        load(data, row, 0),
        load(data, row, 1),
        load(data, row, 2),
        load(data, row, 3),
        load(data, row, 4),
        load(data, row, 5),
        load(data, row, 6),
        load(data, row, 7),
        load(data, row, 8),
    )


class ExactTensors(NamedTuple):
    """out[row, 9 p + q] = ∂²ψ/∂F_p∂F_q of the elements in each row."""

    rows: Any
    own: Any
    u: Any
    units: Any
    out: Any


class BoundTensors(ExactTensors):
    """out[row, 9 (3 i + j) + 3 k + l] = A(e_j, e_l)_ik, the positive definite bound of ∂²ψ/∂F∂F."""

    __slots__ = ()


@kernel
def _at_all_rows(work, counters):
    row = claim_chunk(counters, 0, len(work.own))
    while row >= 0:
        do(work, row)
        row = claim_chunk(counters, 0, len(work.own))


@device_function
def _deformation(work, row):
    """Material and F of the elements in a row."""
    F = deformation_at(work.rows, row, work.u, gather(work.u, work.own, row, 0))
    return material_at(work.rows, row), F


@do.of(ExactTensors)
def _exact(work, row):
    material, F = _deformation(work, row)
    for q in range(9):
        dP = stress_differential(material, F, load_matrix(work.units, q))
        for p in range(9):
            store(work.out, row, 9 * p + q, dP[p])


@do.of(BoundTensors)
def _bound(work, row):
    material, F = _deformation(work, row)
    for j in range(3):
        for l in range(3):
            g, h = load_matrix(work.units, j), load_matrix(work.units, l)
            A = hessian_bound(material, F, (g[0], g[1], g[2]), (h[0], h[1], h[2]))
            for i in range(3):
                for k in range(3):
                    store(work.out, row, 9 * (3 * i + j) + 3 * k + l, A[3 * i + k])
