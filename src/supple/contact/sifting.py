"""Which of many pairs of things are near to each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.things import boxes_apart, things_apart
from supple.kernels import Runner, do, each_item, kernel, number, physics, strides

RUN = 16
"""Pairs that a thread does one after the other, so that those that are kept stay in order."""

RUNS = 32
"""Such runs that make a good item of work."""


class Sifting(NamedTuple):
    """kept (p,) gets whether the one[p]-th of things `seek` and the two[p]-th of `other` are nearer than a
    radius; count (runs,): how many of each run are kept."""

    x: Any
    seek: Any
    other: Any
    one: Any
    two: Any
    radius: Any
    kept: Any
    count: Any


class Gathering(NamedTuple):
    """first and second (k,) get the pairs one, two (p,) that are kept (p,), those of a run from begin (runs,)
    on."""

    one: Any
    two: Any
    kept: Any
    begin: Any
    first: Any
    second: Any


@physics
def _own_runs(place, runs):
    """(first, last, step): which runs are this thread's."""
    first, step = strides(place)
    start = number(place) * RUNS
    return start + first, min(runs, start + RUNS), step


@do.of(Sifting)
def _sift(s, place):
    square = s.radius * s.radius
    first, last, step = _own_runs(place, len(s.count))
    for r in range(first, last, step):
        kept = 0
        for p in range(RUN * r, min(len(s.one), RUN * (r + 1))):
            m, o = s.one[p], s.two[p]
            near_by = boxes_apart(s.x, s.seek, s.other, m, o, square) < square
            near_by = near_by and things_apart(s.x, s.seek, s.other, m, o) < square
            s.kept[p] = near_by
            kept += 1 if near_by else 0
        s.count[r] = kept


@do.of(Gathering)
def _gather(g, place):
    first, last, step = _own_runs(place, len(g.begin))
    for r in range(first, last, step):
        at = g.begin[r]
        for p in range(RUN * r, min(len(g.one), RUN * (r + 1))):
            if g.kept[p]:
                g.first[at], g.second[at] = g.one[p], g.two[p]
                at += 1


@kernel
def sift_all(team, sifting):
    each_item(team, 0, 0, -(-len(sifting.count) // RUNS), sifting)


@kernel
def gather_all(team, gathering):
    each_item(team, 0, 0, -(-len(gathering.begin) // RUNS), gathering)


def sift(
    pairs: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    radius: float,
    runner: Runner,
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (k,) of the things of those pairs, (x, seek, other, one, two) as in `Sifting`, that are near to
    each other, in the order in which they come."""
    _, _, _, one, two = pairs
    if len(one) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    kept, count = runner.zeros((len(one),), np.bool_), runner.zeros((-(-len(one) // RUN),), np.int64)
    runner.run(sift_all, 1, Sifting(*pairs, float(radius), kept, count))
    runner.pull(count)
    ends = np.cumsum(count)
    first, second = (runner.zeros((int(ends[-1]),), np.int64) for _ in range(2))
    if len(first):
        runner.run(gather_all, 1, Gathering(one, two, kept, ends - count, first, second))
        runner.pull(first)
        runner.pull(second)
    return first, second


@kernel
def _merge(a, b, c, d, first, second):
    i = j = 0
    for k in range(len(first)):
        if j == len(c) or (i < len(a) and (a[i] < c[j] or (a[i] == c[j] and b[i] < d[j]))):
            first[k], second[k] = a[i], b[i]
            i += 1
        else:
            first[k], second[k] = c[j], d[j]
            j += 1


def merged(
    some: tuple[np.ndarray, np.ndarray], others: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (p,) of two lists, each of which is in order, as one in order."""
    first, second = (np.empty(len(some[0]) + len(others[0]), np.int32) for _ in range(2))
    _merge(*some, *others, first, second)
    return first, second
