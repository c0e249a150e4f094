"""Work at the rows of matrices, a tile of them at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import do, each_item, number, passage, physics, strides

TILE = 32
"""Rows of an item of work."""


@physics
def tiles(rows):
    return -(-rows // TILE)


@physics
def tile_of(place, first, last):
    """(begin, end, step): which of the rows first, ..., last - 1 are this thread's at a place."""
    begin, step = strides(place)
    start = first + number(place) * TILE
    return start + begin, min(last, start + TILE), step


class Tiled(NamedTuple):
    """Work that is done at rows first, ..., last - 1."""

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
    """Do the work at rows first, ..., last - 1 in one phase."""
    each_item(team, phase, 0, tiles(last - first), Tiled(first, last, work))
