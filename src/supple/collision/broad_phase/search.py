"""Broad phase by a spatial hash grid: vertex-triangle, edge-edge, edge-triangle and triangle-triangle pairs.

Primitives are inserted into all cells that their boxes overlap. A pair is reported in the first cell that
both boxes share, so it is found exactly once. CPU or GPU threads append pairs in any order; a sort into CSR
rows then makes the result deterministic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.collision.broad_phase.hash_grid import (
    BOX_ENLARGEMENT,
    ITEM_SIZE,
    NO_ORIENTATION,
    HashGrid,
    allocate_cells,
    bucket_of,
    build_grid,
    floor_to_int,
    key_of,
    thread_range,
)
from supple.collision.broad_phase.pair_filter import ALL, ANY_PAIR, WITHIN, PairFilter
from supple.collision.broad_phase.positions import Points
from supple.collision.geometry.primitives import (
    normals_may_oppose,
    normals_oppose,
    opposing_octants,
    share_vertex,
    squared_distance,
)
from supple.collision.prefix_sums import PREFIX_SUM_PHASES, PrefixSum, ScatterRows, sort_into_rows
from supple.kernels import HOST, Runner, atomic_add, device_function, do, kernel, parallel_for

INITIAL_CAPACITY = 4
"""Initial pair capacity per query primitive."""


class Search(NamedTuple):
    """Work: query of primitives against a hash grid.

    Attributes:
        x: (n, 3) positions [m].
        query: (m, k) query primitives.
        other: (o, k) target primitives in the grid.
        radius: Search radius [m].
        own_radius: Search radius for pairs of one body [m].
        size: Cell size [m].
        pair_filter: Pair filter.
        query_cells, target_cells: (m, 6) and (o, 6) cell ranges of query and target primitives.
        query_box, target_box: (m, 6) and (o, 6) boxes of query and target primitives [m].
        table: Hash table of the target primitives.
        orientation: Normals (t, 3) and two-sided flags (t,) for the orientation test; empty otherwise.
        count: (m,) output: number of pairs of each query primitive.
        total: (1,) output: number of pairs, which may exceed the capacity.
        one, two: (capacity,) output: query and target primitives, unsorted.
    """

    x: Any
    query: Any
    other: Any
    radius: Any
    own_radius: Any
    size: Any
    pair_filter: Any
    query_cells: Any
    target_cells: Any
    query_box: Any
    target_box: Any
    table: Any
    orientation: Any
    count: Any
    total: Any
    one: Any
    two: Any


@device_function
def _is_candidate(s, m, o):
    """Exclude pairs that share a vertex, and pairs ruled out by the body filter."""
    if s.pair_filter.which != ALL:
        same = s.pair_filter.body[s.query[m, 0]] == s.pair_filter.body[s.other[o, 0]]
        if same != (s.pair_filter.which == WITHIN):
            return False
    return not share_vertex(s.query, s.other, m, o)


@device_function
def _squared_box_distance(s, m, o):
    """Squared distance of the boxes of two primitives."""
    square = 0.0
    for axis in range(3):
        gap = max(
            s.target_box[o, axis] - s.query_box[m, 3 + axis],
            s.query_box[m, axis] - s.target_box[o, 3 + axis],
            0.0,
        )
        square += gap * gap
    return square


@device_function
def _same_body(s, m, o):
    """True if both primitives belong to the same body; False without body numbers."""
    body = s.pair_filter.body
    return len(body) > 0 and body[s.query[m, 0]] == body[s.other[o, 0]]


@device_function
def _own_cells(s, m):
    """First and last cell that a primitive overlaps with the search radius of its own body."""
    box, r, size = s.query_box, s.own_radius, s.size
    low = (
        floor_to_int((box[m, 0] - r) / size),
        floor_to_int((box[m, 1] - r) / size),
        floor_to_int((box[m, 2] - r) / size),
    )
    return low, (
        floor_to_int((box[m, 3] + r) / size),
        floor_to_int((box[m, 4] + r) / size),
        floor_to_int((box[m, 5] + r) / size),
    )


@device_function
def _is_first_cell(s, m, o, i, j, k, low):
    """True if this cell reports a pair: opposing normals, near boxes, and first common cell of both boxes.

    `low` is the first cell within the search radius of pairs of one body.
    """
    if not normals_oppose(s.orientation, m, o):
        return False
    square, same, b = _squared_box_distance(s, m, o), _same_body(s, m, o), s.target_cells
    first = low if same else (s.query_cells[m, 0], s.query_cells[m, 1], s.query_cells[m, 2])
    radius = s.own_radius if same else s.radius
    common = i == max(first[0], b[o, 0]) and j == max(first[1], b[o, 1]) and k == max(first[2], b[o, 2])
    return common and square < radius * radius


@device_function
def _is_within_radius(s, m, o):
    """Narrow phase: True for pairs within the radius, unless their rest distance is within `clear`."""
    if not _is_candidate(s, m, o) or squared_distance(s.x, s.query, s.other, m, o) >= s.radius * s.radius:
        return False
    clear, body = s.pair_filter.clear, s.pair_filter.body
    if clear < 0.0 or body[s.query[m, 0]] != body[s.other[o, 0]]:
        return True
    return squared_distance(s.pair_filter.rest, s.query, s.other, m, o) > clear * clear


@device_function
def _is_own_body_only(s, m, at):
    """True if a hash bucket contains primitives of the query's own body only."""
    if len(s.pair_filter.body) == 0:
        return False
    own = s.pair_filter.body[s.query[m, 0]]
    return s.table.min_body[at] == own and s.table.max_body[at] == own


