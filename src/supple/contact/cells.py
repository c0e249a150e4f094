"""Cells of the spatial hash grid that bounding boxes of primitives overlap.

Integer cell coordinates distinguish cells that share a hash bucket.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.things import ends
from supple.kernels import Runner, count_up, do, each_item, kernel, number, physics, strides

BLOCK = 32
"""Primitives, pairs or buckets per work item: one for each lane of a GPU warp."""

ENTRIES = 32
"""Largest mean number of cells per primitive; cells grow if a few primitives are much larger than others."""

FINEST = 2e-6
"""Smallest cell size relative to the largest coordinate; cell coordinates have 21 bits each."""

TOO_MANY = 2.0**31
"""Upper limit of the cell count of one primitive."""

NOBODY = 1 << 60
"""Sentinel above all body numbers."""

ROUNDING = 1e-6
"""Relative enlargement of box margins against rounding errors."""

NOTHING_FACES = np.zeros((0, 3)), np.zeros(0, bool)
"""Empty normals and two-sided flags, for primitives without an orientation test."""

ALL, WITHIN, BETWEEN = 0, 1, 2
"""Pair filters: all pairs, pairs within a body, pairs between bodies."""


class Wanted(NamedTuple):
    """Pair filter of the broad phase.

    Attributes:
        which: `ALL`, `WITHIN` or `BETWEEN`.
        body: (n,) body of each vertex.
        box: (b, 6) region of possible neighbors of each body, lower then upper bounds [m].
        start, others: (b + 1,) and (k,): neighbors of body i are others[start[i]:start[i + 1]], for
            `BETWEEN`.
        late: (b,) bodies whose internal pairs are searched, for `WITHIN`.
        rest: (n, 3) rest positions [m].
        clear: Rest distance [m]; pairs of one body at or below it are excluded. Negative: no exclusion.
    """

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
"""Filter that accepts all pairs, independent of bodies."""


class Cells(NamedTuple):
    """Work: boxes and cell ranges of primitives.

    Attributes:
        x: (n, 3) vertex positions [m].
        things: (m, k) vertices of the primitives.
        wanted: Pair filter.
        margin: Enlargement of the boxes for the cell ranges [m].
        size: Cell size [m].
        box: (m, 6) output: lower and upper bounds without the margin [m].
        cells: (m, 6) output: first and last cell along each axis, an empty range for filtered primitives.
        touched: (1,) output: cell count of all primitives, at most `TOO_MANY` for each.
    """

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
    """(first, last, step): index range of this thread among `count` items."""
    first, step = strides(place)
    start = number(place) * BLOCK
    return start + first, min(count, start + BLOCK), step


@physics
def _seeks(work, m):
    """True if a primitive is searched: a neighbor body is in reach, or its own body is outdated."""
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
    """Round down to an integer."""
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
    """Compute boxes and cell ranges of all primitives."""
    each_item(team, 0, 0, -(-len(work.things) // BLOCK), work)


def touching(
    x: np.ndarray, things: np.ndarray, radius: float, size: float, wanted: Wanted, runner: Runner
) -> Cells:
    """Allocate the cell ranges of primitives that search within a radius [m].

    Args:
        x: (n, 3) vertex positions [m].
        things: (m, k) vertices of the primitives.
        radius: Search radius [m].
        size: Cell size [m].
        wanted: Pair filter.
        runner: Device of the search.

    Returns:
        Work of `touch_cells`, not yet computed.
    """
    box, cells = runner.empty((len(things), 6), np.float64), runner.empty((len(things), 6), np.int32)
    touched, margin = runner.zeros((1,), np.int64), (1 + ROUNDING) * radius
    return Cells(x, things, wanted, margin, size, box, cells, touched)
