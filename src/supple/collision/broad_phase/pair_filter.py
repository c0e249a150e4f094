"""Filters of candidate pairs: by body during the search, and by distance afterwards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.collision.geometry.primitives import squared_box_distance, squared_distance
from supple.kernels import (
    Runner,
    device_function,
    do,
    item_number,
    kernel,
    lane_stride,
    parallel_for,
)

ALL, WITHIN, BETWEEN = 0, 1, 2
"""Pair filters: all pairs, pairs within a body, pairs between bodies."""


class PairFilter(NamedTuple):
    """Pair filter of the broad phase.

    Attributes:
        which: `ALL`, `WITHIN` or `BETWEEN`.
        body: (n,) body of each vertex.
        box: (b, 6) region of possible neighbors of each body, lower then upper bounds [m].
        start, others: (b + 1,) and (k,): neighbors of body i are others[start[i]:start[i + 1]], for
            `BETWEEN`.
        outdated: (b,) bodies whose internal pairs are searched, for `WITHIN`.
        rest: (n, 3) rest positions [m].
        clear: Rest distance [m]; pairs of one body at or below it are excluded. Negative: no exclusion.
    """

    which: Any
    body: Any
    box: Any
    start: Any
    others: Any
    outdated: Any
    rest: Any
    clear: Any


ANY_PAIR = PairFilter(
    ALL, np.zeros(0, np.int64), np.zeros((0, 6)), np.zeros(1, np.int64), np.zeros(0, np.int64),
    np.zeros(0, bool), np.zeros((0, 3)), -1.0,
)  # fmt: skip
"""Filter that accepts all pairs, independent of bodies."""


RUN_LENGTH = 16
"""Pairs per thread, processed in sequence, so that the filtered pairs keep their order."""

RUNS_PER_ITEM = 32
"""Runs per work item."""


class FilterPairs(NamedTuple):
    """Work: distance test of candidate pairs.

    Attributes:
        x: (n, 3) positions [m].
        query, other: Query and target primitives.
        one, two: (p,) pairs.
        radius: Largest distance [m].
        is_near: (p,) output: True for pairs within the radius.
        count: (runs,) output: number of these pairs in each run.
    """

    x: Any
    query: Any
    other: Any
    one: Any
    two: Any
    radius: Any
    is_near: Any
    count: Any


class CompactPairs(NamedTuple):
    """Work: compaction of filtered pairs.

    Attributes:
        one, two: (p,) pairs.
        is_near: (p,) filter.
        begin: (runs,) output index of each run.
        first, second: (k,) output: filtered pairs.
    """

    one: Any
    two: Any
    is_near: Any
    begin: Any
    first: Any
    second: Any


@device_function
def _run_range(item, runs):
    """(first, last, step): range of runs of this thread."""
    first, step = lane_stride(item)
    start = item_number(item) * RUNS_PER_ITEM
    return start + first, min(runs, start + RUNS_PER_ITEM), step


@do.of(FilterPairs)
def _filter_pairs(s, item):
    square = s.radius * s.radius
    first, last, step = _run_range(item, len(s.count))
    for r in range(first, last, step):
        near_count = 0
        for p in range(RUN_LENGTH * r, min(len(s.one), RUN_LENGTH * (r + 1))):
            m, o = s.one[p], s.two[p]
            near_by = squared_box_distance(s.x, s.query, s.other, m, o, square) < square
            near_by = near_by and squared_distance(s.x, s.query, s.other, m, o) < square
            s.is_near[p] = near_by
            near_count += 1 if near_by else 0
        s.count[r] = near_count


@do.of(CompactPairs)
def _gather(g, item):
    first, last, step = _run_range(item, len(g.begin))
    for r in range(first, last, step):
        at = g.begin[r]
        for p in range(RUN_LENGTH * r, min(len(g.one), RUN_LENGTH * (r + 1))):
            if g.is_near[p]:
                g.first[at], g.second[at] = g.one[p], g.two[p]
                at += 1


@kernel
def filter_all(team, work):
    """Test the distances of all pairs."""
    parallel_for(team, 0, 0, -(-len(work.count) // RUNS_PER_ITEM), work)


@kernel
def compact_all(team, compaction):
    """Compact all filtered pairs."""
    parallel_for(team, 0, 0, -(-len(compaction.begin) // RUNS_PER_ITEM), compaction)


def filter_pairs(
    pairs: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    radius: float,
    runner: Runner,
) -> tuple[np.ndarray, np.ndarray]:
    """Filter candidate pairs by distance.

    Args:
        pairs: (x, seek, other, one, two) as in `FilterPairs`.
        radius: Largest distance [m].
        runner: Device of the computation.

    Returns:
        Primitives (k,) of the pairs within the radius, in input order.
    """
    _, _, _, one, two = pairs
    if len(one) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    is_near, count = (
        runner.zeros((len(one),), np.bool_),
        runner.zeros((-(-len(one) // RUN_LENGTH),), np.int64),
    )
    runner.run(filter_all, 1, FilterPairs(*pairs, float(radius), is_near, count))
    runner.download(count)
    ends = np.cumsum(count)
    first, second = (runner.zeros((int(ends[-1]),), np.int64) for _ in range(2))
    if len(first):
        runner.run(compact_all, 1, CompactPairs(one, two, is_near, ends - count, first, second))
        runner.download(first)
        runner.download(second)
    return first, second


@kernel
def _merge(a, b, c, d, first, second):
    i = j = 0
    for k in range(len(first)):
        if j == len(c) or (i < len(a) and (a[i] < c[j] or (a[i] == c[j] and b[i] < d[j]))):
            first[k], second[k] = a[i], b[i]
            i += 1
        else:
            first[k], second[k] = c[j], d[j]
            j += 1


def merge_pairs(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Merge two sorted lists of pairs into one."""
    first, second = (np.empty(len(one[0]) + len(other[0]), np.int32) for _ in range(2))
    _merge(*one, *other, first, second)
    return first, second
