"""Dense inverse of the last level's matrix by block Gauss-Jordan elimination without pivoting."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import do, each_item, kernel, number, physics, strides
from supple.linear.inverses import sweep


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
def _fill(work, place):
    A, first, square = work.A, work.first, work.square
    row = number(place)
    begin, _ = strides(place)
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
def _pivot(work, place):
    begin, _ = strides(place)
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


@physics
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
def _eliminate(work, place):
    """Update all columns, then overwrite the pivot columns: a loop without branches is fast."""
    row, first, before, after = number(place), 6 * work.p, work.before, work.after
    own = 0.0 if row // 6 == work.p else 1.0
    a, b, c = _factor(work, row, 0), _factor(work, row, 1), _factor(work, row, 2)
    d, e, f = _factor(work, row, 3), _factor(work, row, 4), _factor(work, row, 5)
    begin, step = strides(place)
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


class Even(NamedTuple):
    """Symmetric part of a row, rounded to the precision of `out`."""

    square: Any
    out: Any


@do.of(Even)
def _even(work, place):
    row = number(place)
    k, step = strides(place)
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
    each_item(team, 0, 0, rows, Fill(A, first, shift, x))
    for p in range(rows):
        each_item(team, 2 * p + 1, 0, 1, Pivot(x, p, inverse, good))
        each_item(team, 2 * p + 2, 0, len(out), Eliminate(x, p, inverse, y))
        x, y = y, x
    each_item(team, 2 * rows + 1, 0, len(out), Even(x, out))
