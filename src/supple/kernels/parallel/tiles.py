"""Parallel loops over matrix rows in tiles."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import do, each_item, number, passage, physics, strides

TILE = 32
"""Number of rows per work item."""


@physics
def tiles(rows):
    """Number of tiles of `rows` rows."""
    return -(-rows // TILE)


@physics
def tile_of(place, first, last):
    """(begin, end, step) of the calling thread's rows in a tile of rows first to last - 1."""
    begin, step = strides(place)
    start = first + number(place) * TILE
    return start + begin, min(last, start + TILE), step


class Tiled(NamedTuple):
    """Work on each of the rows first to last - 1."""

    first: Any
    last: Any
    work: Any


@do.of(Tiled)
def _tile(tiled, place):
    row, end, step = tile_of(place, tiled.first, tiled.last)
    while row < end:
        do(tiled.work, row)
        row += step


@passage
def each_row(team, phase, first, last, work):
    """Run work on rows first to last - 1 in one phase."""
    each_item(team, phase, 0, tiles(last - first), Tiled(first, last, work))
