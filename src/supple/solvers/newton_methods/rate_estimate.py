"""Convergence-rate extrapolation, and the time limit of a solve."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from supple.kernels import compilation

FIT_POINTS = 4
"""Largest number of relative residuals from which the rate is fitted."""

MIN_FIT_POINTS = 2
"""Smallest number of relative residuals that gives a rate.

Short waves vanish first, so early rates are optimistic, if anything.
"""

INITIAL_TARGET = 1e-4
"""Relative residual to which rates are extrapolated before a call has set its tolerance."""

TARGET_WITHOUT_TOLERANCE = 1e-8
"""Relative residual to which rates are extrapolated in a solve without tolerance."""

NEWTON_SWEEPS = 100
"""Approximate cost of the first Newton step in sweeps."""

DEVICE_FACTOR = 4
"""Factor on `Hybrid.max_predicted_sweeps` on a device, where a Newton step costs four times as many
sweeps."""


class RateEstimate:
    """Extrapolation of log(relative residual) from its latest values to a target."""

    def __init__(self, target: float) -> None:
        self.target = target
        self._iterations: list[int] = []
        self._logarithms: list[float] = []

    def record(self, iteration: int, relative_residual: float) -> None:
        """Record the relative residual of an iteration.

        A non-finite relative residual (also passed for a state that was not kept) counts as no progress: the
        last value is repeated.
        """
        last = self._logarithms[-1] if self._logarithms else 0.0
        self._iterations.append(iteration)
        self._logarithms.append(
            math.log(max(relative_residual, 1e-300)) if math.isfinite(relative_residual) else last
        )

    @property
    def has_rate(self) -> bool:
        """True if a rate can be fitted."""
        return len(self._iterations) >= MIN_FIT_POINTS

    @property
    def remaining(self) -> float:
        """Predicted iterations to the target: 0 as long as no rate is known, infinite without progress."""
        if not self.has_rate:
            return 0.0
        x, y = self._iterations[-FIT_POINTS:], self._logarithms[-FIT_POINTS:]
        rate = _slope(x, y)
        left = y[-1] - math.log(self.target)
        return max(0.0, left) / -rate if rate < -1e-12 else (math.inf if left > 0 else 0.0)


class BatchRateEstimates:
    """Extrapolations of log(relative residual) of all batch members, each to its `target` (batch,)."""

    def __init__(self, batch_size: int) -> None:
        self.target = np.full(batch_size, INITIAL_TARGET)
        self._iterations: list[int] = []
        self._logarithms: list[np.ndarray] = []

    def record(self, iteration: int, relative_residual: np.ndarray) -> None:
        """Record the relative residuals (batch,) of an iteration; a non-finite one counts as no progress."""
        last = self._logarithms[-1] if self._logarithms else np.zeros_like(relative_residual)
        known = np.isfinite(relative_residual)
        self._iterations.append(iteration)
        self._logarithms.append(np.where(known, np.log(np.clip(relative_residual, 1e-300, 1e300)), last))
        del self._iterations[:-FIT_POINTS], self._logarithms[:-FIT_POINTS]

    @property
    def remaining(self) -> np.ndarray:
        """(batch,) predicted iterations like `RateEstimate.remaining`, but 0 before `FIT_POINTS` records.

        In the first sweeps the relative residual of fine meshes may rise, and separating a member from the
        batch is expensive.
        """
        if len(self._iterations) < FIT_POINTS:
            return np.zeros_like(self.target)
        rate = np.minimum(_slope(self._iterations, self._logarithms), 0.0)
        left = np.maximum(self._logarithms[-1] - np.log(self.target), 0.0)
        falls = rate < -1e-12
        return np.where(left > 0, np.where(falls, left / -np.where(falls, rate, -1.0), np.inf), 0.0)


def _slope(x: list[int], y: Sequence[Any]) -> Any:
    """Return the slope of the least-squares line through points, 0 if all x are equal.

    y contains numbers, or arrays for several lines. For such short lists, plain Python is faster than NumPy.
    """
    mean = sum(x) / len(x)
    square = sum((a - mean) ** 2 for a in x)
    return sum((a - mean) * b for a, b in zip(x, y, strict=True)) / square if square else 0.0


class TimeBudget:
    """Remaining time limit of a solve.

    Attributes:
        left: Remaining time [s], infinite without a budget.
        sweep: Shortest time of a sweep so far [s].
        step: Time of the last Newton step [s].
    """

    def __init__(self, budget: float | None) -> None:
        self.left = math.inf if budget is None else budget
        self.sweep, self.step = math.inf, 0.0

    @contextmanager
    def charge_sweeps(self, count: int) -> Iterator[None]:
        """Charge the enclosed time, without compilation, for `count` sweeps."""
        before = self.left
        with self._charge():
            yield
        if self.left < before:
            self.sweep = min(self.sweep, (before - self.left) / count)

    @contextmanager
    def charge_steps(self, count: int) -> Iterator[None]:
        """Charge the enclosed time, without compilation, for `count` Newton steps."""
        before = self.left
        with self._charge():
            yield
        if self.left < before:
            self.step = (before - self.left) / count

    @contextmanager
    def _charge(self) -> Iterator[None]:
        with compilation() as compiled:
            began = perf_counter()
            yield
            self.left -= perf_counter() - began - compiled.seconds

    @property
    def allows_newton(self) -> bool:
        """True if the budget leaves time for a first Newton step, estimated from the time of sweeps."""
        return math.isinf(self.left) or NEWTON_SWEEPS * self.sweep <= self.left

    @property
    def allows_step(self) -> bool:
        """True if the budget leaves time for another Newton step as long as the last one."""
        return self.step <= self.left
