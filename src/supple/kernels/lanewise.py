"""Emulated GPU: a single thread that processes lane after lane, compiled for the CPU.

Tests run every kernel on it on machines without GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supple.kernels.parallel.thread_team import (
    enter,
    leave,
    proceed,
    records,
    records_at_once,
    skip,
)
from supple.kernels.simd.load_store import WARP, Place


class LanePlace(Place):
    """Work item of the emulated GPU; a separate class because no thread shares its item with others."""

    __slots__ = ()


def run_lanewise(kernel: Callable, phases: int, active: np.ndarray, size: int, *args: Any) -> None:
    """Run a kernel on the emulated GPU and check its number of phases.

    Args:
        kernel: Kernel to run.
        phases: Expected number of phases.
        active: Active batch members.
        size: Vertex vectors per batch member.
        *args: Arguments of the kernel.
    """
    left = np.zeros(1, np.int64)
    kernel(Lanewise(active, np.int64(size), left), *args)
    if left[0] != phases:
        raise AssertionError(f"{kernel.__name__} has {left[0]} phases, not {phases}")


class Lanewise(NamedTuple):
    """Team of a single thread.

    Attributes:
        active: (k,) active batch members.
        size: Vertex vectors per batch member.
        left: (1,) number of completed phases.
    """

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
