"""Second derivatives ∂²ψ/∂F∂F of all elements: positive semi-definite projection and Hessian blocks.

Tensors are packed as (rows, 81, lanes): entry 9 p + q of a row is ∂²ψ/∂F_p∂F_q of its elements.
"""

import math

import numpy as np

from supple.kernels import lane_sum, load, maker, physics, select, store, take_chunk

JACOBI_SWEEPS = 12
"""Maximum number of Jacobi sweeps for a symmetric 9×9 matrix; five or six nearly always suffice."""

OFF_DIAGONAL = 1e-24
"""Off-diagonal part of |C|² at which the iteration stops, relative."""


@maker
def project_tensors(tensors, counters):
    """Replace every tensor by its positive semi-definite projection."""
    vectors = np.empty((1, 81, tensors.shape[2]))
    row = take_chunk(counters, 0, len(tensors))
    while row >= 0:
        _diagonalise(tensors, row, vectors)
        _recompose(tensors, row, vectors)
        row = take_chunk(counters, 0, len(tensors))


@physics
def _diagonalise(A, row, V):
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
        if lane_sum(select(rest > OFF_DIAGONAL * total, zero + 1.0, zero)) == 0.0:
            break
        for p in range(8):
            for q in range(p + 1, 9):
                _rotate(A, row, V, p, q)


@physics
def _rotate(A, row, V, p, q):
    """Rotate axes p and q so that A_pq vanishes."""
    pp, qq, pq = load(A, row, 10 * p), load(A, row, 10 * q), load(A, row, 9 * p + q)
    h = qq - pp
    root = math.sqrt(h * h + 4.0 * pq * pq) + 1e-300
    t = 2.0 * pq / (h + select(h < 0.0, -root, root))
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


@physics
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


@maker
def contract_tensors(tensors, gradients, volumes, blocks, counters):
    """Hessian blocks blocks[e, a, b, i, k] = V Σ C_ijkl gᵃ_j gᵇ_l of each element e.

    gradients (m, k, 3) [1/m], volumes (m,) [m³].
    """
    lanes, corners = tensors.shape[2], gradients.shape[1]
    half = np.empty((3, 3, 3))
    row = take_chunk(counters, 0, len(tensors))
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
        row = take_chunk(counters, 0, len(tensors))
