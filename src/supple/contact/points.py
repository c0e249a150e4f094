"""Where vertices are, for those who find what is near: on a device without a way over the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.cells import BLOCK, own_part
from supple.kernels import RECORD, Runner, do, each_item, kernel, number_at


class Points(NamedTuple):
    """x (n, 3) [m], where kernels see them; most [m]: no coordinate is larger, and not finite where one is
    not."""

    x: np.ndarray
    most: float

    @staticmethod
    def at(x: np.ndarray) -> Points:
        """At positions that the host knows, of which nobody makes others."""
        return Points(x, _farthest(x))

    @staticmethod
    def displaced(rest: np.ndarray, u: np.ndarray, runner: Runner) -> Points:
        """At rest (n, 3) [m] and displaced by records u, of which the host knows what kernels do."""
        x = runner.empty(rest.shape, np.float64)
        runner.run(place_all, 1, Placing(rest, u, x))
        return Points(x, sum(map(_farthest, (rest, u))))


class Placing(NamedTuple):
    """x = rest + u, x and rest (n, 3), u records."""

    rest: Any
    u: Any
    x: Any


@do.of(Placing)
def _place(work, place):
    first, last, step = own_part(len(work.x), place)
    for i in range(first, last, step):
        for axis in range(3):
            work.x[i, axis] = work.rest[i, axis] + number_at(work.u, RECORD * i + axis)


@kernel
def place_all(team, work):
    each_item(team, 0, 0, -(-len(work.x) // BLOCK), work)


def _farthest(numbers: np.ndarray) -> float:
    """The largest magnitude, no number where one is none."""
    return max(float(numbers.max(initial=0)), -float(numbers.min(initial=0)))
