"""Prefix sums and sorting into CSR rows, in parallel on CPU threads or GPU.

Prefix sums: chunks of numbers are summed in parallel, then chunks of these sums. One thread scans the
remaining sums. Two parallel passes then distribute the offsets back to the chunks.

Rows are sorted after the parallel scatter, so the result is deterministic for any order of discovery.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.collision.broad_phase.hash_grid import ITEM_SIZE, thread_range
from supple.kernels import (
    Runner,
    atomic_add,
    device_function,
    do,
    inline_control,
    item_number,
    kernel,
    lane_stride,
    parallel_for,
)

CHUNK_LENGTH = 64
"""Numbers that one thread adds sequentially."""

CHUNKS_PER_ITEM = 32
"""Chunks per work item: one for each lane of a GPU warp."""

PREFIX_SUM_PHASES = 5
"""Phases of `prefix_sum`."""


class SumChunks(NamedTuple):
    """Work: sums (c,) of the chunks of numbers (m,)."""

    numbers: Any
    sums: Any


class SerialScan(NamedTuple):
    """Work: exclusive prefix sum before (m + 1,) of numbers (m,), by a single thread."""

    numbers: Any
    before: Any


class FillChunks(NamedTuple):
    """Work: exclusive prefix sum of all numbers from the offsets of the chunks.

    Attributes:
        numbers: (m,) numbers.
        before: (m + 1,) output, the last entry is the total.
        chunk_before: (c + 1,) sum of all numbers before each chunk.
    """

    numbers: Any
    before: Any
    chunk_before: Any


class PrefixSum(NamedTuple):
    """Exclusive prefix sum of counts, with its scratch memory.

    Attributes:
        count: (m,) counts.
        start: (m + 1,) output: sum of all counts before each entry, then the total.
        sums, sums_before, sums_of_sums, all_before: Scratch arrays of the two chunk levels.
    """

    count: Any
    start: Any
    sums: Any
    sums_before: Any
    sums_of_sums: Any
    all_before: Any

    @staticmethod
    def of(count: np.ndarray, runner: Runner) -> PrefixSum:
        """Allocate device memory for the prefix sum of counts (m,)."""
        sizes = [len(count)]
        for _ in range(2):
            sizes.append(-(-sizes[-1] // CHUNK_LENGTH))
        start, sums_before, all_before = (runner.empty((size + 1,), np.int64) for size in sizes)
        sums, sums_of_sums = (runner.empty((size,), np.int64) for size in sizes[1:])
        return PrefixSum(count, start, sums, sums_before, sums_of_sums, all_before)


@device_function
def _chunk_range(chunks, item):
    """(first, last, step): range of chunks of this thread."""
    first, step = lane_stride(item)
    begin = item_number(item) * CHUNKS_PER_ITEM
    return begin + first, min(chunks, begin + CHUNKS_PER_ITEM), step


@do.of(SumChunks)
def _sum(work, item):
    first, last, step = _chunk_range(len(work.sums), item)
    for c in range(first, last, step):
        total = 0
        for k in range(CHUNK_LENGTH * c, min(len(work.numbers), CHUNK_LENGTH * (c + 1))):
            total += work.numbers[k]
        work.sums[c] = total


@do.of(SerialScan)
def _serial_scan(work, item):
    first, last, step = _chunk_range(1, item)
    for _ in range(first, last, step):
        total = 0
        for k in range(len(work.numbers)):
            work.before[k] = total
            total += work.numbers[k]
        work.before[len(work.numbers)] = total


@do.of(FillChunks)
def _fill(work, item):
    first, last, step = _chunk_range(len(work.chunk_before) - 1, item)
    for c in range(first, last, step):
        total = work.chunk_before[c]
        for k in range(CHUNK_LENGTH * c, min(len(work.numbers), CHUNK_LENGTH * (c + 1))):
            work.before[k] = total
            total += work.numbers[k]
        if c == len(work.chunk_before) - 2:
            work.before[len(work.numbers)] = total


@inline_control
def prefix_sum(team, phase, starts):
    """Compute the prefix sum of `starts` in `PREFIX_SUM_PHASES` phases."""
    chunks, more = -(-len(starts.sums) // CHUNKS_PER_ITEM), -(-len(starts.sums_of_sums) // CHUNKS_PER_ITEM)
    parallel_for(team, phase, 0, chunks, SumChunks(starts.count, starts.sums))
    parallel_for(team, phase + 1, 0, more, SumChunks(starts.sums, starts.sums_of_sums))
    parallel_for(team, phase + 2, 0, 1, SerialScan(starts.sums_of_sums, starts.all_before))
    parallel_for(team, phase + 3, 0, more, FillChunks(starts.sums, starts.sums_before, starts.all_before))
    parallel_for(team, phase + 4, 0, chunks, FillChunks(starts.count, starts.start, starts.sums_before))


HEAPSORT_LENGTH = 64
"""Row length above which a row is sorted by heapsort, for example the row of a floor below fine cloth. In
shorter rows the rank of each entry is counted directly."""


class ScatterRows(NamedTuple):
    """Work: scatter pairs into CSR rows.

    Attributes:
        one, two: (p,) pairs in any order.
        start: (m + 1,) row offsets.
        remaining: (m,) entries of each row still to be written.
        first, second: (p,) output, grouped by row.
    """

    one: Any
    two: Any
    start: Any
    remaining: Any
    first: Any
    second: Any


class RankRows(NamedTuple):
    """Work: write each entry of a short row to its sorted position.

    Attributes:
        start: (m + 1,) row offsets.
        first: (p,) row of each entry.
        second: (p,) entries, unsorted within a row.
        ordered: (p,) output. Entries of rows longer than `HEAPSORT_LENGTH` keep their position.
    """

    start: Any
    first: Any
    second: Any
    ordered: Any


class SortRows(NamedTuple):
    """Work: sort the entries of rows longer than `HEAPSORT_LENGTH`; start (m + 1,) are row offsets."""

    start: Any
    numbers: Any


@do.of(ScatterRows)
def _scatter_rows(work, item):
    first, last, step = thread_range(len(work.first), item)
    for p in range(first, last, step):
        m = work.one[p]
        at = work.start[m + 1] - atomic_add(work.remaining, m, -1)
        work.first[at], work.second[at] = m, work.two[p]


@do.of(RankRows)
def _rank(work, item):
    second = work.second
    first, last, step = thread_range(len(second), item)
    for p in range(first, last, step):
        begin, end, at = work.start[work.first[p]], work.start[work.first[p] + 1], p
        if end - begin <= HEAPSORT_LENGTH:
            at = begin
            for k in range(begin, end):
                at += 1 if second[k] < second[p] else 0
        work.ordered[at] = second[p]


@do.of(SortRows)
def _sort(work, item):
    first, last, step = thread_range(len(work.start) - 1, item)
    for m in range(first, last, step):
        begin, count = work.start[m], work.start[m + 1] - work.start[m]
        if count > HEAPSORT_LENGTH:
            _sort_heap(work.numbers, begin, count)


@device_function
def _sort_heap(numbers, begin, count):
    """Heapsort `count` numbers in place from index `begin`, in O(n log n) time."""
    for top in range(count // 2 - 1, -1, -1):
        _sink(numbers, begin, count, top)
    for last in range(count - 1, 0, -1):
        numbers[begin], numbers[begin + last] = numbers[begin + last], numbers[begin]
        _sink(numbers, begin, last, 0)


@device_function
def _sink(numbers, begin, count, top):
    """Sift the number at index `top` down the heap."""
    value = numbers[begin + top]
    while 2 * top + 1 < count:
        child = 2 * top + 1
        if child + 1 < count and numbers[begin + child + 1] > numbers[begin + child]:
            child += 1
        if numbers[begin + child] <= value:
            break
        numbers[begin + top] = numbers[begin + child]
        top = child
    numbers[begin + top] = value


@kernel
def sort_into_rows(team, starts, rows, ordered):
    """Sort pairs into CSR rows: prefix sum, scatter and sort in `PREFIX_SUM_PHASES` + 3 phases."""
    prefix_sum(team, 0, starts)
    pairs = -(-len(ordered) // ITEM_SIZE)
    parallel_for(team, PREFIX_SUM_PHASES, 0, pairs, rows)
    parallel_for(
        team, PREFIX_SUM_PHASES + 1, 0, pairs, RankRows(rows.start, rows.first, rows.second, ordered)
    )
    parallel_for(
        team, PREFIX_SUM_PHASES + 2, 0, -(-(len(rows.start) - 1) // ITEM_SIZE), SortRows(rows.start, ordered)
    )
