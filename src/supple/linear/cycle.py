"""One V-cycle over the levels of aggregates: what the multilevel preconditioner does to a vector.

Smoothing is by Chebyshev polynomials of D⁻¹ A, D the diagonal blocks, before and after the correction by the
next coarser level, which is taken `over` times, since rigid aggregates make a body too stiff. Nothing depends
on an order of the rows; a residual is summed up over an aggregate as soon as it is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import (
    do,
    eight_at,
    four_at,
    pack_of_six,
    pack_of_three,
    passage,
    physics,
    put_pack,
)
from supple.linear.block_rows import residual_of_six, residual_of_three, times_six, times_three
from supple.linear.tiles import each_row

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


class SmoothFine(NamedTuple):
    """d = keep d + gain D⁻¹ (b - A x), y = x + d in a row."""

    A: Any
    x: Any
    y: Any
    keep: Any
    gain: Any


@do.of(SmoothFine)
def _smooth_fine(smooth, row):
    A, x = smooth.A, smooth.x
    a, b, c = residual_of_three(A, row, x)
    a, b, c = times_three(A.inverse, row, a, b, c)
    i = 4 * row
    d = smooth.keep * four_at(A.d, i) + smooth.gain * pack_of_three(a, b, c)
    put_pack(A.d, i, d)
    put_pack(smooth.y, i, four_at(x, i) + d)


class SmoothCoarse(NamedTuple):
    """As `SmoothFine`, in a row of a coarse level."""

    A: Any
    x: Any
    y: Any
    keep: Any
    gain: Any


@do.of(SmoothCoarse)
def _smooth_coarse(smooth, row):
    A, x = smooth.A, smooth.x
    a, b, c, d, e, f = residual_of_six(A, row, x)
    a, b, c, d, e, f = times_six(A.inverse, row, pack_of_six(a, b, c, d, e, f))
    i = 8 * row
    step = smooth.keep * eight_at(A.d, i) + smooth.gain * pack_of_six(a, b, c, d, e, f)
    put_pack(A.d, i, step)
    put_pack(smooth.y, i, eight_at(x, i) + step)


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


class Restrict(NamedTuple):
    """b of a coarse level: the residuals of the finer one summed up over each aggregate; and the first step
    of smoothing there."""

    fine: Any
    A: Any
    level: Any
    x_fine: Any
    x_coarse: Any
    gain: Any


@do.of(Restrict)
def _restrict(work, row):
    A = work.A
    zero = 0.0 * A.scale[row]
    v = (zero, zero, zero, zero, zero, zero)
    for c in range(A.child_start[row], A.child_start[row + 1]):
        if work.level == 0:
            v = _sum_three(work.fine, A.child[c], work.x_fine, v)
        else:
            v = _sum_six(A, A.child[c], work.x_coarse, v)
    put_pack(A.b, 8 * row, pack_of_six(v[0], v[1], v[2], v[3], v[4], v[5]))
    _begin_six(A, row, work.gain)


class SolveDense(NamedTuple):
    """x = A⁻¹ b on the last level, which begins at row `first`; a row is one of the inverse here."""

    A: Any
    first: Any


@do.of(SolveDense)
def _solve_dense(work, row):
    A, first = work.A, work.first
    total = 0.0 * A.dense[row, 0]
    for c in range(len(A.dense)):
        total += A.dense[row, c] * A.b[first + c // 6, c % 6]
    A.x[first + row // 6, row % 6] = total


@physics
def _six_at(x, i):
    return x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4], x[i, 5]


class ProlongFine(NamedTuple):
    """y = x + over P e, e the solution on the first coarse level."""

    fine: Any
    A: Any
    x: Any
    y: Any
    over: Any


@do.of(ProlongFine)
def _prolong_fine(work, i):
    x, y, parent = work.x, work.y, work.fine.parent[i]
    e, o = _six_at(work.A.x, max(parent, 0)), work.fine.offset
    far = work.over if parent >= 0 else 0.0 * work.over
    y[i, 0] = x[i, 0] + far * (e[0] + e[4] * o[i, 2] - e[5] * o[i, 1])
    y[i, 1] = x[i, 1] + far * (e[1] + e[5] * o[i, 0] - e[3] * o[i, 2])
    y[i, 2] = x[i, 2] + far * (e[2] + e[3] * o[i, 1] - e[4] * o[i, 0])


class ProlongCoarse(NamedTuple):
    """y = x + over T e, e the solution on the level after."""

    A: Any
    x: Any
    y: Any
    over: Any


@do.of(ProlongCoarse)
def _prolong_coarse(work, i):
    A, x, y, over = work.A, work.x, work.y, work.over
    e, o, s = _six_at(A.x, A.parent[i]), A.offset, over * A.scale[i]
    y[i, 0] = x[i, 0] + over * (e[0] + e[4] * o[i, 2] - e[5] * o[i, 1])
    y[i, 1] = x[i, 1] + over * (e[1] + e[5] * o[i, 0] - e[3] * o[i, 2])
    y[i, 2] = x[i, 2] + over * (e[2] + e[3] * o[i, 1] - e[4] * o[i, 0])
    y[i, 3], y[i, 4], y[i, 5] = x[i, 3] + s * e[3], x[i, 4] + s * e[4], x[i, 5] + s * e[5]


class BeginFine(NamedTuple):
    """b = r, records (f, 4), and the first step of smoothing."""

    fine: Any
    r: Any
    gain: Any


@do.of(BeginFine)
def _begin_fine(work, row):
    for c in range(3):
        work.fine.b[row, c] = work.r[row, c]
    _begin_three(work.fine, row, work.gain)


@passage
def _each_row_of(team, phase, A, level, work):
    """Do the work at the rows of a coarse level."""
    each_row(team, phase, A.start[level], A.start[level + 1], work)


@physics
def apply_cycle(team, phase, cycle, r):
    """M⁻¹ r into fine.x; returns the phase that follows."""
    fine, A, degree = cycle.fine, cycle.coarse, cycle.degree
    rows, levels = len(fine.parent), len(A.start) - 1
    dense = len(A.dense) > 0
    inverse, sigma, delta = chebyshev_start(cycle.radius[0])
    each_row(team, phase, 0, rows, BeginFine(fine, r, inverse))
    phase += 1
    x, y, last = fine.x, fine.y, 1.0 / sigma
    for _ in range(degree - 1):
        rho = 1.0 / (2.0 * sigma - last)
        each_row(team, phase, 0, rows, SmoothFine(fine, x, y, rho * last, 2.0 * rho / delta))
        last = rho
        x, y = y, x
        phase += 1
    u, v = A.x, A.y
    for level in range(levels):
        inverse, sigma, delta = chebyshev_start(cycle.radius[level + 1])
        _each_row_of(team, phase, A, level, Restrict(fine, A, level, x, u, inverse))
        phase += 1
        u, v, last = A.x, A.y, 1.0 / sigma
        if level == levels - 1 and dense:
            each_row(team, phase, 0, len(A.dense), SolveDense(A, A.start[level]))
            phase += 1
        else:
            steps = degree - 1 if level < levels - 1 else _steps_at_the_end(degree)
            for _ in range(steps):
                rho = 1.0 / (2.0 * sigma - last)
                _each_row_of(team, phase, A, level, SmoothCoarse(A, u, v, rho * last, 2.0 * rho / delta))
                last = rho
                u, v = v, u
                phase += 1
    for level in range(levels - 2, -1, -1):
        phase = _rise_coarse(team, phase, cycle, level)
    each_row(team, phase, 0, rows, ProlongFine(fine, A, x, y, cycle.over))
    phase += 1
    x, y = y, x
    inverse, sigma, delta = chebyshev_start(cycle.radius[0])
    keep, gain, last = 0.0, inverse, 1.0 / sigma
    for _ in range(degree):
        each_row(team, phase, 0, rows, SmoothFine(fine, x, y, keep, gain))
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
    _each_row_of(team, phase, A, level, ProlongCoarse(A, u, v, cycle.over))
    phase += 1
    u, v = v, u
    inverse, sigma, delta = chebyshev_start(cycle.radius[level + 1])
    keep, gain, last = 0.0, inverse, 1.0 / sigma
    for _ in range(degree):
        _each_row_of(team, phase, A, level, SmoothCoarse(A, u, v, keep, gain))
        rho = 1.0 / (2.0 * sigma - last)
        keep, gain, last = rho * last, 2.0 * rho / delta, rho
        u, v = v, u
        phase += 1
    return phase
