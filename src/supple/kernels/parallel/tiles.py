"""Parallel loops over matrix rows in tiles."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import device_function, do, inline_control, item_number, lane_stride, parallel_for

TILE_ROWS = 32
"""Number of rows per work item."""


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
