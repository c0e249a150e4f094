"""Parallel loop of all kernels: a thread team runs a work function on every item of a phase.

Work is a NamedTuple of its arguments; `@do.of(ItsClass)` defines the function that processes one item.
"""

from __future__ import annotations

from supple.kernels.compile import generic, passage
from supple.kernels.places import inside
from supple.kernels.team import enter, leave, proceed


@generic
def do(work, place):
    """Process one work item."""


@passage
def take_part(team, phase, first, last, work):
    """Process this thread's share of the items first to last - 1, without a barrier at the end."""
    place = enter(team, phase, first, last)
    while inside(place, last):
        do(work, place)
        place = proceed(team, phase, place, first, last)


@passage
def each_item(team, phase, first, last, work):
    """Process items first to last - 1 in one phase, followed by a barrier."""
    take_part(team, phase, first, last, work)
    leave(team, phase, first, last)
