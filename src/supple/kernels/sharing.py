"""Rows of work that a thread of the CPU does alone, and several threads of a device together.

What is done at a row goes through a range of things, such as the blocks of a matrix in it (`range_of`), adds
up (`sum_up`), and the result is written once (`writes`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from supple.kernels.access import WARP, Place
from supple.kernels.compile import chosen_by_type, passage
from supple.kernels.driving import do, each_item
from supple.kernels.team import Threads

TILE = 32
"""Rows that a thread of the CPU does one after the other."""

SHARERS = 8
"""Threads of a device that do a row together."""

AT_ONCE = WARP // SHARERS


class Whole(NamedTuple):
    """A row that one thread does."""

    row: Any


class Shared(NamedTuple):
    """A row that several threads of a warp do, of which this is the share-th; SHARERS if it is too many."""

    row: Any
    share: Any


def range_of(start: Any, at: Any) -> tuple[int, int, int]:
    """(first, last, step): which of start[row], ..., start[row + 1] - 1 are this thread's."""
    return start[at.row], start[at.row + 1], 1


@chosen_by_type(range_of)
def _range_of(start, at):
    if at.instance_class is Shared:
        return lambda start, at: (start[at.row] + at.share, start[at.row + 1], SHARERS)
    return lambda start, at: (start[at.row], start[at.row + 1], 1)


def sum_up(at: Any, number: float) -> float:
    """The sum of a number over the threads that do a row, the same in each."""
    return number


@chosen_by_type(sum_up)
def _sum_up(at, number):
    if at.instance_class is Shared:
        from supple.kernels.cuda.grid import sum_over_sharers

        return lambda at, number: sum_over_sharers(number)
    return lambda at, number: number


def writes(at: Any) -> bool:
    """Whether this thread writes the result of a row."""
    return True


@chosen_by_type(writes)
def _writes(at):
    if at.instance_class is Shared:
        return lambda at: at.share == 0
    return lambda at: True


class Rows(NamedTuple):
    """Work at rows first, ..., last - 1."""

    first: Any
    last: Any
    work: Any


def do_rows(place: Any, rows: Rows) -> None:
    """Do the work at those rows that are this thread's at a place."""


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
    return TILE


@chosen_by_type(rows_at_a_place)
def _rows_at_a_place(team):
    if team.instance_class is Threads:
        return lambda team: TILE
    return lambda team: AT_ONCE


@passage
def each_shared_row(team, phase, first, last, work):
    """Do the work at rows first, ..., last - 1 in one phase."""
    items = -(-(last - first) // rows_at_a_place(team))
    each_item(team, phase, 0, items, Rows(first, last, work))
