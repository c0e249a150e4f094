"""Stream compaction of active contacts, in order, on CPU and GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.adding import PHASES, Starts, add_up
from supple.contact.cells import BLOCK, own_part
from supple.contact.meeting import Met
from supple.kernels import Runner, do, each_item, kernel

WHOLE, REAL = 8, 11
"""Numbers per contact: integers (six vertices, two primitives) and reals (six weights, normal, distance,
strength)."""


class Counting(NamedTuple):
    """Work: count (m,) = 1 for pairs with strength (m,) > 0, otherwise 0."""

    strength: Any
    count: Any


class Taking(NamedTuple):
    """Work: copy active contacts to compact arrays.

    Attributes:
        met: Contacts of all pairs.
        one, two: (m,) primitives of the pairs.
        count: (m,) 1 for active contacts.
        start: (m + 1,) output index of each pair.
        whole: (k, WHOLE) integers of the active contacts.
        real: (k, REAL) reals of the active contacts.
    """

    met: Any
    one: Any
    two: Any
    count: Any
    start: Any
    whole: Any
    real: Any


@do.of(Counting)
def _count(work, place):
    first, last, step = own_part(len(work.count), place)
    for m in range(first, last, step):
        work.count[m] = 1 if work.strength[m] > 0.0 else 0


@do.of(Taking)
def _take(work, place):
    met = work.met
    first, last, step = own_part(len(work.count), place)
    for m in range(first, last, step):
        if work.count[m] > 0:
            at = work.start[m]
            for k in range(6):
                work.whole[at, k], work.real[at, k] = met.vertices[m, k], met.weights[m, k]
            work.whole[at, 6], work.whole[at, 7] = work.one[m], work.two[m]
            for axis in range(3):
                work.real[at, 6 + axis] = met.normal[m, axis]
            work.real[at, 9], work.real[at, 10] = met.distance[m], met.strength[m]


@kernel
def count_chosen(team, counting, starts):
    """Count active contacts and compute their output indices."""
    each_item(team, 0, 0, -(-len(counting.count) // BLOCK), counting)
    add_up(team, 1, starts)


@kernel
def take_chosen(team, taking):
    """Copy active contacts to compact arrays."""
    each_item(team, 0, 0, -(-len(taking.count) // BLOCK), taking)


def chosen(met: Met, one: np.ndarray, two: np.ndarray, runner: Runner) -> tuple[np.ndarray, np.ndarray]:
    """Compact the active contacts of pairs.

    Args:
        met: Contacts of all pairs.
        one: (m,) first primitive of each pair.
        two: (m,) second primitive of each pair.
        runner: Device of the pairs.

    Returns:
        Integers (k, WHOLE) and reals (k, REAL) of the active contacts, on the host.
    """
    if len(one) == 0:
        return np.zeros((0, WHOLE), np.int64), np.zeros((0, REAL))
    count = runner.empty((len(one),), np.int64)
    starts = Starts.of(count, runner)
    runner.run(count_chosen, 1 + PHASES, Counting(met.strength, count), starts)
    runner.pull(starts.start, len(one))
    kept = int(starts.start[-1])
    whole, real = runner.empty((kept, WHOLE), np.int64), runner.empty((kept, REAL), float)
    if kept:
        runner.run(take_chosen, 1, Taking(met, one, two, count, starts.start, whole, real))
        runner.pull(whole)
        runner.pull(real)
    return whole, real
