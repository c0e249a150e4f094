"""Thread teams: distribution of the work items of a phase over CPU threads or a CUDA grid.

One loop, `each_item`, serves both. Results do not depend on the assignment of items to threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels.compile.dispatch import generic
from supple.kernels.parallel.thread_pool import finish_chunk, take_chunk, wait_for_phase

CHUNK = 8
"""Items that a CPU thread takes at a time."""


class Threads(NamedTuple):
    """CPU threads that draw chunks of items; `counters` has two entries per phase, see `threads`."""

    counters: Any


def threads_for(phases: int) -> Threads:
    """Create a team for one kernel call."""
    return Threads(np.zeros(2 * phases, np.int64))


@generic
def enter(team, phase, first, last):
    """First work item of this thread."""


@generic
def proceed(team, phase, place, first, last):
    """Next work item of this thread."""


@generic
def leave(team, phase, first, last):
    """Barrier: return once the whole team has completed the phase."""


@generic
def skip(team, phase, phases):
    """Skip the remaining phases of a kernel with `phases` phases, from `phase` on."""


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
    """Number of vertex vectors per batch member."""


@records.of(Threads)
def _records(team, array):
    return len(array)


@generic
def records_at_once(team):
    """Number of vertex vectors per work item."""


@records_at_once.of(Threads)
def _records_at_once(team):
    return 256
