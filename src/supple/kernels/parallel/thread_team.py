"""Thread teams: distribution of the work items of a phase over CPU threads or a CUDA grid.

`parallel_for` (parallel_for.py) uses the same loop for both. Results do not depend on the assignment of items
to threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels.compile.dispatch import generic
from supple.kernels.parallel.thread_pool import claim_chunk, finish_chunk, wait_for_phase

CHUNK_ITEMS = 8
"""Items that a CPU thread takes at a time."""


class Threads(NamedTuple):
    """CPU threads that draw chunks of items; `counters` has two entries per phase, see `thread_pool`."""

    counters: Any


def threads_for(phases: int) -> Threads:
    """Create a team for one kernel call."""
    return Threads(np.zeros(2 * phases, np.int64))


@generic
def first_item(team, phase, first, last):
    """First work item of this thread."""


@generic
def next_item(team, phase, item, first, last):
    """Next work item of this thread."""


@generic
def end_phase(team, phase, first, last):
    """Barrier: return once the whole team has completed the phase."""


@generic
def skip_phases(team, phase, phases):
    """Skip the remaining phases of a kernel with `phases` phases, from `phase` on."""


@skip_phases.of(Threads)
def _skip_phases(team, phase, phases):
    pass


@first_item.of(Threads)
def _first_item(team, phase, first, last):
    chunk = claim_chunk(team.counters, phase, -(-(last - first) // CHUNK_ITEMS))
    return first + chunk * CHUNK_ITEMS if chunk >= 0 else last


@next_item.of(Threads)
def _next_item(team, phase, item, first, last):
    item += 1
    if item == last or (item - first) % CHUNK_ITEMS == 0:
        finish_chunk(team.counters, phase)
        chunk = claim_chunk(team.counters, phase, -(-(last - first) // CHUNK_ITEMS))
        item = first + chunk * CHUNK_ITEMS if chunk >= 0 else last
    return item


@end_phase.of(Threads)
def _end_phase(team, phase, first, last):
    wait_for_phase(team.counters, phase, -(-(last - first) // CHUNK_ITEMS))


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
