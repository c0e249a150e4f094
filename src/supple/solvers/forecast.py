"""How many further iterations a linearly converging method will need."""

from __future__ import annotations

import math

import numpy as np

LOOKS = 4
"""Looks at the imbalance from which its rate is fitted."""


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
        return len(self._iterations) >= LOOKS

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
