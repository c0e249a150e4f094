"""Spatial hash grid of primitives: cells that their bounding boxes overlap, in a table of buckets.

Integer cell coordinates distinguish cells that share a hash bucket. Each bucket has a summary of its
primitives for early rejection.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.collision.broad_phase.pair_filter import ALL, BETWEEN, WITHIN, PairFilter
from supple.collision.geometry.primitives import ends, octants_of
from supple.kernels import (
    Runner,
    atomic_add,
    atomic_max,
    atomic_min,
    atomic_or,
    device_function,
    do,
    item_number,
    kernel,
    lane_stride,
    parallel_for,
)

if TYPE_CHECKING:
    from supple.collision.broad_phase.positions import Points

ITEM_SIZE = 32
"""Primitives, pairs or buckets per work item: one for each lane of a GPU warp."""

MAX_MEAN_CELLS = 32
"""Largest mean number of cells per primitive; cells grow if a few primitives are much larger than others."""

MIN_CELL_SIZE = 2e-6
"""Smallest cell size relative to the largest coordinate; cell coordinates have 21 bits each."""

MAX_CELLS = 2.0**31
"""Upper limit of the cell count of one primitive."""

NO_BODY = 1 << 60
"""Sentinel above all body numbers."""

BOX_ENLARGEMENT = 1e-6
"""Relative enlargement of box margins against rounding errors."""

NO_ORIENTATION = np.zeros((0, 3)), np.zeros(0, bool)
"""Empty normals and two-sided flags, for primitives without an orientation test."""


class Cells(NamedTuple):
    """Work: boxes and cell ranges of primitives.

    Attributes:
        x: (n, 3) vertex positions [m].
        primitives: (m, k) vertices of the primitives.
        pair_filter: Pair filter.
        margin: Enlargement of the boxes for the cell ranges [m].
        size: Cell size [m].
        box: (m, 6) output: lower and upper bounds without the margin [m].
        cells: (m, 6) output: first and last cell along each axis, an empty range for filtered primitives.
        cell_count: (1,) output: cell count of all primitives, at most `MAX_CELLS` for each.
    """

    x: Any
    primitives: Any
    pair_filter: Any
    margin: Any
    size: Any
    box: Any
    cells: Any
    cell_count: Any


@device_function
def thread_range(count, item):
    """(first, last, step): index range of this thread among `count` items."""
    first, step = lane_stride(item)
    start = item_number(item) * ITEM_SIZE
    return start + first, min(count, start + ITEM_SIZE), step


@device_function
def _is_searched(work, m):
    """True if a primitive is searched: a neighbor body is in reach, or its own body is outdated."""
    pair_filter, near_by = work.pair_filter, work.pair_filter.which == ALL
    if pair_filter.which == WITHIN:
        near_by = pair_filter.outdated[pair_filter.body[work.primitives[m, 0]]]
    elif pair_filter.which == BETWEEN:
        own = pair_filter.body[work.primitives[m, 0]]
        for k in range(pair_filter.start[own], pair_filter.start[own + 1]):
            b, overlaps = pair_filter.others[k], True
            for axis in range(3):
                low, high = ends(work.x, work.primitives, m, axis)
                overlaps = (
                    overlaps and low <= pair_filter.box[b, 3 + axis] and high >= pair_filter.box[b, axis]
                )
            near_by = near_by or overlaps
    return near_by


@device_function
def floor_to_int(x):
    integer = int(x)
    return integer - 1 if x < integer else integer


@do.of(Cells)
def _cells(work, item):
    first, last, step = thread_range(len(work.primitives), item)
    cell_count = 0
    for m in range(first, last, step):
        product, is_searched = 1.0, _is_searched(work, m)
        for axis in range(3):
            low, high = ends(work.x, work.primitives, m, axis)
            work.box[m, axis], work.box[m, 3 + axis] = low, high
            lower = floor_to_int((low - work.margin) / work.size)
            upper = floor_to_int((high + work.margin) / work.size) if is_searched else lower - 1
            work.cells[m, axis], work.cells[m, 3 + axis] = lower, upper
            product *= upper - lower + 1.0
        cell_count += int(min(product, MAX_CELLS))
    if cell_count > 0:
        atomic_add(work.cell_count, 0, cell_count)


@kernel
def compute_cells(team, work):
    """Compute boxes and cell ranges of all primitives."""
    parallel_for(team, 0, 0, -(-len(work.primitives) // ITEM_SIZE), work)


def allocate_cells(
    x: np.ndarray, primitives: np.ndarray, radius: float, size: float, pair_filter: PairFilter, runner: Runner
) -> Cells:
    """Allocate the cell ranges of primitives that search within a radius [m].

    Args:
        x: (n, 3) vertex positions [m].
        primitives: (m, k) vertices of the primitives.
        radius: Search radius [m].
        size: Cell size [m].
        pair_filter: Pair filter.
        runner: Device of the search.

    Returns:
        Work of `compute_cells`, not yet computed.
    """
    box, cells = runner.empty((len(primitives), 6), np.float64), runner.empty((len(primitives), 6), np.int32)
    cell_count, margin = runner.zeros((1,), np.int64), (1 + BOX_ENLARGEMENT) * radius
    return Cells(x, primitives, pair_filter, margin, size, box, cells, cell_count)


class Table(NamedTuple):
    """Hash table from cells to primitives.

    Attributes:
        count: Number of entries of each bucket.
        remaining: Number of entries of each bucket still to be written.
        begin: First entry of each bucket.
        total: (1,) number of entries.
        key: (e,) cell of each entry.
        primitive: (e,) primitive of each entry.
        normal: (e, 3) approximate normal of each entry, or (0, 3); a copy, since contiguous data is read
            faster.
        octants: Bit mask of the octants of all normals in each bucket.
        min_body, max_body: Smallest and largest body number in each bucket.
    """

    count: Any
    remaining: Any
    begin: Any
    total: Any
    key: Any
    primitive: Any
    normal: Any
    octants: Any
    min_body: Any
    max_body: Any


@device_function
def bucket_of(i, j, k, buckets):
    """Hash bucket of a cell."""
    return ((i * 73856093) ^ (j * 19349663) ^ (k * 83492791)) & (buckets - 1)


@device_function
def key_of(i, j, k):
    """Integer key of a cell."""
    return ((i & 0x1FFFFF) << 42) | ((j & 0x1FFFFF) << 21) | (k & 0x1FFFFF)


@device_function
def cells_around(grid, p, radius):
    """First and last cell with primitives within a radius of a point."""
    reach, size = (1.0 + BOX_ENLARGEMENT) * radius, grid.size
    x, y, z = p
    low = floor_to_int((x - reach) / size), floor_to_int((y - reach) / size), floor_to_int((z - reach) / size)
    return low, (
        floor_to_int((x + reach) / size),
        floor_to_int((y + reach) / size),
        floor_to_int((z + reach) / size),
    )


class ClearTable(NamedTuple):
    """Work: empty all buckets of a table."""

    table: Any


@do.of(ClearTable)
def _clear(work, item):
    table = work.table
    first, last, step = thread_range(len(table.count), item)
    for at in range(first, last, step):
        table.count[at] = table.octants[at] = 0
        table.min_body[at], table.max_body[at] = NO_BODY, -1


class InsertPrimitives(NamedTuple):
    """Work: insert primitives into a table.

    Attributes:
        cells: (m, 6) cell ranges.
        primitives: (m, k) primitives.
        body: (n,) body of each vertex, or (0,).
        orientation: Normals and two-sided flags; the normal of a two-sided triangle is stored as 0.
        table: Hash table.
        counting: True for the counting pass, which also summarizes normals and bodies of each bucket.
    """

    cells: Any
    primitives: Any
    body: Any
    orientation: Any
    table: Any
    counting: Any


@do.of(InsertPrimitives)
def _insert(work, item):
    c, table = work.cells, work.table
    first, last, step = thread_range(len(c), item)
    for m in range(first, last, step):
        octants, own = octants_of(work.orientation, m), 0
        if len(work.body) > 0:
            own = work.body[work.primitives[m, 0]]
        for i in range(c[m, 0], c[m, 3] + 1):
            for j in range(c[m, 1], c[m, 4] + 1):
                for k in range(c[m, 2], c[m, 5] + 1):
                    at = bucket_of(i, j, k, len(table.count))
                    if work.counting:
                        atomic_add(table.count, at, 1)
                        atomic_or(table.octants, at, octants)
                        atomic_min(table.min_body, at, own)
                        atomic_max(table.max_body, at, own)
                    else:
                        entry = table.begin[at] + atomic_add(table.remaining, at, -1) - 1
                        table.key[entry], table.primitive[entry] = key_of(i, j, k), m
                        for axis in range(3 if len(table.normal) > 0 else 0):
                            table.normal[entry, axis] = (
                                0.0 if work.orientation[1][m] else work.orientation[0][m, axis]
                            )


@do.of(Table)
def _allocate_entries(table, item):
    """Assign a range of entries to each bucket, in any order."""
    first, last, step = thread_range(len(table.count), item)
    for at in range(first, last, step):
        if table.count[at] > 0:
            table.remaining[at] = table.count[at]
            table.begin[at] = atomic_add(table.total, 0, table.count[at])


@kernel
def build_table(team, cells, primitives, body, orientation, table):
    """Build a hash table: clear, count, allocate, insert."""
    blocks, buckets = -(-len(cells) // ITEM_SIZE), -(-len(table.count) // ITEM_SIZE)
    parallel_for(team, 0, 0, buckets, ClearTable(table))
    parallel_for(team, 1, 0, blocks, InsertPrimitives(cells, primitives, body, orientation, table, True))
    parallel_for(team, 2, 0, buckets, table)
    parallel_for(team, 3, 0, blocks, InsertPrimitives(cells, primitives, body, orientation, table, False))


class HashGrid(NamedTuple):
    """Hash grid of target primitives.

    Attributes:
        x: (n, 3) positions [m].
        primitives: (m, k) primitives.
        size: Cell size [m].
        box: (m, 6) boxes as in `Cells` [m].
        cells: (m, 6) cell ranges as in `Cells`, without a margin.
        table: Hash table.
    """

    x: np.ndarray
    primitives: np.ndarray
    size: float
    box: np.ndarray
    cells: np.ndarray
    table: Table


def build_grid(
    points: Points,
    primitives: np.ndarray,
    size: float,
    pair_filter: PairFilter,
    runner: Runner,
    orientation: tuple[np.ndarray, np.ndarray] = NO_ORIENTATION,
) -> HashGrid | None:
    """Build the hash grid of target primitives.

    Args:
        points: Positions of the vertices.
        primitives: (m, k) primitives.
        size: Approximate cell size [m]; larger for large primitives.
        pair_filter: Pair filter.
        runner: Device of the grid.
        orientation: Normals (m, 3) and two-sided flags (m,) of triangles, for the orientation test.

    Returns:
        Grid, or None if the filter excludes all primitives.

    Raises:
        ValueError: If a position is not finite.
    """
    x, most = points
    if not math.isfinite(most):
        raise ValueError(
            "contact search failed: vertex positions are infinite or NaN, because the solve diverged; "
            "use smaller steps or loads"
        )
    size = max(size, MIN_CELL_SIZE * (most + size), 1e-300)
    while True:
        ranges = allocate_cells(x, primitives, 0.0, size, pair_filter, runner)
        runner.run(compute_cells, 1, ranges)
        runner.download(ranges.cell_count)
        if ranges.cell_count[0] <= MAX_MEAN_CELLS * len(primitives):
            break
        size *= 2
    if ranges.cell_count[0] == 0:
        return None
    table = _table(len(primitives), int(ranges.cell_count[0]), runner, len(orientation[0]) > 0)
    runner.run(build_table, 4, ranges.cells, primitives, pair_filter.body, orientation, table)
    return HashGrid(x, primitives, size, ranges.box, ranges.cells, table)


def _table(primitives: int, entries: int, runner: Runner, orientation: bool) -> Table:
    """Allocate a table for a number of primitives and entries."""
    buckets = 1 << max(4, primitives.bit_length())
    count, remaining, begin, octants, min_body, max_body = (
        runner.empty((buckets,), np.int64) for _ in range(6)
    )
    total, key = runner.zeros((1,), np.int64), runner.empty((entries,), np.int64)
    primitive, normal = (
        runner.empty((entries,), np.int32),
        runner.empty((orientation * entries, 3), np.float32),
    )
    return Table(count, remaining, begin, total, key, primitive, normal, octants, min_body, max_body)
