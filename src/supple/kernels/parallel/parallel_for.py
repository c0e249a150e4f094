"""Parallel loops of all kernels: over work items, over rows, and over rows shared by GPU threads.

A shared row loops over a range, such as the blocks in a matrix row (`row_range`), reduces the results
(`row_sum`) and writes once (`is_writer`).

A thread team runs a work function on every item of a phase. Work is a NamedTuple of its arguments;
`@do.of(ItsClass)` defines the function that processes one item.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from supple.kernels.compile.dispatch import device_function, generic, inline_control, overload_by_type
from supple.kernels.parallel.thread_team import Threads, end_phase, first_item, next_item
from supple.kernels.parallel.work_items import is_in_range, item_number, lane_stride
from supple.kernels.simd.load_store import WARP, WorkItem


@generic
def do(work, item):
    """Process one work item."""


@inline_control
def parallel_for_nowait(team, phase, first, last, work):
    """Process this thread's share of the items first to last - 1, without a barrier at the end."""
    item = first_item(team, phase, first, last)
    while is_in_range(item, last):
        do(work, item)
        item = next_item(team, phase, item, first, last)


@inline_control
def parallel_for(team, phase, first, last, work):
    """Process items first to last - 1 in one phase, followed by a barrier."""
    parallel_for_nowait(team, phase, first, last, work)
    end_phase(team, phase, first, last)


TILE_ROWS = 32
"""Rows per work item."""

ROW_THREADS = 8
"""GPU threads per row."""

ROWS_PER_WARP = WARP // ROW_THREADS


class SerialRow(NamedTuple):
    """Row processed by one thread."""

    row: Any


class SharedRow(NamedTuple):
    """Row processed by several threads of a warp.

    Attributes:
        row: Row number.
        share: Index of this thread among them; SHARERS for surplus threads.
    """

    row: Any
    share: Any


def row_range(start: Any, at: Any) -> tuple[int, int, int]:
    """(first, last, step) of this thread's share of the range start[row] to start[row + 1] - 1."""
    return start[at.row], start[at.row + 1], 1


@overload_by_type(row_range)
def _row_range(start, at):
    if at.instance_class is SharedRow:
        return lambda start, at: (start[at.row] + at.share, start[at.row + 1], ROW_THREADS)
    return lambda start, at: (start[at.row], start[at.row + 1], 1)


def row_sum(at: Any, number: float) -> float:
    """Sum a number over the threads of a row; every thread gets the result."""
    return number


@overload_by_type(row_sum)
def _row_sum(at, number):
    if at.instance_class is SharedRow:
        from supple.kernels.cuda.thread_grid import sum_over_row_threads

        return lambda at, number: sum_over_row_threads(number)
    return lambda at, number: number


def is_writer(at: Any) -> bool:
    """True if this thread writes the result of a row."""
    return True


@overload_by_type(is_writer)
def _is_writer(at):
    if at.instance_class is SharedRow:
        return lambda at: at.share == 0
    return lambda at: True


class Rows(NamedTuple):
    """Work on rows first to last - 1."""

    first: Any
    last: Any
    work: Any


def do_rows(item: Any, rows: Rows) -> None:
    """Process this thread's rows of a work item."""


@overload_by_type(do_rows, control_flow=True)
def _do_rows(item, rows):
    if getattr(item, "instance_class", None) is WorkItem:

        def process_warp(item, rows):
            row = rows.first + item.number * ROWS_PER_WARP + item.lane // ROW_THREADS
            share = item.lane % ROW_THREADS if row < rows.last else ROW_THREADS
            do(rows.work, SharedRow(min(row, rows.last - 1), share))

        return process_warp
    if isinstance(item, types.BaseTuple):

        def process_lane(item, rows):
            row = rows.first + item.number * ROWS_PER_WARP + item.lane // ROW_THREADS
            if item.lane % ROW_THREADS == 0 and row < rows.last:
                do(rows.work, SerialRow(row))

        return process_lane

    def process_tile(item, rows):
        start = rows.first + item * TILE_ROWS
        for row in range(start, min(rows.last, start + TILE_ROWS)):
            do(rows.work, SerialRow(row))

    return process_tile


@do.of(Rows)
def _rows(rows, item):
    do_rows(item, rows)


def rows_per_item(team: Any) -> int:
    """Number of rows per work item."""
    return TILE_ROWS


@overload_by_type(rows_per_item)
def _rows_per_item(team):
    if team.instance_class is Threads:
        return lambda team: TILE_ROWS
    return lambda team: ROWS_PER_WARP


@inline_control
def parallel_for_shared_rows(team, phase, first, last, work):
    """Process rows first to last - 1 in one phase."""
    items = -(-(last - first) // rows_per_item(team))
    parallel_for(team, phase, 0, items, Rows(first, last, work))


@device_function
def tile_count(rows):
    """Number of tiles of `rows` rows."""
    return -(-rows // TILE_ROWS)


@device_function
def tile_range(item, first, last):
    """(begin, end, step) of the calling thread's rows in a tile of rows first to last - 1."""
    begin, step = lane_stride(item)
    start = first + item_number(item) * TILE_ROWS
    return start + begin, min(last, start + TILE_ROWS), step


class Tiled(NamedTuple):
    """Work on each of the rows first to last - 1."""

    first: Any
    last: Any
    work: Any


@do.of(Tiled)
def _tile(tiled, item):
    row, end, step = tile_range(item, tiled.first, tiled.last)
    while row < end:
        do(tiled.work, row)
        row += step


@inline_control
def parallel_for_rows(team, phase, first, last, work):
    """Run work on rows first to last - 1 in one phase."""
    parallel_for(team, phase, 0, tile_count(last - first), Tiled(first, last, work))
