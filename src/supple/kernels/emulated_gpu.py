"""Emulated GPU: a single thread that processes lane after lane, compiled for the CPU.

Tests run every kernel on it on machines without GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supple.kernels.parallel.thread_team import (
    end_phase,
    first_item,
    next_item,
    records,
    records_at_once,
    skip_phases,
)
from supple.kernels.simd.load_store import WARP, WorkItem


class LaneWorkItem(WorkItem):
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
    completed = np.zeros(1, np.int64)
    kernel(Lanewise(active, np.int64(size), completed), *args)
    if completed[0] != phases:
        raise AssertionError(f"{kernel.__name__} has {completed[0]} phases, not {phases}")


class Lanewise(NamedTuple):
    """Team of a single thread.

    Attributes:
        active: (k,) active batch members.
        size: Vertex vectors per batch member.
        completed: (1,) number of completed phases.
    """

    active: Any
    size: Any
    completed: Any


@first_item.of(Lanewise)
def _first_item(team, phase, first, last):
    member = np.int64(team.active[0])
    return LaneWorkItem(np.int64(first), 0, WARP, 0, member, member * team.size)


@next_item.of(Lanewise)
def _next_item(team, phase, item, first, last):
    number, lane, slot = item.number, item.lane + 1, item.slot
    if lane == WARP:
        number, lane = number + 1, 0
    if number == last and slot + 1 < len(team.active):
        number, slot = np.int64(first), slot + 1
    member = np.int64(team.active[slot])
    return LaneWorkItem(number, lane, WARP, slot, member, member * team.size)


@end_phase.of(Lanewise)
def _end_phase(team, phase, first, last):
    team.completed[0] += 1


@skip_phases.of(Lanewise)
def _skip_phases(team, phase, phases):
    team.completed[0] += phases - phase


@records.of(Lanewise)
def _records(team, array):
    return team.size


@records_at_once.of(Lanewise)
def _records_at_once(team):
    return WARP
