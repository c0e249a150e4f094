"""Exclusive prefix sum on CPU threads and GPU.

Chunks of numbers are summed in parallel, then chunks of these sums. One thread scans the remaining sums. Two
parallel passes then distribute the offsets back to the chunks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import Runner, do, each_item, number, passage, physics, strides

CHUNK = 64
"""Numbers that one thread adds sequentially."""

CHUNKS = 32
"""Chunks per work item: one for each lane of a GPU warp."""

PHASES = 5
"""Phases of `add_up`."""


class Sum(NamedTuple):
    """Work: sums (c,) of the chunks of numbers (m,)."""

    numbers: Any
    sums: Any


class Alone(NamedTuple):
    """Work: exclusive prefix sum before (m + 1,) of numbers (m,), by a single thread."""

    numbers: Any
    before: Any


class Fill(NamedTuple):
    """Work: exclusive prefix sum of all numbers from the offsets of the chunks.

    Attributes:
        numbers: (m,) numbers.
        before: (m + 1,) output, the last entry is the total.
        chunk_before: (c + 1,) sum of all numbers before each chunk.
    """

    numbers: Any
    before: Any
    chunk_before: Any


class Starts(NamedTuple):
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
    def of(count: np.ndarray, runner: Runner) -> Starts:
        """Allocate device memory for the prefix sum of counts (m,)."""
        sizes = [len(count)]
        for _ in range(2):
            sizes.append(-(-sizes[-1] // CHUNK))
        start, sums_before, all_before = (runner.empty((size + 1,), np.int64) for size in sizes)
        sums, sums_of_sums = (runner.empty((size,), np.int64) for size in sizes[1:])
        return Starts(count, start, sums, sums_before, sums_of_sums, all_before)


@physics
def _own_chunks(chunks, place):
    """(first, last, step): range of chunks of this thread."""
    first, step = strides(place)
    begin = number(place) * CHUNKS
    return begin + first, min(chunks, begin + CHUNKS), step


@do.of(Sum)
def _sum(work, place):
    first, last, step = _own_chunks(len(work.sums), place)
    for c in range(first, last, step):
        total = 0
        for k in range(CHUNK * c, min(len(work.numbers), CHUNK * (c + 1))):
            total += work.numbers[k]
        work.sums[c] = total


@do.of(Alone)
def _alone(work, place):
    first, last, step = _own_chunks(1, place)
    for _ in range(first, last, step):
        total = 0
        for k in range(len(work.numbers)):
            work.before[k] = total
            total += work.numbers[k]
        work.before[len(work.numbers)] = total


@do.of(Fill)
def _fill(work, place):
    first, last, step = _own_chunks(len(work.chunk_before) - 1, place)
    for c in range(first, last, step):
        total = work.chunk_before[c]
        for k in range(CHUNK * c, min(len(work.numbers), CHUNK * (c + 1))):
            work.before[k] = total
            total += work.numbers[k]
        if c == len(work.chunk_before) - 2:
            work.before[len(work.numbers)] = total


@passage
def add_up(team, phase, starts):
    """Compute the prefix sum of `starts` in `PHASES` phases."""
    chunks, more = -(-len(starts.sums) // CHUNKS), -(-len(starts.sums_of_sums) // CHUNKS)
    each_item(team, phase, 0, chunks, Sum(starts.count, starts.sums))
    each_item(team, phase + 1, 0, more, Sum(starts.sums, starts.sums_of_sums))
    each_item(team, phase + 2, 0, 1, Alone(starts.sums_of_sums, starts.all_before))
    each_item(team, phase + 3, 0, more, Fill(starts.sums, starts.sums_before, starts.all_before))
    each_item(team, phase + 4, 0, chunks, Fill(starts.count, starts.start, starts.sums_before))
