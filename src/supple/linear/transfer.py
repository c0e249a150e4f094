"""Transfer between levels: restriction of residuals to aggregates and prolongation of their motions."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import (
    device_function,
    do,
    generic,
    is_writer,
    pack_like,
    pack_of_six,
    pack_of_three,
    row_range,
    store_vector,
)
from supple.linear.block_matrix import Ones, Sixes, Threes, apply_inverse, reduce_row, vector_at


@device_function
def begin_row(level, row, gain, b):
    """Set b, a pack, in a row and take the first smoothing step from x = 0: x = d = gain D⁻¹ b."""
    store_vector(level.b, row, b)
    d = gain * apply_inverse(
        level.A, level.inverse, row, vector_at(level.A, level.b, row)
    )  # b as stored, rounded
    store_vector(level.x, row, d)
    store_vector(level.d, row, d)


@generic
def restrict_row(A, level, i, r):
    """Contribution of row i of the residual r to its aggregate, as a pack."""


@restrict_row.of(Ones)
def _restrict_one(A, level, i, r):
    return vector_at(A, r, i)


@restrict_row.of(Threes)
def _restrict_three(A, level, i, r):
    """Pᵀ r, P = [I | -[o]×]."""
    o, a, b, c = level.offset, r[i, 0], r[i, 1], r[i, 2]
    x, y, z = o[i, 0], o[i, 1], o[i, 2]
    return pack_of_six(a, b, c, y * c - z * b, z * a - x * c, x * b - y * a)


@restrict_row.of(Sixes)
def _restrict_six(A, level, i, r):
    """Tᵀ r, T = [[I, -[o]×], [0, s I]]."""
    o, s, a, b, c = level.offset, level.scale[i], r[i, 0], r[i, 1], r[i, 2]
    x, y, z = o[i, 0], o[i, 1], o[i, 2]
    return pack_of_six(
        a, b, c, y * c - z * b + s * r[i, 3], z * a - x * c + s * r[i, 4], x * b - y * a + s * r[i, 5]
    )


@generic
def prolong_row(A, level, i, e, parent):
    """Motion of row i due to the motion e[parent] of its aggregate, as a pack."""


@prolong_row.of(Ones)
def _prolong_one(A, level, i, e, parent):
    return vector_at(A, e, parent)


@prolong_row.of(Threes)
def _prolong_three(A, level, i, e, k):
    o = level.offset
    return pack_of_three(
        e[k, 0] + e[k, 4] * o[i, 2] - e[k, 5] * o[i, 1],
        e[k, 1] + e[k, 5] * o[i, 0] - e[k, 3] * o[i, 2],
        e[k, 2] + e[k, 3] * o[i, 1] - e[k, 4] * o[i, 0],
    )


@prolong_row.of(Sixes)
def _prolong_six(A, level, i, e, k):
    o, s = level.offset, level.scale[i]
    return pack_of_six(
        e[k, 0] + e[k, 4] * o[i, 2] - e[k, 5] * o[i, 1],
        e[k, 1] + e[k, 5] * o[i, 0] - e[k, 3] * o[i, 2],
        e[k, 2] + e[k, 3] * o[i, 1] - e[k, 4] * o[i, 0],
        s * e[k, 3],
        s * e[k, 4],
        s * e[k, 5],
    )


class Restrict(NamedTuple):
    """Sum the residuals r of an aggregate into b of its coarse row, and take its first smoothing step."""

    level: Any
    r: Any
    coarse: Any
    child_start: Any
    child: Any
    gain: Any


@do.of(Restrict)
def _restrict(work, at):
    coarse, level, row = work.coarse, work.level, at.row
    first, last, step = row_range(work.child_start, at)
    b = pack_like(0.0, vector_at(coarse.A, coarse.b, row))
    for k in range(first, last, step):
        b = b + restrict_row(level.A, level, work.child[k], work.r)
    b = reduce_row(coarse.A, at, b)
    if is_writer(at):
        begin_row(coarse, row, work.gain, b)


class Prolong(NamedTuple):
    """y = x + over P e in a row, with the coarse correction e."""

    level: Any
    e: Any
    x: Any
    y: Any
    over: Any


@do.of(Prolong)
def _prolong(work, row):
    level = work.level
    parent, x = level.parent[row], vector_at(level.A, work.x, row)
    if parent >= 0:
        x = x + work.over * prolong_row(level.A, level, row, work.e, parent)
    store_vector(work.y, row, x)
