"""Smoothing on one level: Chebyshev polynomials of D⁻¹ A, D the diagonal blocks of A.

Rows of blocks are multiplied as short packs: three numbers of a 3×3 block and one more, six of a 6×6 block
and two more, with vectors that have zeros there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import (
    eight_at,
    enter,
    four_at,
    inside,
    leave,
    number_at,
    ordered,
    pack_like,
    pack_of_six,
    pack_of_three,
    physics,
    proceed,
    put_pack,
    six_sum,
    three_sum,
)
from supple.linear.rigid import tile_of, tiles

SPREAD = 8.0
"""Smoothing is for eigenvalues between the largest one, and that divided by this."""


class Fine(NamedTuple):
    """A matrix of 3×3 blocks, the inverses (f, 9) of its diagonal, and the motions of its rows' aggregates:
    parent (f,), negative for none, offset (f, 3). b, x, y, d (f, 4): vectors for the cycle. Blocks have some
    numbers after them that are read but do not matter; what is fourth in a vector is 0."""

    indptr: Any
    indices: Any
    blocks: Any
    inverse: Any
    parent: Any
    offset: Any
    b: Any
    x: Any
    y: Any
    d: Any


class Coarse(NamedTuple):
    """The same for all coarse levels, whose rows stand one after the other from start[level] on, with 6×6
    blocks and vectors (rows, 8); child_start and child: see `Levels`; dense (n, n): the inverse of the last
    level's matrix, or empty."""

    start: Any
    child_start: Any
    child: Any
    indptr: Any
    indices: Any
    blocks: Any
    inverse: Any
    parent: Any
    offset: Any
    scale: Any
    b: Any
    x: Any
    y: Any
    d: Any
    dense: Any


@physics
def residual_of_three(A, row, x):
    """b - A x in a row of 3×3 blocks."""
    a, b, c = row_times(A.indptr, A.indices, A.blocks, row, x)
    i = 4 * row
    return number_at(A.b, i) - a, number_at(A.b, i + 1) - b, number_at(A.b, i + 2) - c


@physics
def row_times(indptr, indices, blocks, row, x):
    """A row of 3×3 blocks times records x."""
    p = q = r = pack_like(0.0, four_at(x, 4 * row))
    for k in range(indptr[row], indptr[row + 1]):
        y = four_at(x, 4 * indices[k])
        p = p + four_at(blocks, 9 * k) * y
        q = q + four_at(blocks, 9 * k + 3) * y
        r = r + four_at(blocks, 9 * k + 6) * y
    return three_sum(p), three_sum(q), three_sum(r)


@ordered
def times_three(D, row, a, b, c):
    """D_row (a, b, c)."""
    return (
        D[row, 0] * a + D[row, 1] * b + D[row, 2] * c,
        D[row, 3] * a + D[row, 4] * b + D[row, 5] * c,
        D[row, 6] * a + D[row, 7] * b + D[row, 8] * c,
    )


@physics
def times_six(A, k, x):
    """A_k x for a 6×6 block and a pack of six numbers and two zeros."""
    at = 36 * k
    return (
        six_sum(eight_at(A, at) * x),
        six_sum(eight_at(A, at + 6) * x),
        six_sum(eight_at(A, at + 12) * x),
        six_sum(eight_at(A, at + 18) * x),
        six_sum(eight_at(A, at + 24) * x),
        six_sum(eight_at(A, at + 30) * x),
    )


@physics
def residual_of_six(A, row, x):
    """b - A x in a row of 6×6 blocks."""
    blocks, i = A.blocks, 8 * row
    p = q = r = s = t = u = pack_like(0.0, eight_at(A.b, i))
    for k in range(A.indptr[row], A.indptr[row + 1]):
        y, at = eight_at(x, 8 * A.indices[k]), 36 * k
        p = p + eight_at(blocks, at) * y
        q = q + eight_at(blocks, at + 6) * y
        r = r + eight_at(blocks, at + 12) * y
        s = s + eight_at(blocks, at + 18) * y
        t = t + eight_at(blocks, at + 24) * y
        u = u + eight_at(blocks, at + 30) * y
    return (
        number_at(A.b, i) - six_sum(p),
        number_at(A.b, i + 1) - six_sum(q),
        number_at(A.b, i + 2) - six_sum(r),
        number_at(A.b, i + 3) - six_sum(s),
        number_at(A.b, i + 4) - six_sum(t),
        number_at(A.b, i + 5) - six_sum(u),
    )


@physics
def _smooth_three(A, row, x, y, keep, gain):
    """d = keep d + gain D⁻¹ (b - A x), y = x + d in a row."""
    a, b, c = residual_of_three(A, row, x)
    a, b, c = times_three(A.inverse, row, a, b, c)
    i = 4 * row
    d = keep * four_at(A.d, i) + gain * pack_of_three(a, b, c)
    put_pack(A.d, i, d)
    put_pack(y, i, four_at(x, i) + d)


@physics
def _smooth_six(A, row, x, y, keep, gain):
    a, b, c, d, e, f = residual_of_six(A, row, x)
    a, b, c, d, e, f = times_six(A.inverse, row, pack_of_six(a, b, c, d, e, f))
    i = 8 * row
    step = keep * eight_at(A.d, i) + gain * pack_of_six(a, b, c, d, e, f)
    put_pack(A.d, i, step)
    put_pack(y, i, eight_at(x, i) + step)


@physics
def smooth_fine(team, phase, A, x, y, keep, gain):
    rows = len(A.parent)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            _smooth_three(A, row, x, y, keep, gain)
            row += step
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@physics
def smooth_coarse(team, phase, A, level, x, y, keep, gain):
    first, last = A.start[level], A.start[level + 1]
    count = tiles(last - first)
    place = enter(team, phase, 0, count)
    while inside(place, count):
        row, end, step = tile_of(place, first, last)
        while row < end:
            _smooth_six(A, row, x, y, keep, gain)
            row += step
        place = proceed(team, phase, place, 0, count)
    leave(team, phase, 0, count)


@physics
def chebyshev_start(radius):
    """(1/θ, σ, δ) of the interval [radius/SPREAD, radius]: the first step is D⁻¹ r/θ."""
    low = radius / SPREAD
    theta, delta = 0.5 * (radius + low), 0.5 * (radius - low)
    return 1.0 / theta, theta / delta, delta


@physics
def begin_three(A, row, gain):
    """The first step from x = 0: x = d = gain D⁻¹ b."""
    i = 4 * row
    a, b, c = times_three(A.inverse, row, A.b[row, 0], A.b[row, 1], A.b[row, 2])
    d = gain * pack_of_three(a, b, c)
    put_pack(A.x, i, d)
    put_pack(A.d, i, d)


@physics
def begin_six(A, row, gain):
    a, b, c, d, e, f = times_six(A.inverse, row, eight_at(A.b, 8 * row))
    step = gain * pack_of_six(a, b, c, d, e, f)
    put_pack(A.x, 8 * row, step)
    put_pack(A.d, 8 * row, step)
