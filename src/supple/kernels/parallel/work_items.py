"""Work items of threads: index ranges of a thread in an item, and reductions over cooperating threads.

A work item among first, ..., last - 1 is a number if one thread processes all its lanes, or a `Place` if each
thread processes one lane. Several threads may share a lane and split its sums (see `divide`).
"""

from __future__ import annotations

from typing import Any

from numba import types

from supple.kernels.compile.dispatch import chosen_by_type, like
from supple.kernels.simd.load_store import RECORD, WARP, Lane, Place
from supple.kernels.simd.pack import pack_of

NOTHING = 1 << 40
"""Start index of an empty range, beyond every number of items."""


def inside(place: Any, last: int) -> bool:
    """True if a work item belongs to the phase."""
    return place < last


@chosen_by_type(inside)
def _inside(place, last):
    if isinstance(place, types.BaseTuple):
        return lambda place, last: place.number < last
    return lambda place, last: place < last


def number(place: Any) -> int:
    """Number of a work item."""
    return place


@chosen_by_type(number)
def _number(place):
    if isinstance(place, types.BaseTuple):
        return lambda place: place.number
    return lambda place: place


def strides(place: Any) -> tuple[int, int]:
    """(first, step) of this thread's entries in the block of a work item."""
    return 0, 1


@chosen_by_type(strides)
def _strides(place):
    if getattr(place, "instance_class", None) is Place:
        return lambda place: (place.lane, WARP)
    if isinstance(place, types.BaseTuple):  # lane after lane: the first lane processes the block
        return lambda place: (0, 1) if place.lane == 0 else (NOTHING, 1)
    return lambda place: (0, 1)


def spans(place: Any, array: Any) -> tuple[int, int, int]:
    """(first, step, width) of this thread's packs in the block of a work item."""
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
    """Address of a data row for the thread of a work item."""
    return row


@chosen_by_type(row_at)
def _row_at(place, row):
    if isinstance(place, types.BaseTuple):
        return lambda place, row: Lane(row, place.lane, place.copy, place.offset)
    return lambda place, row: row


def lane_range(row: Any, lanes: int) -> tuple[int, int]:
    """(first, step) of this thread's lanes in a row: all, or every `lanes`-th."""
    return 0, 1


@chosen_by_type(lane_range)
def _lane_range(row, lanes):
    if isinstance(row, types.BaseTuple):
        return lambda row, lanes: (row.lane, lanes)
    return lambda row, lanes: (0, 1)


def divide(place: Any, width: Any) -> Any:
    """Restrict a work item to width[number] lanes, each shared by several threads."""
    return place


@chosen_by_type(divide)
def _divide(place, width):
    if getattr(place, "instance_class", None) is Place:
        return lambda place, width: Place(
            place.number, place.lane, types.int64(width[place.number]), place.slot, place.copy, place.offset
        )
    return lambda place, width: place


def renumbered(place: Any, item: int) -> Any:
    """Same thread at another work item."""
    return item


@chosen_by_type(renumbered)
def _renumbered(place, item):
    if isinstance(place, types.BaseTuple):
        return lambda place, item: like(
            place, (types.int64(item), place.lane, place.width, place.slot, place.copy, place.offset)
        )
    return lambda place, item: types.int64(item)


def leads(place: Any) -> bool:
    """True if this thread writes the result of a shared lane."""
    return True


@chosen_by_type(leads)
def _leads(place):
    if isinstance(place, types.BaseTuple):
        return lambda place: place.lane < place.width
    return lambda place: True


def sum_shares(place: Any, value: Any) -> Any:
    """Sum a tuple of one or nine packs over the threads sharing a lane."""
    return value


@chosen_by_type(sum_shares)
def _sum_shares(place, value):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.work_items import sum_nine, sum_one

        if len(value) == 1:
            return lambda place, value: sum_one(place, value)
        return lambda place, value: sum_nine(place, value)
    return lambda place, value: value


def least_share(place: Any, value: Any) -> Any:
    """Minimum of a pack over the threads sharing a lane."""
    return value


@chosen_by_type(least_share)
def _least_share(place, value):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.work_items import least_over_parts

        return lambda place, value: least_over_parts(place, value)
    return lambda place, value: value


def copy_of(place: Any) -> int:
    """Batch member of a work item."""
    return 0


@chosen_by_type(copy_of)
def _copy_of(place):
    if isinstance(place, types.BaseTuple):
        return lambda place: place.copy
    return lambda place: 0


def offset_of(place: Any) -> int:
    """First vertex vector of the batch member of a work item."""
    return 0


@chosen_by_type(offset_of)
def _offset_of(place):
    if isinstance(place, types.BaseTuple):
        return lambda place: place.offset
    return lambda place: 0


def together(place: Any) -> None:
    """Barrier for the threads of a work item; makes their writes visible to each other."""


@chosen_by_type(together)
def _together(place):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.work_items import wait_for_warp

        return lambda place: wait_for_warp()
    return lambda place: None


def lane_most(place: Any, value: float) -> float:
    """Maximum of a number over the threads of a work item."""
    return value


@chosen_by_type(lane_most)
def _lane_most(place, value):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.work_items import most_over_warp

        return lambda place, value: most_over_warp(value)
    return lambda place, value: value


def lane_total(place: Any, value: float) -> float:
    """Sum of a number over the threads of a work item."""
    return value


@chosen_by_type(lane_total)
def _lane_total(place, value):
    if getattr(place, "instance_class", None) is Place:
        from supple.kernels.cuda.work_items import sum_over_warp

        return lambda place, value: sum_over_warp(value)
    return lambda place, value: value
