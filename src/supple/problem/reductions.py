"""Deterministic float64 reductions over the state.

Values are reduced in fixed blocks first, then over the blocks, independent of the assignment of blocks to
threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import (
    RECORD,
    device_function,
    do,
    item_number,
    lane_stride,
    member_of,
    number_at,
    parallel_for,
    vector_offset,
    warp_max,
    warp_sum,
)

PARTS = 512
"""Number of blocks of a reduction."""


@device_function
def part_of(count, part):
    """(first, last) of `count` items that belong to a block; last is exclusive."""
    size = -(-count // PARTS)
    return min(count, part * size), min(count, (part + 1) * size)


class Join(NamedTuple):
    """Reduce blocks (batch, fields, PARTS) to `reduced` (batch, fields).

    The first `sums` fields are summed; of the others, the maximum is taken.
    """

    parts: Any
    sums: Any
    reduced: Any


@do.of(Join)
def _join(work, item):
    parts, reduced, member = work.parts, work.reduced, member_of(item)
    begin, step = lane_stride(item)
    for field in range(reduced.shape[1]):
        total, most = 0.0, 0.0
        k = begin
        while k < PARTS:
            total += parts[member, field, k]
            most = max(most, parts[member, field, k])
            k += step
        total, most = warp_sum(item, total), warp_max(item, most)
        if begin == 0:
            reduced[member, field] = total if field < work.sums else most


class AddParts(NamedTuple):
    """Sum each block of values (batch, rows, fields, lanes) into `parts` (batch, fields, PARTS)."""

    values: Any
    parts: Any


@do.of(AddParts)
def _add_part(work, item):
    values = work.values
    _, rows, fields, lanes = values.shape
    part = item_number(item) // fields
    field = item_number(item) - part * fields
    member, total = member_of(item), 0.0
    begin, step = lane_stride(item)
    first, last = part_of(rows, part)
    for row in range(first, last):
        start = ((member * rows + row) * fields + field) * lanes
        k = begin
        while k < lanes:
            total += number_at(values, start + k)
            k += step
    total = warp_sum(item, total)
    if begin == 0:
        work.parts[member, field, part] = total


@device_function
def add_up(team, phase, values, parts, reduced):
    """Sum values over rows and lanes, in two phases.

    Args:
        team: Thread team.
        phase: First phase.
        values: (batch, rows, fields, lanes).
        parts: (batch, fields, PARTS) work memory.
        reduced: (batch, fields) sums, written.
    """
    fields = values.shape[2]
    parallel_for(team, phase, 0, PARTS * fields, AddParts(values, parts))
    parallel_for(team, phase + 1, 0, 1, Join(parts, fields, reduced))


class Cuts(NamedTuple):
    """Vertex blocks for reductions; no block spans two bodies.

    Attributes:
        vertex: (blocks + 1,) first vertex of each block.
        part: (bodies + 1,) first block of each body.
    """

    vertex: Any
    part: Any


def cut(bodies: list[tuple[int, int]]) -> Cuts:
    """Divide bodies, given as vertex ranges (first, last), into about PARTS blocks; last is exclusive."""
    count = bodies[-1][1] if bodies else 0
    size = max(1, -(-count // PARTS))
    pieces = [np.arange(first, last, size) for first, last in bodies]
    vertex = np.concatenate([*pieces, [count]]).astype(np.int64)
    return Cuts(vertex, np.cumsum([0, *map(len, pieces)]).astype(np.int64))


SUMS, STATISTICS = 3, 5
"""Number of sums, and of all statistics, in `reduce_statistics`; the statistics after the sums are maxima."""


class StatisticsOfBlocks(NamedTuple):
    """Statistics of every block; see `reduce_statistics`."""

    net: Any
    u: Any
    sizes: Any
    softness: Any
    cuts: Any
    parts: Any


@do.of(StatisticsOfBlocks)
def _statistics_of_block(work, item):
    softness, vertex, parts = work.softness, work.cuts.vertex, work.parts
    part, member, start = item_number(item), member_of(item), vector_offset(item)
    kind = member if softness.shape[0] > 1 else 0
    begin, step = lane_stride(item)
    r2, s2, a2, length, ratio = 0.0, 0.0, 0.0, 0.0, 0.0
    v = vertex[part] + begin
    while v < vertex[part + 1]:
        first = RECORD * (start + v)
        for i in range(first, first + 3):
            r, x = 1.0 * number_at(work.net, i), 1.0 * number_at(work.u, i)  # 1.0 makes them float64
            r2 += r * r
            length = max(length, abs(x))
        s, a = 1.0 * number_at(work.sizes, first), 1.0 * number_at(work.sizes, first + 1)
        s2 += s * s
        a2 += a * a
        ratio = max(ratio, s * number_at(softness, kind * softness.shape[1] + v))
        v += step
    r2, s2, a2 = warp_sum(item, r2), warp_sum(item, s2), warp_sum(item, a2)
    length, ratio = warp_max(item, length), warp_max(item, ratio)
    if begin == 0:
        parts[member, 0, part], parts[member, 1, part], parts[member, 2, part] = r2, s2, a2
        parts[member, 3, part], parts[member, 4, part] = length, ratio


class JoinBodies(NamedTuple):
    """Reduce the blocks of every body: sums, then maxima."""

    cuts: Any
    parts: Any
    statistics: Any


@do.of(JoinBodies)
def _join_body(work, item):
    parts, body, member = work.parts, item_number(item), member_of(item)
    begin, step = lane_stride(item)
    for field in range(STATISTICS):
        total, most = 0.0, 0.0
        k = work.cuts.part[body] + begin
        while k < work.cuts.part[body + 1]:
            total += parts[member, field, k]
            most = max(most, parts[member, field, k])
            k += step
        total, most = warp_sum(item, total), warp_max(item, most)
        if begin == 0:
            work.statistics[member, body, field] = total if field < SUMS else most


@device_function
def reduce_statistics(team, phase, net, u, sizes, softness, cuts, parts, statistics):
    """Statistics Σ|r|², Σs², Σ(tr A)², max|u| and max s · softness of every body, in two phases.

    Args:
        team: Thread team.
        phase: First phase.
        net: Net forces r, padded vectors.
        u: Displacements, padded vectors.
        sizes: s and tr A, padded vectors.
        softness: (batch, n) compliance at rest, or (1, n) if shared.
        cuts: Blocks of vertices.
        parts: (batch, 5, blocks) work memory.
        statistics: (batch, bodies, 5) statistics, written.
    """
    of_parts = StatisticsOfBlocks(net, u, sizes, softness, cuts, parts)
    parallel_for(team, phase, 0, len(cuts.vertex) - 1, of_parts)
    parallel_for(team, phase + 1, 0, len(cuts.part) - 1, JoinBodies(cuts, parts, statistics))
