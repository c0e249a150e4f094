"""How large the eigenvalues of D⁻¹ A are on every level, D the diagonal blocks, by the power method."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from supple.kernels import (
    do,
    each_item,
    each_shared_row,
    kernel,
    lane_total,
    number,
    ordered,
    put_vector,
    strides,
    writes,
)
from supple.linear.block_rows import divided, product, squared
from supple.linear.tiles import each_row

POWER_STEPS = 8
"""Powers of D⁻¹ A that are taken, an even number."""

POWER_PHASES = 2 * POWER_STEPS + 3

SAFETY = 1.1
"""The estimate is from below."""


@ordered
def _any_number(i):
    """Between -1 and 1, different for each i, always the same."""
    x = (i * 2654435761 + 12345) % 4294967296
    x = ((x ^ (x >> 15)) * 2246822519) % 4294967296
    return ((x >> 9) % 65536) / 32768.0 - 1.0


class Begin(NamedTuple):
    """Any x; the last quarter of the numbers of each row are 0."""

    x: Any


@do.of(Begin)
def _begin(work, row):
    x = work.x
    numbers = 3 * x.shape[1] // 4
    for c in range(x.shape[1]):
        x[row, c] = _any_number(numbers * row + c) if c < numbers else 0.0


class Raise(NamedTuple):
    """y = D⁻¹ A x in a row, and its square."""

    level: Any
    x: Any
    y: Any
    squares: Any
    which: Any


@do.of(Raise)
def _raise(work, at):
    level = work.level
    y = divided(level.A, level.inverse, at.row, product(level.A, at, work.x))
    if writes(at):
        put_vector(work.y, at.row, y)
        work.squares[work.which, at.row] = squared(level.A, y)


class Radii(NamedTuple):
    """The radius of a level from the squares of its rows before and after the last power."""

    start: Any
    fine: Any
    coarse: Any
    radius: Any


@do.of(Radii)
def _radii(work, place):
    level = number(place)
    squares = work.coarse if level > 0 else work.fine
    begin, step = strides(place)
    row, end = begin, squares.shape[1]
    if level > 0:
        row, end = begin + work.start[level - 1], work.start[level]
    before = after = 0.0
    while row < end:
        before += squares[0, row]
        after += squares[1, row]
        row += step
    before, after = lane_total(place, before), lane_total(place, after)
    if begin == 0:
        work.radius[level] = SAFETY * math.sqrt(after / max(before, 1e-300))


@kernel
def raise_powers(team, cycle, fine_squares, coarse_squares):
    """The radius of all levels at once, by powers of D⁻¹ A applied to any vector; squares (2, rows) are
    memory."""
    fine, coarse = cycle.fine, cycle.coarse
    x, y, u, v = fine.x, fine.y, coarse.x, coarse.y
    rows, coarse_rows = len(x), len(u)
    each_row(team, 0, 0, rows, Begin(x))
    each_row(team, 1, 0, coarse_rows, Begin(u))
    for k in range(POWER_STEPS):
        each_shared_row(team, 2 * k + 2, 0, rows, Raise(fine, x, y, fine_squares, k % 2))
        each_shared_row(team, 2 * k + 3, 0, coarse_rows, Raise(coarse, u, v, coarse_squares, k % 2))
        x, y, u, v = y, x, v, u
    radii = Radii(cycle.start, fine_squares, coarse_squares, cycle.radius)
    each_item(team, 2 * POWER_STEPS + 2, 0, len(cycle.radius), radii)