@device_function
def _may_contain_pairs(s, m, at, opposing, i, j, k, own):
    """True if a bucket may contain pairs: opposing normals; another body, or a cell in the own radius."""
    if (s.table.octants[at] & opposing) == 0:
        return False
    low, high = own
    inside = low[0] <= i <= high[0] and low[1] <= j <= high[1] and low[2] <= k <= high[2]
    return inside or not _is_own_body_only(s, m, at)


@do.of(Search)
def _query_cells(s, item):
    c, buckets, same_primitives = s.query_cells, len(s.table.count), s.query.shape[1] == s.other.shape[1]
    first, last, step = thread_range(len(s.query), item)
    for m in range(first, last, step):
        pair_count, opposing, own = 0, opposing_octants(s.orientation, m), _own_cells(s, m)
        for i in range(c[m, 0], c[m, 3] + 1):
            for j in range(c[m, 1], c[m, 4] + 1):
                for k in range(c[m, 2], c[m, 5] + 1):
                    at, key = bucket_of(i, j, k, buckets), key_of(i, j, k)
                    begin, count = s.table.begin[at], s.table.count[at]
                    if count > 0 and not _may_contain_pairs(s, m, at, opposing, i, j, k, own):
                        count = 0
                    for entry in range(begin, begin + count):
                        o = s.table.primitive[entry]
                        later = o > m or not same_primitives  # count pairs of the same primitives once
                        later = later and normals_may_oppose(s.orientation, m, s.table.normal, entry)
                        is_new = (
                            later and _is_first_cell(s, m, o, i, j, k, own[0]) and s.table.key[entry] == key
                        )
                        if is_new and _is_within_radius(s, m, o):
                            pair_count += 1
                            slot = atomic_add(s.total, 0, 1)
                            if slot < len(s.one):
                                s.one[slot], s.two[slot] = m, o
        s.count[m] = pair_count


