"""Of pairs that were looked at those that meet, in order and close together, wherever kernels run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.adding import PHASES, Starts, add_up
from supple.contact.cells import BLOCK, own_part
from supple.contact.meeting import Met
from supple.kernels import Runner, do, each_item, kernel

WHOLE, REAL = 8, 11
"""Numbers of a pair that are whole, its six vertices and the two things, and that are not: six weights, the
normal, the distance and the strength."""


class Counting(NamedTuple):
    """count (m,) gets 1 of each pair that has some strength (m,), and 0 of others."""

    strength: Any
    count: Any


class Taking(NamedTuple):
    """whole (k, WHOLE) and real (k, REAL) get what is known of pairs one, two (m,) that count (m,), from
    start (m + 1,) on."""

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
    each_item(team, 0, 0, -(-len(counting.count) // BLOCK), counting)
    add_up(team, 1, starts)


@kernel
def take_chosen(team, taking):
    each_item(team, 0, 0, -(-len(taking.count) // BLOCK), taking)


def chosen(met: Met, one: np.ndarray, two: np.ndarray, runner: Runner) -> tuple[np.ndarray, np.ndarray]:
    """whole (k, WHOLE) and real (k, REAL) of those of the pairs one, two (m,) that do meet."""
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
