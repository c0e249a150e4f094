"""The one loop of all kernels: a team does a piece of work at every item of a phase.

A piece of work is a NamedTuple of what it needs, and `@do.of(ItsClass)` says what is done at one place.
"""

from __future__ import annotations

from supple.kernels.compile import generic, passage
from supple.kernels.places import inside
from supple.kernels.team import enter, leave, proceed


@generic
def do(work, place):
    """Do a piece of work at a place."""


@passage
def take_part(team, phase, first, last, work):
    """Do this thread's part of the work at items first, ..., last - 1, and do not wait for others."""
    place = enter(team, phase, first, last)
    while inside(place, last):
        do(work, place)
        place = proceed(team, phase, place, first, last)


@passage
def each_item(team, phase, first, last, work):
    """Do the work at items first, ..., last - 1 in one phase; return when the whole team is done."""
    take_part(team, phase, first, last, work)
    leave(team, phase, first, last)
