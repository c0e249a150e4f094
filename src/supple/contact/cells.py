"""Cells of a grid that boxes of things touch, and a table of what is in which cell, hashed.

Cells have whole numbers, by which those that share a place in the table are told apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.contact.things import ends
from supple.kernels import Runner, count_up, do, each_item, kernel, number, physics, strides

if TYPE_CHECKING:
    from supple.contact.points import Points

BLOCK = 64
"""Things, pairs or places that make a good item of work."""

ENTRIES = 32
"""Cells that a thing may touch on average; where some are much larger than others, so are the cells."""

FINEST = 2e-6
"""Least size of cells, in parts of the largest coordinate: their numbers have 21 bits each."""

TOO_MANY = 2.0**31
"""Cells that one thing touches: whatever the table, they are too many."""

ROUNDING = 1e-6
"""By this part of their margins boxes are larger than they need be."""

ALL, WITHIN, BETWEEN = 0, 1, 2
"""Which pairs are wanted: all, those of one body, or of two."""


class Wanted(NamedTuple):
    """Which pairs are wanted, ALL and so on; body (n,) of every point; of bodies: box (b, 6), lower and upper
    ends [m] of where others can be near to them, and the numbers others[start[b]], ... of those whose boxes
    are, where pairs of two are wanted; late (b,): the bodies of which pairs within are; rest (n, 3) [m]:
    pairs of one body that are no farther apart there than `clear` [m] are not."""

    which: Any
    body: Any
    box: Any
    start: Any
    others: Any
    late: Any
    rest: Any
    clear: Any


ANY = Wanted(
    ALL, np.zeros(0, np.int64), np.zeros((0, 6)), np.zeros(1, np.int64), np.zeros(0, np.int64),
    np.zeros(0, bool), np.zeros((0, 3)), -1.0,
)  # fmt: skip
"""All pairs, whatever bodies there are."""


class Cells(NamedTuple):
    """box (m, 6) gets the lower and upper ends [m] of things (m, k), points x, and cells (m, 6) the first and
    the last that it touches along each axis, with a margin; none where nothing is wanted; touched (1,): how
    many all of them do, and more than anybody needs to know counts as `TOO_MANY`."""

    x: Any
    things: Any
    wanted: Any
    margin: Any
    size: Any
    box: Any
    cells: Any
    touched: Any


@physics
def own_part(count, place):
    """(first, last, step): which of so many things are this thread's."""
    first, step = strides(place)
    start = number(place) * BLOCK
    return start + first, min(count, start + BLOCK), step


@physics
def _seeks(work, m):
    """Whether a thing is to look for others at all: whether another body is near, or its own is late."""
    wanted, near_by = work.wanted, work.wanted.which == ALL
    if wanted.which == WITHIN:
        near_by = wanted.late[wanted.body[work.things[m, 0]]]
    elif wanted.which == BETWEEN:
        own = wanted.body[work.things[m, 0]]
        for k in range(wanted.start[own], wanted.start[own + 1]):
            b, meet = wanted.others[k], True
            for axis in range(3):
                low, high = ends(work.x, work.things, m, axis)
                meet = meet and low <= wanted.box[b, 3 + axis] and high >= wanted.box[b, axis]
            near_by = near_by or meet
    return near_by


@physics
def _cell(at):
    """The whole number below a number."""
    whole = int(at)
    return whole - 1 if at < whole else whole


@do.of(Cells)
def _cells(work, place):
    first, last, step = own_part(len(work.things), place)
    touched = 0
    for m in range(first, last, step):
        product, seeks = 1.0, _seeks(work, m)
        for axis in range(3):
            low, high = ends(work.x, work.things, m, axis)
            work.box[m, axis], work.box[m, 3 + axis] = low, high
            lower = _cell((low - work.margin) / work.size)
            upper = _cell((high + work.margin) / work.size) if seeks else lower - 1
            work.cells[m, axis], work.cells[m, 3 + axis] = lower, upper
            product *= upper - lower + 1.0
        touched += int(min(product, TOO_MANY))
    if touched > 0:
        count_up(work.touched, 0, touched)


class Table(NamedTuple):
    """Of places: how many entries each has, how many are not entered yet, and where they begin; total (1,)
    entries; key and thing (e,): of entries the number of the cell and what is there."""

    count: Any
    left: Any
    begin: Any
    total: Any
    key: Any
    thing: Any


@physics
def place_of(i, j, k, places):
    """Where a cell is in the table."""
    return ((i * 73856093) ^ (j * 19349663) ^ (k * 83492791)) & (places - 1)


