"""Remaining time of a solve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from supple.stop import Stop


SETUP = 6e-6
"""Setup time per cell on one core [s]."""


def setup_seconds(cells: int) -> float:
    """Approximate setup time of a mesh with the given number of tetrahedra and triangles [s]."""
    return SETUP * cells


class Forecast:
    """Remaining time of one solve, extrapolated from callback data.

    The relative residual is assumed to decay exponentially.
    """

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self._seen: list[tuple[float, float]] = []
        self._iteration = 0

    def see(self, iteration: int, imbalance: float, seconds: float) -> None:
        self._iteration = iteration
        if 0 < imbalance < math.inf:
            self._seen.append((seconds, math.log(imbalance)))

    @property
    def seconds(self) -> float:
        return self._seen[-1][0] if self._seen else 0.0

    @property
    def left(self) -> float | None:
        """Estimated seconds until termination; None without enough data."""
        limits = [self._to_tolerance(), self._to_iterations(), self._to_budget()]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def fraction(self) -> float:
        """Completed fraction, between 0 and 1."""
        left = self.left
        return 0.0 if left is None or self.seconds == 0 else self.seconds / (self.seconds + left)

    def _to_tolerance(self) -> float | None:
        """Estimated seconds until the tolerance, from recent convergence.

        The rate covers the second half of the elapsed time, since early iterations converge much faster.
        """
        if self.stop.tolerance is None or len(self._seen) < 3:
            return None
        now, level = self._seen[-1]
        then, before = next(point for point in self._seen if point[0] >= now / 2)
        if now <= then or level >= before:
            return None
        return max(0.0, level - math.log(self.stop.tolerance)) * (now - then) / (before - level)

    def _to_iterations(self) -> float | None:
        if self.stop.max_iterations is None or not self._iteration:
            return None
        return self.seconds / self._iteration * (self.stop.max_iterations - self._iteration)

    def _to_budget(self) -> float | None:
        return None if self.stop.time_budget is None else max(0.0, self.stop.time_budget - self.seconds)
