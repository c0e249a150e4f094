"""How many further iterations a linearly converging method will need."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from supple.kernels import compilation

LOOKS = 4
"""Looks at the imbalance from which its rate is fitted, at most."""

FEWEST = 2
"""Looks from which there is a rate. Short waves vanish first, so that early rates promise too much, if
anything."""


NEWTON_SWEEPS = 100
"""Sweeps in the time of the first Newton step, about."""

ON_DEVICES = 4
"""How many times as many sweeps a Newton step takes the time of on a device."""


class Forecast:
    """The rate of log(imbalance) over the latest looks, carried on to an aim."""

    def __init__(self, aim: float) -> None:
        self.aim = aim
        self._iterations: list[int] = []
        self._logarithms: list[float] = []

    def see(self, iteration: int, imbalance: float) -> None:
        """An imbalance that is not finite, or that was not kept, is no progress: the last one stays."""
        last = self._logarithms[-1] if self._logarithms else 0.0
        self._iterations.append(iteration)
        self._logarithms.append(math.log(max(imbalance, 1e-300)) if math.isfinite(imbalance) else last)

    @property
    def known(self) -> bool:
        """Whether enough was seen."""
        return len(self._iterations) >= FEWEST

    @property
    def remaining(self) -> float:
        """Iterations until the imbalance is at the aim; 0 while too little was seen, infinite without
        progress."""
        if not self.known:
            return 0.0
        x, y = self._iterations[-LOOKS:], self._logarithms[-LOOKS:]
        rate = _slope(x, y)
        left = y[-1] - math.log(self.aim)
        return max(0.0, left) / -rate if rate < -1e-12 else (math.inf if left > 0 else 0.0)


class Forecasts:
    """Rates of log(imbalance) of many states that are looked at together, carried on to aims (copies,)."""

    def __init__(self, copies: int) -> None:
        self.aim = np.full(copies, 1e-4)
        self._iterations: list[int] = []
        self._logarithms: list[np.ndarray] = []

    def see(self, iteration: int, imbalance: np.ndarray) -> None:
        """(copies,); what is not finite is no progress."""
        last = self._logarithms[-1] if self._logarithms else np.zeros_like(imbalance)
        known = np.isfinite(imbalance)
        self._iterations.append(iteration)
        self._logarithms.append(np.where(known, np.log(np.clip(imbalance, 1e-300, 1e300)), last))
        del self._iterations[:-LOOKS], self._logarithms[:-LOOKS]

    @property
    def remaining(self) -> np.ndarray:
        """(copies,) as of one `Forecast`, from as many looks as there may be on: in the first sweeps the
        imbalance of fine meshes may rise, and to leave the others is dear."""
        if len(self._iterations) < LOOKS:
            return np.zeros_like(self.aim)
        rate = np.minimum(_slope(self._iterations, self._logarithms), 0.0)
        left = np.maximum(self._logarithms[-1] - np.log(self.aim), 0.0)
        falls = rate < -1e-12
        return np.where(left > 0, np.where(falls, left / -np.where(falls, rate, -1.0), np.inf), 0.0)


def _slope(x: list[int], y: Sequence[Any]) -> Any:
    """Of the line that fits points best; 0 where all have the same x. For so few, NumPy takes longer to begin
    than this to end; y: numbers, or arrays for as many lines."""
    mean = sum(x) / len(x)
    square = sum((a - mean) ** 2 for a in x)
    return sum((a - mean) * b for a, b in zip(x, y, strict=True)) / square if square else 0.0


class Allowance:
    """What is left of a time budget [s], and what a sweep takes where it is fastest, and the last Newton
    step."""

    def __init__(self, budget: float | None) -> None:
        self.left = math.inf if budget is None else budget
        self.sweep, self.step = math.inf, 0.0

    @contextmanager
    def sweeping(self, count: int) -> Iterator[None]:
        """Count the time of so many sweeps."""
        before = self.left
        with self._spending():
            yield
        if self.left < before:
            self.sweep = min(self.sweep, (before - self.left) / count)

    @contextmanager
    def stepping(self, count: int) -> Iterator[None]:
        """Count the time of so many Newton steps."""
        before = self.left
        with self._spending():
            yield
        if self.left < before:
            self.step = (before - self.left) / count

    @contextmanager
    def _spending(self) -> Iterator[None]:
        with compilation() as compiled:
            began = perf_counter()
            yield
            self.left -= perf_counter() - began - compiled.seconds

    @property
    def allows_newton(self) -> bool:
        """Whether there is time for a first Newton step, as far as sweeps can tell."""
        return math.isinf(self.left) or NEWTON_SWEEPS * self.sweep <= self.left

    @property
    def allows_step(self) -> bool:
        """Whether there is time for another Newton step, if it takes as long as the last."""
        return self.step <= self.left