@physics
def key_of(i, j, k):
    """One number for a cell."""
    return ((i & 0x1FFFFF) << 42) | ((j & 0x1FFFFF) << 21) | (k & 0x1FFFFF)


@physics
def cells_around(there, p, radius):
    """First and last cells in which things that are in a table can be within a radius of a point."""
    reach, size = (1.0 + ROUNDING) * radius, there.size
    x, y, z = p
    low = _cell((x - reach) / size), _cell((y - reach) / size), _cell((z - reach) / size)
    return low, (_cell((x + reach) / size), _cell((y + reach) / size), _cell((z + reach) / size))


class Clear(NamedTuple):
    """count (places,) gets 0."""

    count: Any


@do.of(Clear)
def _clear(work, place):
    first, last, step = own_part(len(work.count), place)
    for at in range(first, last, step):
        work.count[at] = 0


class Enter(NamedTuple):
    """Things with these cells (m, 6) are entered into a table, or counting tells how many entries each of its
    places gets."""

    cells: Any
    table: Any
    counting: Any


@do.of(Enter)
def _enter(work, place):
    c, table = work.cells, work.table
    first, last, step = own_part(len(c), place)
    for m in range(first, last, step):
        for i in range(c[m, 0], c[m, 3] + 1):
            for j in range(c[m, 1], c[m, 4] + 1):
                for k in range(c[m, 2], c[m, 5] + 1):
                    at = place_of(i, j, k, len(table.count))
                    if work.counting:
                        count_up(table.count, at, 1)
                    else:
                        entry = table.begin[at] + count_up(table.left, at, -1) - 1
                        table.key[entry], table.thing[entry] = key_of(i, j, k), m


@do.of(Table)
def _allot(table, place):
    """Every place a range of entries, in any order."""
    first, last, step = own_part(len(table.count), place)
    for at in range(first, last, step):
        if table.count[at] > 0:
            table.left[at] = table.count[at]
            table.begin[at] = count_up(table.total, 0, table.count[at])


@kernel
def touch_cells(team, work):
    each_item(team, 0, 0, -(-len(work.things) // BLOCK), work)


@kernel
def enter_all(team, cells, table):
    things, places = -(-len(cells) // BLOCK), -(-len(table.count) // BLOCK)
    each_item(team, 0, 0, places, Clear(table.count))
    each_item(team, 1, 0, things, Enter(cells, table, True))
    each_item(team, 2, 0, places, table)
    each_item(team, 3, 0, things, Enter(cells, table, False))


class Entered(NamedTuple):
    """Things (m, k) in a table, for those who look for them: boxes and cells (m, 6) as in `Cells`, without a
    margin, of a size [m]; x (n, 3): points."""

    x: np.ndarray
    things: np.ndarray
    size: float
    box: np.ndarray
    cells: np.ndarray
    table: Table


def touching(
    x: np.ndarray, things: np.ndarray, radius: float, size: float, wanted: Wanted, runner: Runner
) -> Cells:
    """What finds the cells of things that look for others within a radius [m]."""
    box, cells = runner.empty((len(things), 6), np.float64), runner.empty((len(things), 6), np.int32)
    touched, margin = runner.zeros((1,), np.int64), (1 + ROUNDING) * radius
    return Cells(x, things, wanted, margin, size, box, cells, touched)


def entered(
    points: Points, things: np.ndarray, size: float, wanted: Wanted, runner: Runner
) -> Entered | None:
    """Things (m, k) of points, for those who look for them, in cells that are about as large as `size` [m],
    or larger where things are. None where none of them is wanted."""
    x, most = points
    if not math.isfinite(most):
        raise ValueError(
            "contacts cannot be found, since some vertices are nowhere: their positions are no numbers"
        )
    size = max(size, FINEST * (most + size), 1e-300)
    while True:
        found = touching(x, things, 0.0, size, wanted, runner)
        runner.run(touch_cells, 1, found)
        runner.pull(found.touched)
        if found.touched[0] <= ENTRIES * len(things):
            break
        size *= 2
    if found.touched[0] == 0:
        return None
    table = _table(len(things), int(found.touched[0]), runner)
    runner.run(enter_all, 4, found.cells, table)
    return Entered(x, things, size, found.box, found.cells, table)


def _table(things: int, entries: int, runner: Runner) -> Table:
    """One for so many things and entries, in which nothing is counted yet."""
    places = 1 << max(4, things.bit_length())
    count, left, begin = (runner.empty((places,), np.int64) for _ in range(3))
    total, key = runner.zeros((1,), np.int64), runner.empty((entries,), np.int64)
    return Table(count, left, begin, total, key, runner.empty((entries,), np.int32))
