"""Loops over rows, each processed by one CPU thread or by several GPU threads.

A row loops over a range, such as the blocks in a matrix row (`range_of`), reduces the results (`sum_up`) and
writes once (`writes`).

Parallel loop of all kernels: a thread team runs a work function on every item of a phase.

Work is a NamedTuple of its arguments; `@do.of(ItsClass)` defines the function that processes one item.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from supple.kernels.compile.dispatch import chosen_by_type, generic, passage
from supple.kernels.parallel.thread_team import Threads, enter, leave, proceed
from supple.kernels.parallel.work_items import inside
from supple.kernels.simd.load_store import WARP, Place


@generic
def do(work, place):
    """Process one work item."""


@passage
def take_part(team, phase, first, last, work):
    """Process this thread's share of the items first to last - 1, without a barrier at the end."""
    place = enter(team, phase, first, last)
    while inside(place, last):
        do(work, place)
        place = proceed(team, phase, place, first, last)


@passage
def each_item(team, phase, first, last, work):
    """Process items first to last - 1 in one phase, followed by a barrier."""
    take_part(team, phase, first, last, work)
    leave(team, phase, first, last)


TILE = 32
"""Rows per work item of a CPU thread."""

SHARERS = 8
"""GPU threads per row."""

AT_ONCE = WARP // SHARERS


class Whole(NamedTuple):
    """Row processed by one thread."""

    row: Any


class Shared(NamedTuple):
    """Row processed by several threads of a warp.

    Attributes:
        row: Row number.
        share: Index of this thread among them; SHARERS for surplus threads.
    """

    row: Any
    share: Any


def range_of(start: Any, at: Any) -> tuple[int, int, int]:
    """(first, last, step) of this thread's share of the range start[row] to start[row + 1] - 1."""
    return start[at.row], start[at.row + 1], 1


@chosen_by_type(range_of)
def _range_of(start, at):
    if at.instance_class is Shared:
        return lambda start, at: (start[at.row] + at.share, start[at.row + 1], SHARERS)
    return lambda start, at: (start[at.row], start[at.row + 1], 1)


def sum_up(at: Any, number: float) -> float:
    """Sum a number over the threads of a row; every thread gets the result."""
    return number


@chosen_by_type(sum_up)
def _sum_up(at, number):
    if at.instance_class is Shared:
        from supple.kernels.cuda.work_items import sum_over_sharers

        return lambda at, number: sum_over_sharers(number)
    return lambda at, number: number


def writes(at: Any) -> bool:
    """True if this thread writes the result of a row."""
    return True


@chosen_by_type(writes)
def _writes(at):
    if at.instance_class is Shared:
        return lambda at: at.share == 0
    return lambda at: True


class Rows(NamedTuple):
    """Work on rows first to last - 1."""

    first: Any
    last: Any
    work: Any


def do_rows(place: Any, rows: Rows) -> None:
    """Process this thread's rows of a work item."""


@chosen_by_type(do_rows, leads_on=True)
def _do_rows(place, rows):
    if getattr(place, "instance_class", None) is Place:

        def together(place, rows):
            row = rows.first + place.number * AT_ONCE + place.lane // SHARERS
            share = place.lane % SHARERS if row < rows.last else SHARERS
            do(rows.work, Shared(min(row, rows.last - 1), share))

        return together
    if isinstance(place, types.BaseTuple):

        def lane_by_lane(place, rows):
            row = rows.first + place.number * AT_ONCE + place.lane // SHARERS
            if place.lane % SHARERS == 0 and row < rows.last:
                do(rows.work, Whole(row))

        return lane_by_lane

    def alone(place, rows):
        start = rows.first + place * TILE
        for row in range(start, min(rows.last, start + TILE)):
            do(rows.work, Whole(row))

    return alone


@do.of(Rows)
def _rows(rows, place):
    do_rows(place, rows)


def rows_at_a_place(team: Any) -> int:
    """Number of rows per work item."""
    return TILE


@chosen_by_type(rows_at_a_place)
def _rows_at_a_place(team):
    if team.instance_class is Threads:
        return lambda team: TILE
    return lambda team: AT_ONCE


@passage
def each_shared_row(team, phase, first, last, work):
    """Process rows first to last - 1 in one phase."""
    items = -(-(last - first) // rows_at_a_place(team))
    each_item(team, phase, 0, items, Rows(first, last, work))
