"""V-cycle of the multilevel preconditioner over the levels of aggregates, with its transfers.

Each level is smoothed by Chebyshev polynomials of D⁻¹ A, with D the diagonal blocks, before and after the
coarse correction. The coarse correction is scaled by the factor `over`, since rigid aggregates are too stiff.
The result does not depend on the order of the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import (
    device_function,
    do,
    generic,
    inline_control,
    is_writer,
    item_number,
    lane_stride,
    pack_like,
    pack_of_six,
    pack_of_three,
    parallel_for,
    parallel_for_shared_rows,
    row_range,
    store_vector,
    warp_sum,
)
from supple.kernels.parallel.parallel_for import parallel_for_rows
from supple.linear.block_matrix import (
    Blocks3x3,
    Blocks6x6,
    ScalarEntries,
    apply_inverse,
    product,
    reduce_row,
    vector_at,
)

SMOOTHED_SPECTRUM_RATIO = 8.0
"""Ratio of the largest eigenvalue to the smallest eigenvalue damped by the smoother."""


class Level(NamedTuple):
    """Matrix of a level, inverses of its diagonal blocks and motions of its rows' aggregates.

    Attributes:
        A: Block matrix.
        inverse: Inverses of the diagonal blocks.
        parent: (rows,) aggregate of each row, negative for none.
        offset, scale: (rows, 3) and (rows,) if aggregates rotate, otherwise ().
        b, x, y, d: Work vectors of the cycle.
    """

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
    """Levels and parameters of a V-cycle.

    Attributes:
        fine: Level of the matrix itself.
        coarse: All coarse levels; the rows of level k start at start[k].
        start, child_start, child: Row ranges and aggregates, see `Levels`.
        dense: (n, n) inverse of the last level's matrix, or empty.
        radius: (levels + 1,) largest eigenvalue of D⁻¹ A of each level, starting with the fine level.
        degree: Degree of the smoothing polynomial.
        over: Scaling factor of coarse corrections.
    """

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
    """Number of phases of `apply_cycle`.

    Args:
        levels: Number of coarse levels.
        degree: Degree of the smoothing polynomial.
        dense: True if the last level is solved by its inverse.
    """
    return levels * (2 * degree + 2) + (1 if dense else _steps_at_the_end(degree))


@device_function
def _steps_at_the_end(degree):
    """Additional smoothing steps on a last level without inverse; an even number, so that x ends in its own
    buffer."""
    return degree - 1 + (degree - 1) % 2


@device_function
def chebyshev_start(radius):
    """(1/θ, σ, δ) of the interval [radius/SMOOTHED_SPECTRUM_RATIO, radius]; the first step is D⁻¹ r/θ."""
    low = radius / SMOOTHED_SPECTRUM_RATIO
    theta, delta = 0.5 * (radius + low), 0.5 * (radius - low)
    return 1.0 / theta, theta / delta, delta


class Smooth(NamedTuple):
    """Smoothing step of a row: d = keep d + gain D⁻¹ (b - A x), y = x + d."""

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
    d = work.keep * vector_at(A, level.d, row) + work.gain * apply_inverse(A, level.inverse, row, r)
    if is_writer(at):
        store_vector(level.d, row, d)
        store_vector(work.y, row, vector_at(A, x, row) + d)


class Residual(NamedTuple):
    """Residual of a row: r = b - A x."""

    level: Any
    x: Any
    r: Any


@do.of(Residual)
def _residual(work, at):
    level, row = work.level, at.row
    r = vector_at(level.A, level.b, row) - product(level.A, at, work.x)
    if is_writer(at):
        store_vector(work.r, row, r)


class SolveDense(NamedTuple):
    """Solve x = A⁻¹ b on the last level; one work item per row of the inverse.

    Attributes:
        coarse: Coarse levels.
        dense: (n, n) inverse.
        first: First row of the last level.
        width: Number of rows of the inverse per matrix row.
        columns: Number of right-hand sides.
    """

    coarse: Any
    dense: Any
    first: Any
    width: Any
    columns: Any


@do.of(SolveDense)
def _solve_dense(work, item):
    dense, b, row, width = work.dense, work.coarse.b, item_number(item), work.width
    begin, step = lane_stride(item)
    for column in range(work.columns):
        total = 0.0
        c = begin
        while c < len(dense):
            total += dense[row, c] * b[work.first + c // width, column + c % width]
            c += step
        total = warp_sum(item, total)
        if begin == 0:
            work.coarse.x[work.first + row // width, column + row % width] = total


@device_function
def either(flip, level):
    """Current and spare buffer of a level: (x, y), or (y, x) if `flip`."""
    return (level.y, level.x) if flip else (level.x, level.y)


@inline_control
def _smooth_rows(team, phase, level, first, last, flip, keep, gain):
    x, y = either(flip, level)
    parallel_for_shared_rows(team, phase, first, last, Smooth(level, x, y, keep, gain))


@inline_control
def _restrict_rows(team, phase, level, first, last, flip, cycle, above, gain):
    """Compute residuals of rows first to last - 1, restrict them and start the smoothing of the next coarser
    level."""
    x, r = either(flip, level)
    parallel_for_shared_rows(team, phase, first, last, Residual(level, x, r))
    work = Restrict(level, r, cycle.coarse, cycle.child_start, cycle.child, gain)
    parallel_for_shared_rows(team, phase + 1, cycle.start[above], cycle.start[above + 1], work)


@inline_control
def _prolong_rows(team, phase, level, first, last, flip, cycle):
    x, y = either(flip, level)
    parallel_for_rows(team, phase, first, last, Prolong(level, cycle.coarse.x, x, y, cycle.over))


@inline_control
def apply_cycle(team, phase, cycle):
    """Apply M⁻¹ b into fine.x, legs from the finest to the last level and back; returns the next phase.

    `begin_row` must have been applied to every row of the fine level.
    """
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
            parallel_for(team, phase, 0, dense, SolveDense(coarse, cycle.dense, begin, width, columns))
            phase += 1
            steps = 0
        elif last:
            steps = _steps_at_the_end(degree)
        for _ in range(steps):
            if level > 0:
                _smooth_rows(team, phase, coarse, begin, end, flip, keep, gain)
            else:
                _smooth_rows(team, phase, fine, begin, end, flip, keep, gain)
            next_rho = 1.0 / (2.0 * sigma - rho)
            keep, gain, rho = next_rho * rho, 2.0 * next_rho / delta, next_rho
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


@restrict_row.of(ScalarEntries)
def _restrict_one(A, level, i, r):
    return vector_at(A, r, i)


@restrict_row.of(Blocks3x3)
def _restrict_three(A, level, i, r):
    """Pᵀ r, P = [I | -[o]×]."""
    o, a, b, c = level.offset, r[i, 0], r[i, 1], r[i, 2]
    x, y, z = o[i, 0], o[i, 1], o[i, 2]
    return pack_of_six(a, b, c, y * c - z * b, z * a - x * c, x * b - y * a)


@restrict_row.of(Blocks6x6)
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


@prolong_row.of(ScalarEntries)
def _prolong_one(A, level, i, e, parent):
    return vector_at(A, e, parent)


@prolong_row.of(Blocks3x3)
def _prolong_three(A, level, i, e, k):
    o = level.offset
    return pack_of_three(
        e[k, 0] + e[k, 4] * o[i, 2] - e[k, 5] * o[i, 1],
        e[k, 1] + e[k, 5] * o[i, 0] - e[k, 3] * o[i, 2],
        e[k, 2] + e[k, 3] * o[i, 1] - e[k, 4] * o[i, 0],
    )


@prolong_row.of(Blocks6x6)
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