@kernel
def search_all(team, cells, search):
    """Compute cell ranges and query the grid."""
    blocks = -(-len(search.query) // ITEM_SIZE)
    parallel_for(team, 0, 0, blocks, cells)
    parallel_for(team, 1, 0, blocks, search)


class PairRows(NamedTuple):
    """Sorted pairs in CSR layout.

    Attributes:
        start: (m + 1,) row offsets of the query primitives.
        one, two: (p,) query and target primitives.
    """

    start: np.ndarray
    one: np.ndarray
    two: np.ndarray


def find_pairs(
    x: np.ndarray,
    query: np.ndarray,
    other: np.ndarray,
    radius: float,
    runner: Runner = HOST,
    pair_filter: PairFilter = ANY_PAIR,
    size: float | None = None,
    capacity: int = 0,
) -> PairRows:
    """Find pairs of primitives within a radius.

    Args:
        x: (n, 3) positions [m].
        query: (m, k) query primitives.
        other: (o, k) target primitives. Vertices pair with triangles by distance. Edges pair with edges by
            distance, each pair once. Edges pair with triangles that they cross, independent of the radius.
            Triangles pair with triangles by the distance of their boxes.
        radius: Largest distance [m].
        runner: Device of the search.
        pair_filter: Pair filter.
        size: Typical size of the primitives [m], computed by default.
        capacity: Expected number of pairs.

    Returns:
        Sorted pairs on the host.
    """
    grid = None
    if len(query) and len(other):
        size = _size(x, other) if size is None else size
        grid = build_grid(Points.at(x), other, size + radius, pair_filter, runner)
    if grid is None:
        return PairRows(np.zeros(len(query) + 1, np.int64), *(np.zeros(0, np.int32) for _ in range(2)))
    pairs = search(grid, query, radius, runner, pair_filter, capacity)
    for array in pairs:
        runner.download(array)
    return pairs


def _size(x: np.ndarray, primitives: np.ndarray) -> float:
    """Typical size of primitives: mean length of the first edge [m]."""
    return float(np.linalg.norm(x[primitives[:, 1]] - x[primitives[:, 0]], axis=1).mean())


def search(
    grid: HashGrid,
    query: np.ndarray,
    radius: float,
    runner: Runner,
    pair_filter: PairFilter = ANY_PAIR,
    capacity: int = 0,
    orientation: tuple[np.ndarray, np.ndarray] = NO_ORIENTATION,
    own_radius: float | None = None,
) -> PairRows:
    """Query a hash grid for pairs, like `find_pairs`, with results in device memory.

    Args:
        grid: Hash grid of the target primitives.
        query: (m, k) query primitives.
        radius: Search radius [m].
        runner: Device of the search.
        pair_filter: Pair filter.
        capacity: Expected number of pairs.
        orientation: Normals and two-sided flags of triangles, see `Search`.
        own_radius: Radius beyond which pairs of one body are optional [m]; some are reported nevertheless.

    Returns:
        Sorted pairs in device memory.
    """
    cells = allocate_cells(grid.x, query, radius, grid.size, pair_filter, runner)
    capacity = max(capacity, INITIAL_CAPACITY * len(query))
    while True:
        count, total = runner.empty((len(query),), np.int64), runner.zeros((1,), np.int64)
        one, two = (runner.empty((capacity,), np.int32) for _ in range(2))
        boxes = cells.cells, grid.cells, cells.box, grid.box
        radii = float(radius), (1 + BOX_ENLARGEMENT) * float(radius if own_radius is None else own_radius)
        fields = (
            grid.x,
            query,
            grid.primitives,
            *radii,
            grid.size,
            pair_filter,
            *boxes,
            grid.table,
            orientation,
        )
        runner.run(search_all, 2, cells, Search(*fields, count, total, one, two))
        runner.download(total)
        if total[0] <= capacity:
            break
        capacity = int(total[0])
    starts = PrefixSum.of(count, runner)
    first, second, ordered = (runner.empty((int(total[0]),), np.int32) for _ in range(3))
    rows = ScatterRows(one, two, starts.start, count, first, second)
    runner.run(sort_into_rows, PREFIX_SUM_PHASES + 3, starts, rows, ordered)
    return PairRows(starts.start, first, ordered)


def near(
    x: np.ndarray, query: np.ndarray, other: np.ndarray, radius: float, runner: Runner = HOST
) -> tuple[np.ndarray, np.ndarray]:
    """Find all pairs within a radius [m], see `find_pairs`.

    Returns:
        Row offsets (m + 1,) and sorted target primitives (p,).
    """
    x = np.ascontiguousarray(x, float)
    same_primitives = query is other
    other = np.ascontiguousarray(other, np.int64)
    pairs = find_pairs(
        x, other if same_primitives else np.ascontiguousarray(query, np.int64), other, radius, runner
    )
    return pairs.start, pairs.two
