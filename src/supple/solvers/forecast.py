"""How many further iterations a linearly converging method will need."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import numpy as np

from supple.kernels import compilation

LOOKS = 4
"""Looks at the imbalance from which its rate is fitted, at most."""

FEWEST = 2
"""Looks from which there is a rate. Short waves vanish first, so that early rates promise too much, if
anything."""


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
        rate = float(np.polyfit(np.array(x, float) - x[0], y, 1)[0])
        left = y[-1] - math.log(self.aim)
        return max(0.0, left) / -rate if rate < 0 else (math.inf if left > 0 else 0.0)


class Allowance:
    """What is left of a time budget [s], and what an iteration has taken: the last, and the fastest."""

    def __init__(self, budget: float | None) -> None:
        self.left = math.inf if budget is None else budget
        self.last, self.fastest = 0.0, math.inf

    @contextmanager
    def spending(self, iterations: int) -> Iterator[None]:
        """Count the time of so many iterations, without that of compilation."""
        with compilation() as compiled:
            began = perf_counter()
            yield
            took = perf_counter() - began - compiled.seconds
        self.left -= took
        self.last = took / iterations
        self.fastest = min(self.fastest, self.last)

    def allows(self, iterations: float) -> bool:
        """Whether there is time for so many more, as fast as they can be."""
        return math.isinf(self.left) or iterations * self.fastest <= self.left
