"""One V-cycle over the levels of aggregates: what the multilevel preconditioner does to a vector.

Smoothing is by Chebyshev polynomials of D⁻¹ A, D the diagonal blocks, before and after the correction by the
next coarser level, which is taken `over` times, since aggregates make a body too stiff. Nothing depends on an
order of the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import (
    do,
    each_item,
    each_shared_row,
    lane_total,
    number,
    passage,
    physics,
    put_vector,
    strides,
    writes,
)
from supple.linear.block_rows import divided, product, vector_at
from supple.linear.tiles import each_row
from supple.linear.transfer import Prolong, Restrict

SPREAD = 8.0
"""Smoothing is for eigenvalues between the largest one, and that divided by this."""


class Level(NamedTuple):
    """A matrix A, the inverses of its diagonal blocks, and the motions of its rows' aggregates: parent
    (rows,), negative for none; offset (rows, 3) and scale (rows,) where aggregates turn, else (). b, x, y, d:
    vectors for the cycle."""

    A: Any
    inverse: Any
    parent: Any
    offset: Any
    scale: Any
    b: Any
    x: Any
    y: Any
    d: Any


class Cycle(NamedTuple):
    """fine: the matrix itself; coarse: all levels above, whose rows stand one after the other from
    start[level] on; child_start and child: see `Levels`; dense (n, n): the inverse of the last level's
    matrix, or empty. radius (levels + 1,): the largest eigenvalue of D⁻¹ A of each level, the fine one's
    first; degree of smoothing; over: how far to go along coarse corrections."""

    fine: Any
    coarse: Any
    start: Any
    child_start: Any
    child: Any
    dense: Any
    radius: Any
    degree: Any
    over: Any


def cycle_phases(levels: int, degree: int, dense: bool) -> int:
    """Phases of `apply_cycle` with that many coarse levels."""
    return levels * (2 * degree + 2) + (1 if dense else _steps_at_the_end(degree))


@physics
def _steps_at_the_end(degree):
    """Further steps of smoothing on the last level where that is no dense one: an even number, so that they
    end where they began."""
    return degree - 1 + (degree - 1) % 2


@physics
def chebyshev_start(radius):
    """(1/θ, σ, δ) of the interval [radius/SPREAD, radius]: the first step is D⁻¹ r/θ."""
    low = radius / SPREAD
    theta, delta = 0.5 * (radius + low), 0.5 * (radius - low)
    return 1.0 / theta, theta / delta, delta


class Smooth(NamedTuple):
    """d = keep d + gain D⁻¹ (b - A x), y = x + d in a row."""

    level: Any
    x: Any
    y: Any
    keep: Any
    gain: Any


@do.of(Smooth)
def _smooth(work, at):
    level, row = work.level, at.row
    A, x = level.A, work.x
    r = vector_at(A, level.b, row) - product(A, at, x)
    d = work.keep * vector_at(A, level.d, row) + work.gain * divided(A, level.inverse, row, r)
    if writes(at):
        put_vector(level.d, row, d)
        put_vector(work.y, row, vector_at(A, x, row) + d)


class Residual(NamedTuple):
    """r = b - A x in a row."""

    level: Any
    x: Any
    r: Any


@do.of(Residual)
def _residual(work, at):
    level, row = work.level, at.row
    r = vector_at(level.A, level.b, row) - product(level.A, at, work.x)
    if writes(at):
        put_vector(work.r, row, r)


class SolveDense(NamedTuple):
    """x = A⁻¹ b on the last level, which begins at row `first`; an item is a row of the inverse here, of
    `width` of which each row of the matrix has one; `columns` of the vectors are solved for."""

    coarse: Any
    dense: Any
    first: Any
    width: Any
    columns: Any


@do.of(SolveDense)
def _solve_dense(work, place):
    dense, b, row, width = work.dense, work.coarse.b, number(place), work.width
    begin, step = strides(place)
    for column in range(work.columns):
        total = 0.0
        c = begin
        while c < len(dense):
            total += dense[row, c] * b[work.first + c // width, column + c % width]
            c += step
        total = lane_total(place, total)
        if begin == 0:
            work.coarse.x[work.first + row // width, column + row % width] = total


@physics
def either(flip, level):
    """(x, y) of a level, or (y, x)."""
    return (level.y, level.x) if flip else (level.x, level.y)


@passage
def _smooth_rows(team, phase, level, first, last, flip, keep, gain):
    x, y = either(flip, level)
    each_shared_row(team, phase, first, last, Smooth(level, x, y, keep, gain))


@passage
def _restrict_rows(team, phase, level, first, last, flip, cycle, above, gain):
    """Residuals of rows first, ..., last - 1, and the beginning of the level above."""
    x, r = either(flip, level)
    each_shared_row(team, phase, first, last, Residual(level, x, r))
    work = Restrict(level, r, cycle.coarse, cycle.child_start, cycle.child, gain)
    each_shared_row(team, phase + 1, cycle.start[above], cycle.start[above + 1], work)


@passage
def _prolong_rows(team, phase, level, first, last, flip, cycle):
    x, y = either(flip, level)
    each_row(team, phase, first, last, Prolong(level, cycle.coarse.x, x, y, cycle.over))


@passage
def apply_cycle(team, phase, cycle):
    """M⁻¹ b into fine.x, where `begin_row` has done every row of the fine level; returns the phase that
    follows. Leg after leg: down to the last level, and up again."""
    fine, coarse, start, degree = cycle.fine, cycle.coarse, cycle.start, cycle.degree
    rows, levels, dense = len(fine.parent), len(start) - 1, len(cycle.dense)
    for leg in range(2 * levels + 1):
        rising = leg > levels
        level = 2 * levels - leg if rising else leg
        last = level == levels
        begin, end = (start[level - 1], start[level]) if level > 0 else (0, rows)
        inverse, sigma, delta = chebyshev_start(cycle.radius[level])
        before, flip, steps = 1.0 / sigma, False, degree - 1
        rho = 1.0 / (2.0 * sigma - before)
        keep, gain = rho * before, 2.0 * rho / delta
        if rising:
            flip, steps = (degree - 1) % 2 == 1, degree
            if level > 0:
                _prolong_rows(team, phase, coarse, begin, end, flip, cycle)
            else:
                _prolong_rows(team, phase, fine, begin, end, flip, cycle)
            phase += 1
            flip = not flip
            rho, keep, gain = before, 0.0, inverse
        if last and dense > 0:
            width = dense // (end - begin)
            columns = 1 if width > 1 else 3
            each_item(team, phase, 0, dense, SolveDense(coarse, cycle.dense, begin, width, columns))
            phase += 1
            steps = 0
        elif last:
            steps = _steps_at_the_end(degree)
        for _ in range(steps):
            if level > 0:
                _smooth_rows(team, phase, coarse, begin, end, flip, keep, gain)
            else:
                _smooth_rows(team, phase, fine, begin, end, flip, keep, gain)
            following = 1.0 / (2.0 * sigma - rho)
            keep, gain, rho = following * rho, 2.0 * following / delta, following
            flip = not flip
            phase += 1
        if leg < levels:
            above, _, _ = chebyshev_start(cycle.radius[level + 1])
            if level > 0:
                _restrict_rows(team, phase, coarse, begin, end, flip, cycle, level, above)
            else:
                _restrict_rows(team, phase, fine, begin, end, flip, cycle, level, above)
            phase += 2
    return phase
