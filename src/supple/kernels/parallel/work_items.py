"""Work items of threads: index ranges of a thread in an item, and reductions over cooperating threads.

A work item among first, ..., last - 1 is a number if one thread processes all its lanes, or a `WorkItem` if
each thread processes one lane. Several threads may share a lane and split its sums (see `split_lanes`).
"""

from __future__ import annotations

from typing import Any

from numba import types

from supple.kernels.compile.dispatch import like, overload_by_type
from supple.kernels.simd.load_store import RECORD, WARP, Lane, WorkItem
from supple.kernels.simd.pack import pack_of

EMPTY_START = 1 << 40
"""Start index of an empty range, beyond every number of items."""


def is_in_range(item: Any, last: int) -> bool:
    """True if a work item belongs to the phase."""
    return item < last


@overload_by_type(is_in_range)
def _is_in_range(item, last):
    if isinstance(item, types.BaseTuple):
        return lambda item, last: item.number < last
    return lambda item, last: item < last


def item_number(item: Any) -> int:
    """Number of a work item."""
    return item


@overload_by_type(item_number)
def _item_number(item):
    if isinstance(item, types.BaseTuple):
        return lambda item: item.number
    return lambda item: item


def lane_stride(item: Any) -> tuple[int, int]:
    """(first, step) of this thread's entries in the block of a work item."""
    return 0, 1


@overload_by_type(lane_stride)
def _lane_stride(item):
    if getattr(item, "instance_class", None) is WorkItem:
        return lambda item: (item.lane, WARP)
    if isinstance(item, types.BaseTuple):  # lane after lane: the first lane processes the block
        return lambda item: (0, 1) if item.lane == 0 else (EMPTY_START, 1)
    return lambda item: (0, 1)


def pack_stride(item: Any, array: Any) -> tuple[int, int, int]:
    """(first, step, width) of this thread's packs in the block of a work item."""
    return 0, 1, 1


@overload_by_type(pack_stride)
def _pack_stride(item, array):
    if isinstance(item, types.BaseTuple):

        def records_stride(item, array):
            first, step = lane_stride(item)
            return RECORD * first, RECORD * step, RECORD

        return records_stride
    lanes = pack_of(array).lanes
    return lambda item, array: (0, lanes, lanes)


def row_address(item: Any, row: int) -> Any:
    """Address of a data row for the thread of a work item."""
    return row


@overload_by_type(row_address)
def _row_address(item, row):
    if isinstance(item, types.BaseTuple):
        return lambda item, row: Lane(row, item.lane, item.member, item.offset)
    return lambda item, row: row


def lane_range(row: Any, lanes: int) -> tuple[int, int]:
    """(first, step) of this thread's lanes in a row: all, or every `lanes`-th."""
    return 0, 1


@overload_by_type(lane_range)
def _lane_range(row, lanes):
    if isinstance(row, types.BaseTuple):
        return lambda row, lanes: (row.lane, lanes)
    return lambda row, lanes: (0, 1)


def split_lanes(item: Any, width: Any) -> Any:
    """Restrict a work item to width[number] lanes, each shared by several threads."""
    return item


@overload_by_type(split_lanes)
def _split_lanes(item, width):
    if getattr(item, "instance_class", None) is WorkItem:
        return lambda item, width: WorkItem(
            item.number, item.lane, types.int64(width[item.number]), item.slot, item.member, item.offset
        )
    return lambda item, width: item


def with_number(item: Any, number: int) -> Any:
    """Same thread at another work item."""
    return number


@overload_by_type(with_number)
def _with_number(item, number):
    if isinstance(item, types.BaseTuple):
        return lambda item, number: like(
            item, (types.int64(number), item.lane, item.width, item.slot, item.member, item.offset)
        )
    return lambda item, number: types.int64(number)


def is_leader(item: Any) -> bool:
    """True if this thread writes the result of a shared lane."""
    return True


@overload_by_type(is_leader)
def _is_leader(item):
    if isinstance(item, types.BaseTuple):
        return lambda item: item.lane < item.width
    return lambda item: True


def shared_lane_sum(item: Any, value: Any) -> Any:
    """Sum a tuple of one or nine packs over the threads sharing a lane."""
    return value


@overload_by_type(shared_lane_sum)
def _shared_lane_sum(item, value):
    if getattr(item, "instance_class", None) is WorkItem:
        from supple.kernels.cuda.thread_grid import sum_nine, sum_one

        if len(value) == 1:
            return lambda item, value: sum_one(item, value)
        return lambda item, value: sum_nine(item, value)
    return lambda item, value: value


def shared_lane_min(item: Any, value: Any) -> Any:
    """Minimum of a pack over the threads sharing a lane."""
    return value


@overload_by_type(shared_lane_min)
def _shared_lane_min(item, value):
    if getattr(item, "instance_class", None) is WorkItem:
        from supple.kernels.cuda.thread_grid import shared_lane_min_of_pack

        return lambda item, value: shared_lane_min_of_pack(item, value)
    return lambda item, value: value


def member_of(item: Any) -> int:
    """Batch member of a work item."""
    return 0


@overload_by_type(member_of)
def _member_of(item):
    if isinstance(item, types.BaseTuple):
        return lambda item: item.member
    return lambda item: 0


def vector_offset(item: Any) -> int:
    """First vertex vector of the batch member of a work item."""
    return 0


@overload_by_type(vector_offset)
def _vector_offset(item):
    if isinstance(item, types.BaseTuple):
        return lambda item: item.offset
    return lambda item: 0


def sync_warp(item: Any) -> None:
    """Barrier for the threads of a work item; makes their writes visible to each other."""


@overload_by_type(sync_warp)
def _sync_warp(item):
    if getattr(item, "instance_class", None) is WorkItem:
        from supple.kernels.cuda.thread_grid import warp_barrier

        return lambda item: warp_barrier()
    return lambda item: None


def warp_max(item: Any, value: float) -> float:
    """Maximum of a number over the threads of a work item."""
    return value


@overload_by_type(warp_max)
def _warp_max(item, value):
    if getattr(item, "instance_class", None) is WorkItem:
        from supple.kernels.cuda.thread_grid import max_over_warp

        return lambda item, value: max_over_warp(value)
    return lambda item, value: value


def warp_sum(item: Any, value: float) -> float:
    """Sum of a number over the threads of a work item."""
    return value


@overload_by_type(warp_sum)
def _warp_sum(item, value):
    if getattr(item, "instance_class", None) is WorkItem:
        from supple.kernels.cuda.thread_grid import sum_over_warp

        return lambda item, value: sum_over_warp(value)
    return lambda item, value: value
