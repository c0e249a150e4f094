"""Hash table of the spatial grid, with a summary of each bucket for early rejection."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.contact.cells import (
    BLOCK,
    ENTRIES,
    FINEST,
    NOBODY,
    NOTHING_FACES,
    ROUNDING,
    Wanted,
    cell_of,
    own_part,
    touch_cells,
    touching,
)
from supple.contact.things import octants_of
from supple.kernels import Runner, count_up, do, each_item, keep_least, keep_most, kernel, mark_bits, physics

if TYPE_CHECKING:
    from supple.contact.points import Points


class Table(NamedTuple):
    """Hash table from cells to primitives.

    Attributes:
        count: Number of entries of each bucket.
        left: Number of entries of each bucket still to be written.
        begin: First entry of each bucket.
        total: (1,) number of entries.
        key: (e,) cell of each entry.
        thing: (e,) primitive of each entry.
        normal: (e, 3) approximate normal of each entry, or (0, 3); a copy, since contiguous data is read
            faster.
        octants: Bit mask of the octants of all normals in each bucket.
        least, most: Smallest and largest body number in each bucket.
    """

    count: Any
    left: Any
    begin: Any
    total: Any
    key: Any
    thing: Any
    normal: Any
    octants: Any
    least: Any
    most: Any


@physics
def place_of(i, j, k, places):
    """Hash bucket of a cell."""
    return ((i * 73856093) ^ (j * 19349663) ^ (k * 83492791)) & (places - 1)


@physics
def key_of(i, j, k):
    """Integer key of a cell."""
    return ((i & 0x1FFFFF) << 42) | ((j & 0x1FFFFF) << 21) | (k & 0x1FFFFF)


@physics
def cells_around(there, p, radius):
    """First and last cell with primitives within a radius of a point."""
    reach, size = (1.0 + ROUNDING) * radius, there.size
    x, y, z = p
    low = cell_of((x - reach) / size), cell_of((y - reach) / size), cell_of((z - reach) / size)
    return low, (cell_of((x + reach) / size), cell_of((y + reach) / size), cell_of((z + reach) / size))


class Clear(NamedTuple):
    """Work: empty all buckets of a table."""

    table: Any


@do.of(Clear)
def _clear(work, place):
    table = work.table
    first, last, step = own_part(len(table.count), place)
    for at in range(first, last, step):
        table.count[at] = table.octants[at] = 0
        table.least[at], table.most[at] = NOBODY, -1


class Enter(NamedTuple):
    """Work: insert primitives into a table.

    Attributes:
        cells: (m, 6) cell ranges.
        things: (m, k) primitives.
        body: (n,) body of each vertex, or (0,).
        facing: Normals and two-sided flags; the normal of a two-sided triangle is stored as 0.
        table: Hash table.
        counting: True for the counting pass, which also summarizes normals and bodies of each bucket.
    """

    cells: Any
    things: Any
    body: Any
    facing: Any
    table: Any
    counting: Any


@do.of(Enter)
def _enter(work, place):
    c, table = work.cells, work.table
    first, last, step = own_part(len(c), place)
    for m in range(first, last, step):
        octants, own = octants_of(work.facing, m), 0
        if len(work.body) > 0:
            own = work.body[work.things[m, 0]]
        for i in range(c[m, 0], c[m, 3] + 1):
            for j in range(c[m, 1], c[m, 4] + 1):
                for k in range(c[m, 2], c[m, 5] + 1):
                    at = place_of(i, j, k, len(table.count))
                    if work.counting:
                        count_up(table.count, at, 1)
                        mark_bits(table.octants, at, octants)
                        keep_least(table.least, at, own)
                        keep_most(table.most, at, own)
                    else:
                        entry = table.begin[at] + count_up(table.left, at, -1) - 1
                        table.key[entry], table.thing[entry] = key_of(i, j, k), m
                        for axis in range(3 if len(table.normal) > 0 else 0):
                            table.normal[entry, axis] = 0.0 if work.facing[1][m] else work.facing[0][m, axis]


@do.of(Table)
def _allot(table, place):
    """Assign a range of entries to each bucket, in any order."""
    first, last, step = own_part(len(table.count), place)
    for at in range(first, last, step):
        if table.count[at] > 0:
            table.left[at] = table.count[at]
            table.begin[at] = count_up(table.total, 0, table.count[at])


@kernel
def enter_all(team, cells, things, body, facing, table):
    """Build a hash table: clear, count, allocate, insert."""
    blocks, places = -(-len(cells) // BLOCK), -(-len(table.count) // BLOCK)
    each_item(team, 0, 0, places, Clear(table))
    each_item(team, 1, 0, blocks, Enter(cells, things, body, facing, table, True))
    each_item(team, 2, 0, places, table)
    each_item(team, 3, 0, blocks, Enter(cells, things, body, facing, table, False))


class Entered(NamedTuple):
    """Hash grid of target primitives.

    Attributes:
        x: (n, 3) positions [m].
        things: (m, k) primitives.
        size: Cell size [m].
        box: (m, 6) boxes as in `Cells` [m].
        cells: (m, 6) cell ranges as in `Cells`, without a margin.
        table: Hash table.
    """

    x: np.ndarray
    things: np.ndarray
    size: float
    box: np.ndarray
    cells: np.ndarray
    table: Table


def entered(
    points: Points,
    things: np.ndarray,
    size: float,
    wanted: Wanted,
    runner: Runner,
    facing: tuple[np.ndarray, np.ndarray] = NOTHING_FACES,
) -> Entered | None:
    """Build the hash grid of target primitives.

    Args:
        points: Positions of the vertices.
        things: (m, k) primitives.
        size: Approximate cell size [m]; larger for large primitives.
        wanted: Pair filter.
        runner: Device of the grid.
        facing: Normals (m, 3) and two-sided flags (m,) of triangles, for the orientation test.

    Returns:
        Grid, or None if the filter excludes all primitives.

    Raises:
        ValueError: If a position is not finite.
    """
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
    table = _table(len(things), int(found.touched[0]), runner, len(facing[0]) > 0)
    runner.run(enter_all, 4, found.cells, things, wanted.body, facing, table)
    return Entered(x, things, size, found.box, found.cells, table)


def _table(things: int, entries: int, runner: Runner, facing: bool) -> Table:
    """Allocate a table for a number of primitives and entries."""
    places = 1 << max(4, things.bit_length())
    count, left, begin, octants, least, most = (runner.empty((places,), np.int64) for _ in range(6))
    total, key = runner.zeros((1,), np.int64), runner.empty((entries,), np.int64)
    thing, normal = runner.empty((entries,), np.int32), runner.empty((facing * entries, 3), np.float32)
    return Table(count, left, begin, total, key, thing, normal, octants, least, most)
