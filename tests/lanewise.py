"""A device of one thread, which does lane after lane: what a CUDA thread does, compiled for the CPU."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supple.kernels.access import WARP
from supple.kernels.team import enter, leave, proceed, records, records_at_once
from supple.model import Model
from supple.solvers.problem import Problem


class LanePlace(NamedTuple):
    """The fields of `Place`; its own class, since nothing is shared by several threads here."""

    number: Any
    lane: Any
    part: Any
    width: Any
    slot: Any
    copy: Any
    offset: Any


class Lanewise(NamedTuple):
    """active (k,): copies to work on; size: records of each."""

    active: Any
    size: Any


@enter.of(Lanewise)
def _enter(team, phase, first, last):
    copy = np.int64(team.active[0])
    return LanePlace(np.int64(first), 0, 0, WARP, 0, copy, copy * team.size)


@proceed.of(Lanewise)
def _proceed(team, phase, place, first, last):
    number, lane, slot = place.number, place.lane + 1, place.slot
    if lane == WARP:
        number, lane = number + 1, 0
    if number == last and slot + 1 < len(team.active):
        number, slot = np.int64(first), slot + 1
    copy = np.int64(team.active[slot])
    return LanePlace(number, lane, 0, WARP, slot, copy, copy * team.size)


@leave.of(Lanewise)
def _leave(team, phase, first, last):
    pass


@records.of(Lanewise)
def _records(team, array):
    return team.size


@records_at_once.of(Lanewise)
def _records_at_once(team):
    return WARP


class LanewiseProblem(Problem):
    """A problem on that device."""

    def __init__(self, model: Model, precision: str) -> None:
        super().__init__(model, precision, threads=1, lanes=WARP)

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        kernel(Lanewise(np.zeros(1, np.int32), np.int64(self.model.vertices + 1)), *args)
