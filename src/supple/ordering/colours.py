"""Work colour by colour.

The batches of a colour are the next ones, or, where vertices may change their colour, those of a list."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from supple.kernels import chosen_by_type, do, leave, number, physics, renumbered, take_part


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


def batch_at(colours: Any, place: Any) -> Any:
    """The place of the batch that an item of a colour is."""
    return colours.order[place] if isinstance(colours, ListedColours) else place


@chosen_by_type(batch_at)
def _batch_at(colours, place):
    if isinstance(colours, types.BaseTuple):
        return lambda colours, place: renumbered(place, colours.order[number(place)])
    return lambda colours, place: place


class AtBatches(NamedTuple):
    """Work that is done at the batches which the items of colours are."""

    colours: Any
    work: Any


@do.of(AtBatches)
def _at_batch(at, place):
    do(at.work, batch_at(at.colours, place))


@physics
def each_colour(team, phase, colours, bounds, work):
    """Do work at all batches, colour after colour, a phase for each; returns the phase that follows. bounds:
    `colour_bounds` of the first colour, which a kernel of many sweeps reads once."""
    first, last = bounds
    count = colour_count(colours)
    for colour in range(count):
        take_part(team, phase + colour, first, last, AtBatches(colours, work))
        following = colour_bounds(colours, colour + 1)  # read while others still work
        leave(team, phase + colour, first, last)
        first, last = following
    return phase + count


def widest_colour(colours: Colours) -> int:
    """Batches of the colour that has the most."""
    start = colours.start[: colours.count + 1] if isinstance(colours, ListedColours) else colours
    return int(np.diff(start).max(initial=0))
