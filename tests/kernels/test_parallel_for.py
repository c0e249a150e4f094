"""Parallel loops process every item once, and no phase begins before its predecessor has ended."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from supple.kernels import do, is_leader, item_number, kernel, lane_stride, parallel_for, run, threads_for
from supple.kernels.emulated_gpu import run_lanewise
from supple.kernels.parallel.parallel_for import TILE_ROWS, parallel_for_rows
from supple.kernels.parallel.thread_team import CHUNK_ITEMS
from supple.ordering import ListedColors, color_bounds, each_color

TEAMS = [1, 2, 3, 8, "lanes"]
"""Numbers of threads, and a lane-by-lane device."""

SIZES = [0, 1, 2, CHUNK_ITEMS - 1, CHUNK_ITEMS, CHUNK_ITEMS + 1, 5 * CHUNK_ITEMS + 3]


class Count(NamedTuple):
    """done[item] += 1, by the first thread at a place; early[item]: number of unfinished items of
    `before`."""

    done: Any
    before: Any
    early: Any


@do.of(Count)
def _count(work, work_item):
    first, _ = lane_stride(work_item)
    if first == 0 and is_leader(work_item):
        item = item_number(work_item)
        for other in work.before:
            if work.done[other] == 0:
                work.early[item] += 1
        work.done[item] += 1


class Mark(NamedTuple):
    """done[row] += 1."""

    done: Any


@do.of(Mark)
def _mark(work, row):
    work.done[row] += 1


@kernel
def count_items(team, first, last, work):
    parallel_for(team, 0, first, last, work)


@kernel
def count_twice(team, first, last, work, then):
    parallel_for(team, 0, 0, first, work)
    parallel_for(team, 1, first, last, then)


@kernel
def mark_rows(team, first, last, work):
    parallel_for_rows(team, 0, first, last, work)


class Order(NamedTuple):
    """seen[batch]: number of finished batches of the previous color at the start of this one."""

    color: Any
    done: Any
    seen: Any


@do.of(Order)
def _order(work, work_item):
    first, _ = lane_stride(work_item)
    if first == 0:
        batch = item_number(work_item)
        for other in range(len(work.color)):
            if work.color[other] == work.color[batch] - 1:
                work.seen[batch] += work.done[other]
        work.done[batch] += 1


@kernel
def count_colors(team, colors, work, sweeps, phases):
    bounds = color_bounds(colors, 0)
    phase = 0
    for _ in range(sweeps):
        phase = each_color(team, phase, colors, bounds, work)
    phases[0] = phase


def on(team, kernel, phases, *args):
    if team == "lanes":
        run_lanewise(kernel, phases, np.zeros(1, np.int32), 1, *args)
    else:
        run(kernel, team, threads_for(phases), *args)


def nothing(n):
    return np.zeros(n, np.int64)


@pytest.mark.parametrize("team", TEAMS)
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("first", [0, 3])
def test_every_item_is_processed_once(team, count, first):
    done = nothing(first + count + 2)
    on(team, count_items, 1, first, first + count, Count(done, nothing(0), nothing(len(done))))
    np.testing.assert_array_equal(np.flatnonzero(done), np.arange(first, first + count))
    assert done.max(initial=0) <= 1


@pytest.mark.parametrize("team", TEAMS)
def test_phases_begin_after_their_predecessor(team):
    first, last = 200, 400
    done, early = nothing(last), nothing(last)
    work = Count(done, nothing(0), early), Count(done, np.arange(first), early)
    for _ in range(20):
        done[:] = early[:] = 0
        on(team, count_twice, 2, first, last, *work)
        assert (done == 1).all()
        assert not early.any()


@pytest.mark.parametrize("team", TEAMS)
@pytest.mark.parametrize("count", [0, 1, TILE_ROWS - 1, TILE_ROWS, TILE_ROWS + 1, 5 * TILE_ROWS])
@pytest.mark.parametrize("first", [0, 7])
def test_every_row_is_processed_once(team, count, first):
    done = nothing(first + count + 2)
    on(team, mark_rows, 1, first, first + count, Mark(done))
    np.testing.assert_array_equal(np.flatnonzero(done), np.arange(first, first + count))
    assert done.max(initial=0) <= 1


@pytest.mark.parametrize("team", TEAMS)
@pytest.mark.parametrize("color_order", [False, True])
@pytest.mark.parametrize("sizes", [[], [1], [0], [3, 0, 20], [40, 1, 17, 9]])
def test_colors_are_processed_in_order(team, color_order, sizes):
    """Batches in their own order and in that of a list, which has capacity for more colors; twice."""
    start, n, sweeps = np.cumsum([0, *sizes]), sum(sizes), 2
    order = np.random.default_rng(0).permutation(n) if color_order else np.arange(n)
    color = nothing(n)
    color[order] = np.repeat(np.arange(len(sizes)), sizes)
    slots = np.append(start, [-1, -1])
    colors = ListedColors(len(sizes), slots, order) if color_order else start
    done, seen, phases = nothing(n), nothing(n), nothing(1)
    on(team, count_colors, sweeps * len(sizes), colors, Order(color, done, seen), sweeps, phases)
    np.testing.assert_array_equal(done, sweeps)
    before = np.array([0, *sizes])[color] if n else nothing(0)
    np.testing.assert_array_equal(seen, before * (1 + 2))
    assert phases[0] == sweeps * len(sizes)
