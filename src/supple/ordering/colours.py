"""Loops over colors: the batches of a color are consecutive, or listed if vertices may change color."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from supple.kernels import chosen_by_type, do, leave, number, passage, renumbered, take_part


class ListedColours(NamedTuple):
    """Listed batches of each color: order[start[c]:start[c + 1]].

    Static orderings use a single array `start` (count + 1,) with the first batch of each color.

    Attributes:
        count: Number of colors.
        start: First list entry of each color; may have unused entries at the end.
        order: Batch ids sorted by color.
    """

    count: Any
    start: Any
    order: Any


Colours = np.ndarray | ListedColours


def colour_count(colours: Any) -> int:
    """Number of colors."""
    return colours.count if isinstance(colours, ListedColours) else len(colours) - 1


@chosen_by_type(colour_count)
def _colour_count(colours):
    if isinstance(colours, types.BaseTuple):
        return lambda colours: colours.count
    return lambda colours: len(colours) - 1


def colour_bounds(colours: Any, colour: int) -> tuple[int, int]:
    """Item range (first, last) of a color, last excluded; empty for the color after the last one."""
    start = colours.start if isinstance(colours, ListedColours) else colours
    return start[colour], start[min(colour + 1, colour_count(colours))]


@chosen_by_type(colour_bounds)
def _colour_bounds(colours, colour):
    if isinstance(colours, types.BaseTuple):
        return lambda colours, colour: (
            colours.start[colour],
            colours.start[min(colour + 1, colour_count(colours))],
        )
    return lambda colours, colour: (colours[colour], colours[min(colour + 1, colour_count(colours))])


class Listed(NamedTuple):
    """Work on the batches of a list."""

    order: Any
    work: Any


@do.of(Listed)
def _do_listed(listed, place):
    do(listed.work, renumbered(place, listed.order[number(place)]))


def at_batches(colours: Any, work: Any) -> Any:
    """Work on the batches to which the items of `colours` refer."""
    return Listed(colours.order, work) if isinstance(colours, ListedColours) else work


@chosen_by_type(at_batches)
def _at_batches(colours, work):
    if isinstance(colours, types.BaseTuple):
        return lambda colours, work: Listed(colours.order, work)
    return lambda colours, work: work


@passage
def each_colour(team, phase, colours, bounds, work):
    """Run work on all batches, one phase per color; returns the next phase.

    Args:
        team: Thread team.
        phase: First phase.
        colours: Colors.
        bounds: `colour_bounds` of the first color; a kernel of many sweeps reads it once.
        work: Work for each batch.
    """
    first, last = bounds
    count = colour_count(colours)
    for colour in range(count):
        take_part(team, phase + colour, first, last, at_batches(colours, work))
        following = colour_bounds(colours, colour + 1)  # overlaps with the work of other threads
        leave(team, phase + colour, first, last)
        first, last = following
    return phase + count


def widest_colour(colours: Colours) -> int:
    """Number of batches of the largest color."""
    start = colours.start[: colours.count + 1] if isinstance(colours, ListedColours) else colours
    return int(np.diff(start).max(initial=0))
