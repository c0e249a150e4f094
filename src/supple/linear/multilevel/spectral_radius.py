"""Spectral radius of D⁻¹ A on every level, with D the diagonal blocks, by the power method."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from supple.kernels import (
    do,
    is_writer,
    item_number,
    kernel,
    lane_stride,
    parallel_for,
    parallel_for_shared_rows,
    store_vector,
    strict_order,
    warp_sum,
)
from supple.kernels.parallel.parallel_for import parallel_for_rows
from supple.linear.block_matrix import apply_inverse, product, squared

POWER_STEPS = 8
"""Number of power iterations, even."""

POWER_PHASES = 2 * POWER_STEPS + 3

SAFETY_FACTOR = 1.1
"""Safety factor of the estimated radius: the power method underestimates it."""


@strict_order
def _any_number(i):
    """Deterministic pseudo-random number in [-1, 1) for index i."""
    x = (i * 2654435761 + 12345) % 4294967296
    x = ((x ^ (x >> 15)) * 2246822519) % 4294967296
    return ((x >> 9) % 65536) / 32768.0 - 1.0


class Begin(NamedTuple):
    """Pseudo-random start vector; the last quarter of each row is zero padding."""

    x: Any


@do.of(Begin)
def _begin(work, row):
    x = work.x
    numbers = 3 * x.shape[1] // 4
    for c in range(x.shape[1]):
        x[row, c] = _any_number(numbers * row + c) if c < numbers else 0.0


class Raise(NamedTuple):
    """Power step of a row: y = D⁻¹ A x, and |y|²."""

    level: Any
    x: Any
    y: Any
    squares: Any
    which: Any


@do.of(Raise)
def _raise(work, at):
    level = work.level
    y = apply_inverse(level.A, level.inverse, at.row, product(level.A, at, work.x))
    if is_writer(at):
        store_vector(work.y, at.row, y)
        work.squares[work.which, at.row] = squared(level.A, y)


class Radii(NamedTuple):
    """Spectral radius of a level from the squared row norms before and after the last power step."""

    start: Any
    fine: Any
    coarse: Any
    radius: Any


@do.of(Radii)
def _radii(work, item):
    level = item_number(item)
    squares = work.coarse if level > 0 else work.fine
    begin, step = lane_stride(item)
    row, end = begin, squares.shape[1]
    if level > 0:
        row, end = begin + work.start[level - 1], work.start[level]
    before = after = 0.0
    while row < end:
        before += squares[0, row]
        after += squares[1, row]
        row += step
    before, after = warp_sum(item, before), warp_sum(item, after)
    if begin == 0:
        work.radius[level] = SAFETY_FACTOR * math.sqrt(after / max(before, 1e-300))


@kernel
def raise_powers(team, cycle, fine_squares, coarse_squares):
    """Estimate the spectral radii of all levels simultaneously; `fine_squares` and `coarse_squares` (2, rows)
    are work memory."""
    fine, coarse = cycle.fine, cycle.coarse
    x, y, u, v = fine.x, fine.y, coarse.x, coarse.y
    rows, coarse_rows = len(x), len(u)
    parallel_for_rows(team, 0, 0, rows, Begin(x))
    parallel_for_rows(team, 1, 0, coarse_rows, Begin(u))
    for k in range(POWER_STEPS):
        parallel_for_shared_rows(team, 2 * k + 2, 0, rows, Raise(fine, x, y, fine_squares, k % 2))
        parallel_for_shared_rows(team, 2 * k + 3, 0, coarse_rows, Raise(coarse, u, v, coarse_squares, k % 2))
        x, y, u, v = y, x, v, u
    radii = Radii(cycle.start, fine_squares, coarse_squares, cycle.radius)
    parallel_for(team, 2 * POWER_STEPS + 2, 0, len(cycle.radius), radii)
