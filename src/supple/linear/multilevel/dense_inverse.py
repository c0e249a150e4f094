"""Inverses of symmetric positive definite matrices: the last level, and the diagonal blocks of all.

The last level is inverted by block Gauss-Jordan elimination without pivoting.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import njit

from supple.kernels import device_function, do, item_number, kernel, lane_stride, parallel_for
from supple.kernels.parallel.parallel_for import parallel_for_rows
from supple.linear.multilevel.rigid_aggregates import PLANARITY_TOLERANCE

DIAGONAL_SHIFT = 1e-9
"""Diagonal shift of a coarse row relative to the summed stiffness of its vertices. It regularizes whole
bodies without constraints, which move without resistance."""


@njit(error_model="numpy")
def sweep(A, first, n):
    """Invert the symmetric positive definite n×n matrix at A.flat[first] in place by Gauss-Jordan
    elimination.

    Returns False if it is not positive definite.
    """
    for p in range(n):
        pivot = A[first + p * n + p]
        if not pivot > 0.0:
            return False
        inverse = 1.0 / pivot
        A[first + p * n + p] = 1.0
        for c in range(n):
            A[first + p * n + c] *= inverse
        for r in range(n):
            if r != p:
                factor = A[first + r * n + p]
                A[first + r * n + p] = 0.0
                for c in range(n):
                    A[first + r * n + c] -= factor * A[first + p * n + c]
    return True


@device_function
def _invert_three(A, k, out, row):
    """out[row] = A_k⁻¹ by cofactors; returns False if A_k is not positive definite."""
    a, b, c = A[k, 0, 0], A[k, 1, 1], A[k, 2, 2]
    d, e, f = (
        0.5 * (A[k, 0, 1] + A[k, 1, 0]),
        0.5 * (A[k, 0, 2] + A[k, 2, 0]),
        0.5 * (A[k, 1, 2] + A[k, 2, 1]),
    )
    x, y, z = b * c - f * f, e * f - c * d, d * f - b * e
    det = a * x + d * y + e * z
    inverse = 1.0 / det
    out[row, 0], out[row, 1], out[row, 2] = inverse * x, inverse * y, inverse * z
    out[row, 3], out[row, 4], out[row, 5] = inverse * y, inverse * (a * c - e * e), inverse * (d * e - a * f)
    out[row, 6], out[row, 7], out[row, 8] = inverse * z, inverse * (d * e - a * f), inverse * (a * b - d * d)
    return a > 0.0 and a * b - d * d > 0.0 and det > 0.0 and math.isfinite(det)


class InvertBlock(NamedTuple):
    """Inverse of a diagonal block, times the damping factor `part` of the row."""

    diagonal: Any
    A: Any
    part: Any
    out: Any
    good: Any


@do.of(InvertBlock)
def _invert_block(work, row):
    out = work.out
    if not _invert_three(work.A, work.diagonal[row], out, row):
        work.good[0] = 0
    for c in range(9):
        out[row, c] *= work.part[row]


@kernel
def invert_blocks(team, diagonal, A, part, out, good):
    """Compute the inverses (f, 9) of the diagonal blocks of A, times the damping factors `part` (f,)."""
    parallel_for_rows(team, 0, 0, len(diagonal), InvertBlock(diagonal, A, part, out, good))


@device_function
def _add_rotational_stiffness(moment, weight, radius, row, stiffness, out, first):
    """Add rotational stiffness to the 6×6 matrix at out.flat[first] about axes through nearly all vertices.

    The stiffness is proportional to N = (I + J/ε)⁻¹ with the inertia J = (tr(M) I - M)/(w ρ²). A rotation
    about such an axis moves no vertex and meets no resistance.
    """
    s = 1.0 / (weight[row] * radius[row] * radius[row] * PLANARITY_TOLERANCE)
    x, y, z = moment[row, 0], moment[row, 1], moment[row, 2]
    a, b, c = 1.0 + s * (y + z), 1.0 + s * (x + z), 1.0 + s * (x + y)
    d, e, f = -s * moment[row, 3], -s * moment[row, 4], -s * moment[row, 5]
    xx, xy, xz = b * c - f * f, e * f - c * d, d * f - b * e
    t = stiffness / (a * xx + d * xy + e * xz)
    yy, yz, zz = a * c - e * e, d * e - a * f, a * b - d * d
    out[first + 21] += t * xx
    out[first + 28] += t * yy
    out[first + 35] += t * zz
    out[first + 22] += t * xy
    out[first + 27] += t * xy
    out[first + 23] += t * xz
    out[first + 33] += t * xz
    out[first + 29] += t * yz
    out[first + 34] += t * yz


class InvertCoarse(NamedTuple):
    """Inverse of a diagonal block of a coarse matrix, after the diagonal shift (rows,)."""

    diagonal: Any
    A: Any
    bodies: Any
    shift: Any
    out: Any
    good: Any


@do.of(InvertCoarse)
def _invert_coarse(work, row):
    A, bodies, out = work.A, work.bodies, work.out
    k, first = work.diagonal[row], 36 * row
    for c in range(36):
        out[first + c] = A[k, c]
    for c in range(6):
        out[first + 7 * c] += work.shift[row]
    stiffness = (A[k, 0] + A[k, 7] + A[k, 14]) / 3.0 + work.shift[row]
    _add_rotational_stiffness(bodies.moment, bodies.weight, bodies.radius, row, stiffness, out, first)
    if not sweep(out, first, 6):
        work.good[0] = 0


@kernel
def invert_coarse(team, diagonal, A, bodies, shift, out, good):
    """Compute the inverses of the diagonal blocks of coarse matrices, 36 numbers each.

    Rotations that move no vertex are regularized by `_add_rotational_stiffness`.
    """
    parallel_for_rows(team, 0, 0, len(diagonal), InvertCoarse(diagonal, A, bodies, shift, out, good))


class Fill(NamedTuple):
    """Copy a row of 6×6 blocks into six rows of a dense square matrix, with shifted diagonal.

    Attributes:
        A: Block matrix of all coarse levels.
        first: First row of the last level.
        shift: (rows,) diagonal shift of all coarse rows.
        square: (n, n) output.
    """

    A: Any
    first: Any
    shift: Any
    square: Any


@do.of(Fill)
def _fill(work, item):
    A, first, square = work.A, work.first, work.square
    row = item_number(item)
    begin, _ = lane_stride(item)
    if begin > 0:
        return
    for a in range(6):
        for c in range(len(square)):
            square[6 * row + a, c] = 0.0
    for k in range(A.indptr[first + row], A.indptr[first + row + 1]):
        column = A.indices[k] - first
        for a in range(6):
            for b in range(6):
                square[6 * row + a, 6 * column + b] = A.blocks[k, 6 * a + b]
    for i in range(6 * row, 6 * row + 6):
        square[i, i] += work.shift[first + row]


class Pivot(NamedTuple):
    """Invert the p-th diagonal block, 36 numbers; clears `good` if it is not positive definite."""

    square: Any
    p: Any
    inverse: Any
    good: Any


@do.of(Pivot)
def _pivot(work, item):
    begin, _ = lane_stride(item)
    if begin > 0:
        return
    for a in range(6):
        for b in range(6):
            work.inverse[6 * a + b] = work.square[6 * work.p + a, 6 * work.p + b]
    if not sweep(work.inverse, 0, 6):
        work.good[0] = 0


class Eliminate(NamedTuple):
    """Update one matrix row by elimination of the p-th block of unknowns."""

    before: Any
    p: Any
    inverse: Any
    after: Any


@device_function
def _factor(work, row, b):
    """Factor of the b-th row of the pivot block in the elimination of this row."""
    first, inverse = 6 * work.p, work.inverse
    if row // 6 == work.p:
        return inverse[6 * (row - first) + b]
    total = 0.0
    for k in range(6):
        total -= work.before[row, first + k] * inverse[6 * k + b]
    return total


@do.of(Eliminate)
def _eliminate(work, item):
    """Update all columns, then overwrite the pivot columns: a loop without branches is fast."""
    row, first, before, after = item_number(item), 6 * work.p, work.before, work.after
    own = 0.0 if row // 6 == work.p else 1.0
    a, b, c = _factor(work, row, 0), _factor(work, row, 1), _factor(work, row, 2)
    d, e, f = _factor(work, row, 3), _factor(work, row, 4), _factor(work, row, 5)
    begin, step = lane_stride(item)
    k = begin
    while k < len(before):
        value = a * before[first, k] + b * before[first + 1, k] + c * before[first + 2, k]
        value += d * before[first + 3, k] + e * before[first + 4, k] + f * before[first + 5, k]
        after[row, k] = value + own * before[row, k]
        k += step
    k = begin + max(0, -(-(first - begin) // step)) * step
    while k < first + 6:
        after[row, k] = _factor(work, row, k - first)
        k += step


class Symmetrize(NamedTuple):
    """Symmetric part of a row, rounded to the precision of `out`."""

    square: Any
    out: Any


@do.of(Symmetrize)
def _symmetrize(work, item):
    row = item_number(item)
    k, step = lane_stride(item)
    while k < len(work.square):
        work.out[row, k] = 0.5 * (work.square[row, k] + work.square[k, row])
        k += step


def dense_phases(rows: int) -> int:
    """Number of phases of `invert_dense` for a level of `rows` rows."""
    return 2 * rows + 2


@kernel
def invert_dense(team, A, first, shift, squares, inverse, good, out):
    """Invert the matrix of the last level into `out`.

    Args:
        team: Thread team.
        A: 6×6 block matrix of all coarse levels.
        first: First row of the last level.
        shift: (rows,) diagonal shift.
        squares: Two work matrices (n, n).
        inverse: (36,) work array.
        good: (1,) set to 0 if a pivot is not positive definite.
        out: (n, n) inverse.
    """
    x, y = squares
    rows = len(out) // 6
    parallel_for(team, 0, 0, rows, Fill(A, first, shift, x))
    for p in range(rows):
        parallel_for(team, 2 * p + 1, 0, 1, Pivot(x, p, inverse, good))
        parallel_for(team, 2 * p + 2, 0, len(out), Eliminate(x, p, inverse, y))
        x, y = y, x
    parallel_for(team, 2 * rows + 1, 0, len(out), Symmetrize(x, out))
