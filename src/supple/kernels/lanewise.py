"""A device of one thread, which does lane after lane: what a CUDA thread does, compiled for the CPU.

Tests run every kernel on it where there is no device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supple.kernels.access import WARP, Place
from supple.kernels.team import enter, leave, proceed, records, records_at_once, skip


class LanePlace(Place):
    """A class of its own, since nothing is shared by several threads here."""

    __slots__ = ()


def run_lanewise(kernel: Callable, phases: int, active: np.ndarray, size: int, *args: Any) -> None:
    """Run a kernel, and make sure that it has as many phases as it is said to have."""
    left = np.zeros(1, np.int64)
    kernel(Lanewise(active, np.int64(size), left), *args)
    if left[0] != phases:
        raise AssertionError(f"{kernel.__name__} has {left[0]} phases, not {phases}")


class Lanewise(NamedTuple):
    """active (k,): copies to work on; size: records of each; left (1,): how many phases are over."""

    active: Any
    size: Any
    left: Any


@enter.of(Lanewise)
def _enter(team, phase, first, last):
    copy = np.int64(team.active[0])
    return LanePlace(np.int64(first), 0, WARP, 0, copy, copy * team.size)


@proceed.of(Lanewise)
def _proceed(team, phase, place, first, last):
    number, lane, slot = place.number, place.lane + 1, place.slot
    if lane == WARP:
        number, lane = number + 1, 0
    if number == last and slot + 1 < len(team.active):
        number, slot = np.int64(first), slot + 1
    copy = np.int64(team.active[slot])
    return LanePlace(number, lane, WARP, slot, copy, copy * team.size)


@leave.of(Lanewise)
def _leave(team, phase, first, last):
    team.left[0] += 1


@skip.of(Lanewise)
def _skip(team, phase, phases):
    team.left[0] += phases - phase


@records.of(Lanewise)
def _records(team, array):
    return team.size


@records_at_once.of(Lanewise)
def _records_at_once(team):
    return WARP
