"""Teams: who does the work of a phase. One loop, `each_item`, serves threads of the CPU and a CUDA grid.

Which thread does an item never changes a result.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels.compile import generic
from supple.kernels.threads import finish_chunk, take_chunk, wait_for_phase

CHUNK = 8
"""Items that a CPU thread takes at a time."""


class Threads(NamedTuple):
    """Threads of the CPU, which draw chunks of items; counters: two per phase, see `threads`."""

    counters: Any


def threads_for(phases: int) -> Threads:
    """A fresh team for a kernel call with that many phases."""
    return Threads(np.zeros(2 * phases, np.int64))


@generic
def enter(team, phase, first, last):
    """The first place of this thread."""


@generic
def proceed(team, phase, place, first, last):
    """The next one."""


@generic
def leave(team, phase, first, last):
    """Return once the whole team has done the phase."""


@generic
def skip(team, phase, phases):
    """Leave a kernel of so many phases before the one that would follow: all that are left at once."""


@skip.of(Threads)
def _skip(team, phase, phases):
    pass


@enter.of(Threads)
def _enter(team, phase, first, last):
    chunk = take_chunk(team.counters, phase, -(-(last - first) // CHUNK))
    return first + chunk * CHUNK if chunk >= 0 else last


@proceed.of(Threads)
def _proceed(team, phase, place, first, last):
    place += 1
    if place == last or (place - first) % CHUNK == 0:
        finish_chunk(team.counters, phase)
        chunk = take_chunk(team.counters, phase, -(-(last - first) // CHUNK))
        place = first + chunk * CHUNK if chunk >= 0 else last
    return place


@leave.of(Threads)
def _leave(team, phase, first, last):
    wait_for_phase(team.counters, phase, -(-(last - first) // CHUNK))


@generic
def records(team, array):
    """How many records one copy of the state has."""


@records.of(Threads)
def _records(team, array):
    return len(array)


@generic
def records_at_once(team):
    """How many records make a good item of work."""


@records_at_once.of(Threads)
def _records_at_once(team):
    return 256
