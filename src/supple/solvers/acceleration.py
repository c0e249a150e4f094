"""What follows a sweep to make the next one start from a better place."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import generic


class NoAcceleration(NamedTuple):
    """Sweeps as they are. phases: how many phases follow a sweep."""

    phases: Any


NOT_ACCELERATED = NoAcceleration(0)


@generic
def accelerate(acceleration, team, phase, iteration, u):
    """Improve u after a sweep, in the phases from `phase` on."""


@accelerate.of(NoAcceleration)
def _nothing(acceleration, team, phase, iteration, u):
    pass
