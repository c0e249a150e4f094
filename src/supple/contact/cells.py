"""Cells of a grid that boxes of things touch.

Cells have whole numbers, by which those that share a place in the table are told apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.things import ends
from supple.kernels import Runner, count_up, do, each_item, kernel, number, physics, strides

BLOCK = 32
"""Things, pairs or places that make a good item of work: one for each lane of a device."""

ENTRIES = 32
"""Cells that a thing may touch on average; where some are much larger than others, so are the cells."""

FINEST = 2e-6
"""Least size of cells, in parts of the largest coordinate: their numbers have 21 bits each."""

TOO_MANY = 2.0**31
"""Cells that one thing touches: whatever the table, they are too many."""

NOBODY = 1 << 60
"""Beyond every number of a body."""

ROUNDING = 1e-6
"""By this part of their margins boxes are larger than they need be."""

NOTHING_FACES = np.zeros((0, 3)), np.zeros(0, bool)
"""Of things that need not face each other: neither normals nor whether they have an outside."""

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
def cell_of(at):
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
            lower = cell_of((low - work.margin) / work.size)
            upper = cell_of((high + work.margin) / work.size) if seeks else lower - 1
            work.cells[m, axis], work.cells[m, 3 + axis] = lower, upper
            product *= upper - lower + 1.0
        touched += int(min(product, TOO_MANY))
    if touched > 0:
        count_up(work.touched, 0, touched)


@kernel
def touch_cells(team, work):
    each_item(team, 0, 0, -(-len(work.things) // BLOCK), work)


def touching(
    x: np.ndarray, things: np.ndarray, radius: float, size: float, wanted: Wanted, runner: Runner
) -> Cells:
    """What finds the cells of things that look for others within a radius [m]."""
    box, cells = runner.empty((len(things), 6), np.float64), runner.empty((len(things), 6), np.int32)
    touched, margin = runner.zeros((1,), np.int64), (1 + ROUNDING) * radius
    return Cells(x, things, wanted, margin, size, box, cells, touched)
