"""Places: what a thread does of an item, and what it shares with others there.

A place names an item among first, ..., last - 1: by its number where one thread does all lanes of it at
once, by a `Place` where a thread does one of its lanes and, where several share a lane, a part of what has to
be summed up for it (see `divide`).
"""

from __future__ import annotations

from typing import Any

from numba import types

from supple.kernels.access import RECORD, WARP, Lane, Place
from supple.kernels.compile import chosen_by_type, like
from supple.kernels.pack import pack_of

NOTHING = 1 << 40
"""Beyond every number of items."""


def inside(place: Any, last: int) -> bool:
    """Whether a place is one of the phase."""
    return place < last


@chosen_by_type(inside)
def _inside(place, last):
    if isinstance(place, types.BaseTuple):
        return lambda place, last: place.number < last
    return lambda place, last: place < last


def number(place: Any) -> int:
    """The number of the item at a place."""
    return place


@chosen_by_type(number)
def _number(place):
    if isinstance(place, types.BaseTuple):
        return lambda place: place.number
    return lambda place: place


def strides(place: Any) -> tuple[int, int]:
    """(first, step): which of the numbers of a block at a place are this thread's."""
    return 0, 1


@chosen_by_type(strides)
def _strides(place):
    if getattr(place, "instance_class", None) is Place:
        return lambda place: (place.lane, WARP)
    if isinstance(place, types.BaseTuple):  # lane after lane: the first does everything
        return lambda place: (0, 1) if place.lane == 0 else (NOTHING, 1)
    return lambda place: (0, 1)


def spans(place: Any, array: Any) -> tuple[int, int, int]:
    """(first, step, width): which packs of the numbers of a block at a place are this thread's."""
    return 0, 1, 1


@chosen_by_type(spans)
def _spans(place, array):
    if isinstance(place, types.BaseTuple):

        def by_records(place, array):
            first, step = strides(place)
            return RECORD * first, RECORD * step, RECORD

        return by_records
    lanes = pack_of(array).lanes
    return lambda place, array: (0, lanes, lanes)


def row_at(place: Any, row: int) -> Any:
    """The name by which a thread at a place loads a row."""
    return row


@chosen_by_type(row_at)
def _row_at(place, row):
    if isinstance(place, types.BaseTuple):
        return lambda place, row: Lane(row, place.lane, place.copy, place.offset)
    return lambda place, row: row


def lane_range(row: Any, lanes: int) -> tuple[int, int]:
    """(first, step): which of the items of a row are this thread's: all, or every lanes-th."""
    return 0, 1


@chosen_by_type(lane_range)
def _lane_range(row, lanes):
    if isinstance(row, types.BaseTuple):
        return lambda row, lanes: (row.lane, lanes)
    return lambda row, lanes: (0, 1)


def divide(place: Any, width: Any) -> Any:
    """The place, where an item has width[number] lanes only and each is shared by several threads."""
    return place


@chosen_by_type(divide)
def _divide(place, width):
    if getattr(place, "instance_class", None) is Place:
        return lambda place, width: Place(
            place.number, place.lane, types.int64(width[place.number]), place.slot, place.copy, place.offset
        )
    return lambda place, width: place


def renumbered(place: Any, item: int) -> Any:
    """The place of the same thread at another item."""
    return item


@chosen_by_type(renumbered)
def _renumbered(place, item):
    if isinstance(place, types.BaseTuple):
        return lambda place, item: like(
            place, (types.int64(item), place.lane, place.width, place.slot, place.copy, place.offset)
        )
    return lambda place, item: types.int64(item)


def leads(place: Any) -> bool:
    """Whether this thread writes the result of a place that several share."""
    return True


@chosen_by_type(leads)
def _leads(place):
    if isinstance(place, types.BaseTuple):
        return lambda place: place.lane < place.width
    return lambda place: True


def sum_shares(place: Any, value: Any) -> Any:
    """The sums of a tuple of one or nine packs over all threads that share a place."""
    return value


@chosen_by_type(sum_shares)
def _sum_shares(place, value):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.grid import sum_nine, sum_one

        if len(value) == 1:
            return lambda place, value: sum_one(place, value)
        return lambda place, value: sum_nine(place, value)
    return lambda place, value: value


def least_share(place: Any, value: Any) -> Any:
    """The least of a pack over all threads that share a place."""
    return value


@chosen_by_type(least_share)
def _least_share(place, value):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.grid import least_over_parts

        return lambda place, value: least_over_parts(place, value)
    return lambda place, value: value


def copy_of(place: Any) -> int:
    """The number of the copy of the state that a place belongs to."""
    return 0


@chosen_by_type(copy_of)
def _copy_of(place):
    if isinstance(place, types.BaseTuple):
        return lambda place: place.copy
    return lambda place: 0


def offset_of(place: Any) -> int:
    """Where that copy's records begin."""
    return 0


@chosen_by_type(offset_of)
def _offset_of(place):
    if isinstance(place, types.BaseTuple):
        return lambda place: place.offset
    return lambda place: 0


def together(place: Any) -> None:
    """Return once all threads at a place are here and see what each has written."""


@chosen_by_type(together)
def _together(place):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.grid import wait_for_warp

        return lambda place: wait_for_warp()
    return lambda place: None


def lane_most(place: Any, value: float) -> float:
    """The largest of a number over all threads at a place."""
    return value


@chosen_by_type(lane_most)
def _lane_most(place, value):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.grid import most_over_warp

        return lambda place, value: most_over_warp(value)
    return lambda place, value: value


def lane_total(place: Any, value: float) -> float:
    """The sum of a number over all threads at a place."""
    return value


@chosen_by_type(lane_total)
def _lane_total(place, value):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.grid import sum_over_warp

        return lambda place, value: sum_over_warp(value)
    return lambda place, value: value
