"""One V-cycle over the levels of aggregates: what the multilevel preconditioner does to a vector.

Smoothing is by Chebyshev polynomials of D⁻¹ A, D the diagonal blocks, before and after the correction by the
next coarser level, which is taken `over` times, since rigid aggregates make a body too stiff. Nothing depends
on an order of the rows; a residual is summed up over an aggregate as soon as it is known.
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


class Cycle(NamedTuple):
    """radius (levels + 1,): the largest eigenvalue of D⁻¹ A of each level, the fine one's first; degree of
    smoothing; over: how far to go along coarse corrections."""

    fine: Any
    coarse: Any
    radius: Any
    degree: Any
    over: Any


def cycle_phases(levels: int, degree: int, dense: bool) -> int:
    """Phases of `apply_cycle` with that many coarse levels."""
    last = 1 if dense else _steps_at_the_end(degree)
    return 2 * degree * levels + 1 + levels + last


@physics
def _steps_at_the_end(degree):
    """Further steps of smoothing on the last level where that is no dense one: an even number, so that they
    end where they began."""
    return degree - 1 + (degree - 1) % 2


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
def _smooth_fine(team, phase, A, x, y, keep, gain):
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
def _smooth_coarse(team, phase, A, level, x, y, keep, gain):
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
def _begin_three(A, row, gain):
    """The first step from x = 0: x = d = gain D⁻¹ b."""
    i = 4 * row
    a, b, c = times_three(A.inverse, row, A.b[row, 0], A.b[row, 1], A.b[row, 2])
    d = gain * pack_of_three(a, b, c)
    put_pack(A.x, i, d)
    put_pack(A.d, i, d)


@physics
def _begin_six(A, row, gain):
    a, b, c, d, e, f = times_six(A.inverse, row, eight_at(A.b, 8 * row))
    step = gain * pack_of_six(a, b, c, d, e, f)
    put_pack(A.x, 8 * row, step)
    put_pack(A.d, 8 * row, step)


@physics
def _sum_three(fine, i, x, v):
    """v + Pᵢᵀ (b - A x)ᵢ."""
    a, b, c = residual_of_three(fine, i, x)
    o = fine.offset
    return (
        v[0] + a,
        v[1] + b,
        v[2] + c,
        v[3] + o[i, 1] * c - o[i, 2] * b,
        v[4] + o[i, 2] * a - o[i, 0] * c,
        v[5] + o[i, 0] * b - o[i, 1] * a,
    )


@physics
def _sum_six(A, i, x, v):
    """v + Tᵢᵀ (b - A x)ᵢ."""
    a, b, c, d, e, f = residual_of_six(A, i, x)
    o, s = A.offset, A.scale[i]
    return (
        v[0] + a,
        v[1] + b,
        v[2] + c,
        v[3] + o[i, 1] * c - o[i, 2] * b + s * d,
        v[4] + o[i, 2] * a - o[i, 0] * c + s * e,
        v[5] + o[i, 0] * b - o[i, 1] * a + s * f,
    )


@physics
def _restrict(team, phase, fine, A, level, x_fine, x_coarse, gain):
    """b of a coarse level: the residuals of the finer one summed up over each aggregate; and the first step
    of smoothing there."""
    first, last = A.start[level], A.start[level + 1]
    count = tiles(last - first)
    place = enter(team, phase, 0, count)
    while inside(place, count):
        row, end, step = tile_of(place, first, last)
        while row < end:
            zero = 0.0 * A.scale[row]
            v = (zero, zero, zero, zero, zero, zero)
            for c in range(A.child_start[row], A.child_start[row + 1]):
                if level == 0:
                    v = _sum_three(fine, A.child[c], x_fine, v)
                else:
                    v = _sum_six(A, A.child[c], x_coarse, v)
            put_pack(A.b, 8 * row, pack_of_six(v[0], v[1], v[2], v[3], v[4], v[5]))
            _begin_six(A, row, gain)
            row += step
        place = proceed(team, phase, place, 0, count)
    leave(team, phase, 0, count)


@physics
def _solve_dense(team, phase, A, level):
    """x = A⁻¹ b on the last level."""
    n = len(A.dense)
    place = enter(team, phase, 0, tiles(n))
    while inside(place, tiles(n)):
        row, end, step = tile_of(place, 0, n)
        while row < end:
            total = 0.0 * A.dense[row, 0]
            for c in range(n):
                total += A.dense[row, c] * A.b[A.start[level] + c // 6, c % 6]
            A.x[A.start[level] + row // 6, row % 6] = total
            row += step
        place = proceed(team, phase, place, 0, tiles(n))
    leave(team, phase, 0, tiles(n))


@physics
def _six_at(x, i):
    return x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4], x[i, 5]


@physics
def _prolong_fine(team, phase, fine, A, x, y, over):
    """y = x + over P e, e the solution on the first coarse level."""
    rows = len(fine.parent)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        i, end, step = tile_of(place, 0, rows)
        while i < end:
            parent = fine.parent[i]
            e, o, far = _six_at(A.x, max(parent, 0)), fine.offset, over if parent >= 0 else 0.0 * over
            y[i, 0] = x[i, 0] + far * (e[0] + e[4] * o[i, 2] - e[5] * o[i, 1])
            y[i, 1] = x[i, 1] + far * (e[1] + e[5] * o[i, 0] - e[3] * o[i, 2])
            y[i, 2] = x[i, 2] + far * (e[2] + e[3] * o[i, 1] - e[4] * o[i, 0])
            i += step
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@physics
def _prolong_coarse(team, phase, A, level, x, y, over):
    """The same from the level after."""
    first, last = A.start[level], A.start[level + 1]
    count = tiles(last - first)
    place = enter(team, phase, 0, count)
    while inside(place, count):
        i, end, step = tile_of(place, first, last)
        while i < end:
            e, o, s = _six_at(A.x, A.parent[i]), A.offset, over * A.scale[i]
            y[i, 0] = x[i, 0] + over * (e[0] + e[4] * o[i, 2] - e[5] * o[i, 1])
            y[i, 1] = x[i, 1] + over * (e[1] + e[5] * o[i, 0] - e[3] * o[i, 2])
            y[i, 2] = x[i, 2] + over * (e[2] + e[3] * o[i, 1] - e[4] * o[i, 0])
            y[i, 3], y[i, 4], y[i, 5] = x[i, 3] + s * e[3], x[i, 4] + s * e[4], x[i, 5] + s * e[5]
            i += step
        place = proceed(team, phase, place, 0, count)
    leave(team, phase, 0, count)


@physics
def begin_fine(team, phase, fine, radius, r):
    """b = r, records (f, 4), and the first step of smoothing."""
    gain = chebyshev_start(radius)[0]
    rows = len(fine.parent)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            for c in range(3):
                fine.b[row, c] = r[row, c]
            _begin_three(fine, row, gain)
            row += step
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@physics
def apply_cycle(team, phase, cycle, r):
    """M⁻¹ r into fine.x; returns the phase that follows."""
    fine, A, degree = cycle.fine, cycle.coarse, cycle.degree
    levels = len(A.start) - 1
    dense = len(A.dense) > 0
    begin_fine(team, phase, fine, cycle.radius[0], r)
    phase += 1
    _, sigma, delta = chebyshev_start(cycle.radius[0])
    x, y, last = fine.x, fine.y, 1.0 / sigma
    for _ in range(degree - 1):
        rho = 1.0 / (2.0 * sigma - last)
        _smooth_fine(team, phase, fine, x, y, rho * last, 2.0 * rho / delta)
        last = rho
        x, y = y, x
        phase += 1
    u, v = A.x, A.y
    for level in range(levels):
        inverse, sigma, delta = chebyshev_start(cycle.radius[level + 1])
        _restrict(team, phase, fine, A, level, x, u, inverse)
        phase += 1
        u, v, last = A.x, A.y, 1.0 / sigma
        if level == levels - 1 and dense:
            _solve_dense(team, phase, A, level)
            phase += 1
        else:
            steps = degree - 1 if level < levels - 1 else _steps_at_the_end(degree)
            for _ in range(steps):
                rho = 1.0 / (2.0 * sigma - last)
                _smooth_coarse(team, phase, A, level, u, v, rho * last, 2.0 * rho / delta)
                last = rho
                u, v = v, u
                phase += 1
    for level in range(levels - 2, -1, -1):
        phase = _rise_coarse(team, phase, cycle, level)
    _prolong_fine(team, phase, fine, A, x, y, cycle.over)
    phase += 1
    x, y = y, x
    inverse, sigma, delta = chebyshev_start(cycle.radius[0])
    keep, gain, last = 0.0, inverse, 1.0 / sigma
    for _ in range(degree):
        _smooth_fine(team, phase, fine, x, y, keep, gain)
        rho = 1.0 / (2.0 * sigma - last)
        keep, gain, last = rho * last, 2.0 * rho / delta, rho
        x, y = y, x
        phase += 1
    return phase


@physics
def _rise_coarse(team, phase, cycle, level):
    """Correct a coarse level by the one after it, and smooth: from where `apply_cycle` left it to x."""
    A, degree = cycle.coarse, cycle.degree
    even = degree % 2 == 0
    u, v = (A.y, A.x) if even else (A.x, A.y)
    _prolong_coarse(team, phase, A, level, u, v, cycle.over)
    phase += 1
    u, v = v, u
    inverse, sigma, delta = chebyshev_start(cycle.radius[level + 1])
    keep, gain, last = 0.0, inverse, 1.0 / sigma
    for _ in range(degree):
        _smooth_coarse(team, phase, A, level, u, v, keep, gain)
        rho = 1.0 / (2.0 * sigma - last)
        keep, gain, last = rho * last, 2.0 * rho / delta, rho
        u, v = v, u
        phase += 1
    return phase
