"""Work colour by colour.

The batches of a colour are the next ones, or, where vertices may change their colour, those of a list."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from supple.kernels import chosen_by_type, do, leave, number, passage, renumbered, take_part


class ListedColours(NamedTuple):
    """Batches order[start[c]] to order[start[c + 1] - 1] have colour c; count: how many colours there are,
    for which `start` may have more room. Elsewhere, start alone tells: an array (count + 1,) of the first
    batch of each colour."""

    count: Any
    start: Any
    order: Any


Colours = np.ndarray | ListedColours


def colour_count(colours: Any) -> int:
    """How many colours there are."""
    return colours.count if isinstance(colours, ListedColours) else len(colours) - 1


@chosen_by_type(colour_count)
def _colour_count(colours):
    if isinstance(colours, types.BaseTuple):
        return lambda colours: colours.count
    return lambda colours: len(colours) - 1


def colour_bounds(colours: Any, colour: int) -> tuple[int, int]:
    """(first, last): the items of a colour, last not among them; none of the colour that follows the last."""
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
    """Work at the batches of a list."""

    order: Any
    work: Any


@do.of(Listed)
def _do_listed(listed, place):
    do(listed.work, renumbered(place, listed.order[number(place)]))


def at_batches(colours: Any, work: Any) -> Any:
    """Work at the batches that the items of colours are."""
    return Listed(colours.order, work) if isinstance(colours, ListedColours) else work


@chosen_by_type(at_batches)
def _at_batches(colours, work):
    if isinstance(colours, types.BaseTuple):
        return lambda colours, work: Listed(colours.order, work)
    return lambda colours, work: work


@passage
def each_colour(team, phase, colours, bounds, work):
    """Do work at all batches, colour after colour, a phase for each; returns the phase that follows. bounds:
    `colour_bounds` of the first colour, which a kernel of many sweeps reads once."""
    first, last = bounds
    count = colour_count(colours)
    for colour in range(count):
        take_part(team, phase + colour, first, last, at_batches(colours, work))
        following = colour_bounds(colours, colour + 1)  # read while others still work
        leave(team, phase + colour, first, last)
        first, last = following
    return phase + count


def widest_colour(colours: Colours) -> int:
    """Batches of the colour that has the most."""
    start = colours.start[: colours.count + 1] if isinstance(colours, ListedColours) else colours
    return int(np.diff(start).max(initial=0))
