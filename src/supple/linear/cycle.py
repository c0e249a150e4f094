"""One V-cycle over the levels of aggregates: what the multilevel preconditioner does to a vector.

Smoothing is by Chebyshev polynomials of D⁻¹ A, D the diagonal blocks, before and after the correction by the
next coarser level, which is taken `over` times, since rigid aggregates make a body too stiff. Nothing depends
on an order of the rows; a residual is summed up over an aggregate as soon as it is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import enter, inside, leave, pack_of_six, physics, proceed, put_pack
from supple.linear.rigid import tile_of, tiles
from supple.linear.smoothing import (
    begin_six,
    begin_three,
    chebyshev_start,
    residual_of_six,
    residual_of_three,
    smooth_coarse,
    smooth_fine,
)


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
            begin_six(A, row, gain)
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
            begin_three(fine, row, gain)
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
        smooth_fine(team, phase, fine, x, y, rho * last, 2.0 * rho / delta)
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
                smooth_coarse(team, phase, A, level, u, v, rho * last, 2.0 * rho / delta)
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
        smooth_fine(team, phase, fine, x, y, keep, gain)
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
        smooth_coarse(team, phase, A, level, u, v, keep, gain)
        rho = 1.0 / (2.0 * sigma - last)
        keep, gain, last = rho * last, 2.0 * rho / delta, rho
        u, v = v, u
        phase += 1
    return phase
