"""Cells of a grid that boxes of things touch, and a table of what is in which cell, hashed.

Cells have whole numbers, by which those that share a place in the table are told apart.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.contact.things import ends
from supple.kernels import Runner, count_up, do, each_item, kernel, number, physics, strides

BLOCK = 64
"""Things, pairs or places that make a good item of work."""

ENTRIES = 32
"""Cells that a thing may touch on average; where some are much larger than others, so are the cells."""

FINEST = 2e-6
"""Least size of cells, in parts of the largest coordinate: their numbers have 21 bits each."""

ROUNDING = 1e-6
"""By this part of their margins boxes are larger than they need be."""

ALL, WITHIN, BETWEEN = 0, 1, 2
"""Which pairs are wanted: all, those of one body, or of two."""


class Wanted(NamedTuple):
    """Which pairs are wanted, ALL and so on; body (n,) of every point; of bodies: box (b, 6), lower and upper
    ends [m], and the numbers others[start[b]], ... of those whose boxes are near, where pairs of two are
    wanted; late (b,): the bodies of which pairs within are; rest (n, 3) [m]: pairs of one body that are no
    farther apart there than `clear` [m] are not."""

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
    the last that it touches along each axis, with a margin; none where nothing is wanted; touched (m,): how
    many in all."""

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
                meet = meet and low - work.margin <= wanted.box[b, 3 + axis] + work.margin
                meet = meet and high + work.margin >= wanted.box[b, axis] - work.margin
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
    for m in range(first, last, step):
        product, seeks = 1.0, _seeks(work, m)
        for axis in range(3):
            low, high = ends(work.x, work.things, m, axis)
            work.box[m, axis], work.box[m, 3 + axis] = low, high
            lower = _cell((low - work.margin) / work.size)
            upper = _cell((high + work.margin) / work.size) if seeks else lower - 1
            work.cells[m, axis], work.cells[m, 3 + axis] = lower, upper
            product *= upper - lower + 1.0
        work.touched[m] = product


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


class Count(NamedTuple):
    """How many entries places get of things with these cells (m, 6)."""

    cells: Any
    table: Any


class Enter(NamedTuple):
    """Things with these cells (m, 6) are entered."""

    cells: Any
    table: Any


@do.of(Count)
def _count(work, place):
    c, table = work.cells, work.table
    first, last, step = own_part(len(c), place)
    for m in range(first, last, step):
        for i in range(c[m, 0], c[m, 3] + 1):
            for j in range(c[m, 1], c[m, 4] + 1):
                for k in range(c[m, 2], c[m, 5] + 1):
                    count_up(table.count, place_of(i, j, k, len(table.count)), 1)


@do.of(Enter)
def _enter(work, place):
    c, table = work.cells, work.table
    first, last, step = own_part(len(c), place)
    for m in range(first, last, step):
        for i in range(c[m, 0], c[m, 3] + 1):
            for j in range(c[m, 1], c[m, 4] + 1):
                for k in range(c[m, 2], c[m, 5] + 1):
                    at = place_of(i, j, k, len(table.count))
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


class Boxed(NamedTuple):
    """Of things: boxes and cells (m, 6) as in `Cells`; entries: how many cells they touch in all."""

    box: np.ndarray
    cells: np.ndarray
    entries: int


def cells_of(
    x: np.ndarray, several: list[np.ndarray], radius: float, size: float, wanted: Wanted, runner: Runner
) -> list[Boxed]:
    """Of each of several kinds of things that look for what is within a radius [m], with points at x (n, 3),
    in cells that are about as large as `size` [m]."""
    most = float(np.abs(x).max(initial=0.0))
    if not math.isfinite(most):
        raise ValueError(
            "contacts cannot be found, since some vertices are nowhere: their positions are no numbers"
        )
    margin = 0.5 * (1 + ROUNDING) * radius
    size = max(size + radius, FINEST * (most + margin), 1e-300)
    things = sum(map(len, several))
    while True:
        found = []
        for each in several:
            box, touched = runner.zeros((len(each), 6), np.float64), runner.zeros((len(each),), np.float64)
            cells = runner.zeros((len(each), 6), np.int32)
            runner.run(touch_cells, 1, Cells(x, each, wanted, margin, size, box, cells, touched))
            runner.pull(touched)
            found.append(Boxed(box, cells, int(touched.sum())))
        if sum(each.entries for each in found) <= ENTRIES * things:
            return found
        size *= 2


def table_of(things: int, entries: int, runner: Runner) -> Table:
    """An empty one for so many things and entries."""
    places = 1 << max(4, things.bit_length())
    count, left, begin = (runner.zeros((places,), np.int64) for _ in range(3))
    total, key = runner.zeros((1,), np.int64), runner.zeros((entries,), np.int64)
    return Table(count, left, begin, total, key, runner.zeros((entries,), np.int32))
