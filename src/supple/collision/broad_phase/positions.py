"""Vertex positions for the broad phase, computed on the device without transfer to the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.collision.broad_phase.hash_grid import ITEM_SIZE, thread_range
from supple.kernels import RECORD, Runner, do, kernel, number_at, parallel_for


class Points(NamedTuple):
    """Vertex positions.

    Attributes:
        x: (n, 3) positions in device memory [m].
        most: Upper bound of all coordinates [m]; not finite if a coordinate is not.
    """

    x: np.ndarray
    most: float

    @staticmethod
    def at(x: np.ndarray) -> Points:
        """Wrap host positions, which must not be modified later."""
        return Points(x, _max_magnitude(x))

    @staticmethod
    def displaced(rest: np.ndarray, u: np.ndarray, runner: Runner) -> Points:
        """Add displacements u, padded vectors, to rest positions (n, 3) [m] on the device.

        The host copy of u must be up to date, for the bound of the coordinates.
        """
        x = runner.empty(rest.shape, np.float64)
        runner.run(displace_all, 1, Displace(rest, u, x))
        return Points(x, sum(map(_max_magnitude, (rest, u))))


class Displace(NamedTuple):
    """Work: x = rest + u, with x and rest (n, 3) and padded vectors u."""

    rest: Any
    u: Any
    x: Any


@do.of(Displace)
def _displace(work, item):
    first, last, step = thread_range(len(work.x), item)
    for i in range(first, last, step):
        for axis in range(3):
            work.x[i, axis] = work.rest[i, axis] + number_at(work.u, RECORD * i + axis)


@kernel
def displace_all(team, work):
    """Compute all positions."""
    parallel_for(team, 0, 0, -(-len(work.x) // ITEM_SIZE), work)


def _max_magnitude(numbers: np.ndarray) -> float:
    """Largest magnitude, NaN if a number is NaN."""
    return max(float(numbers.max(initial=0)), -float(numbers.min(initial=0)))
