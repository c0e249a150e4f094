"""Sweeps over several states at once, each for as long as they pay."""

from __future__ import annotations

import math

from supple.problem import Balance, Problem
from supple.solvers.newton_steps.forecast import Forecast
from supple.solvers.pbng import PBNG, PBNGRun


class SweptTogether(PBNGRun):
    """States whose imbalance does not promise to arrive within so many further sweeps are left to solves of
    their own, unless a number of iterations or a time is all that there is. Those that balance far from the
    equilibrium go on to the smaller imbalance that would be near it; those at saddles do not."""

    def __init__(self, problem: Problem, ahead: int) -> None:
        super().__init__(PBNG(), problem)
        self._ahead, self._sweeps = ahead, 0
        self._forecasts = [Forecast(1e-4) for _ in range(problem.copies)]
        self.finished_alone = False
        self._saddles: set[int] = set()

    def aim(self, tolerance: float | None, max_iterations: int | None, budget: float | None) -> None:
        self.finished_alone = tolerance is not None and max_iterations is None and budget is None
        for forecast in self._forecasts:
            forecast.aim = tolerance or 1e-8

    def advance(self, count: int) -> None:
        super().advance(count)
        self._sweeps += count

    def observe(self, balance: Balance, copy: int = 0) -> bool:
        moved = super().observe(balance, copy)
        self._forecasts[copy].see(self._sweeps, math.inf if moved else balance.imbalance)
        return moved

    def go_on(self, imbalance: float, copy: int = 0) -> None:
        self._forecasts[copy].aim = imbalance

    def leave_saddle(self, copy: int = 0) -> bool:
        self._saddles.add(copy)
        return self.finished_alone

    def leaves(self, copy: int) -> bool:
        slow = self._forecasts[copy].remaining > self._ahead
        return self.finished_alone and (copy in self._saddles or slow)
