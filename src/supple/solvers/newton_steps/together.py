"""Batched sweeps with convergence extrapolation per batch member."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.problem import Balances, Problem
from supple.solvers.newton_steps.forecast import Forecasts
from supple.solvers.newton_steps.gathered import room_for
from supple.solvers.newton_steps.newton_together import NewtonTogether
from supple.solvers.pbng import PBNG, PBNGRun


class SweptTogether(PBNGRun):
    """PBNG run over a batch that leaves slowly converging members to separate solves.

    A member leaves if more than `ahead` further sweeps are predicted and the solve has no iteration limit or
    time budget. Members with a small imbalance but far from the equilibrium continue to the smaller imbalance
    that the distance requires. Members at saddles leave.
    """

    def __init__(self, problem: Problem, ahead: int, turn: float | None) -> None:
        """Begin a run.

        Args:
            problem: Problem with its batch.
            ahead: Largest number of predicted sweeps of members that stay.
            turn: Largest rotation of nearly all elements in one Newton step [rad], or None for no such steps.
        """
        super().__init__(PBNG(), problem)
        self._ahead, self._turn, self._sweeps = ahead, turn, 0
        self._tolerance: float | None = None
        self._forecasts = Forecasts(problem.copies)
        self.finished_alone = False
        self._saddles = np.zeros(problem.copies, bool)

    def aim(self, tolerance: float | None, max_iterations: int | None, budget: float | None) -> None:
        self.finished_alone = tolerance is not None and max_iterations is None and budget is None
        self._forecasts.aim[:] = tolerance or 1e-8
        self._tolerance = tolerance

    def newton_together(self, copies: Sequence[int], distance: float | None) -> NewtonTogether | None:
        if self._turn is None or self._tolerance is None or room_for(self.problem) < 2:
            return None
        return NewtonTogether(self.problem, copies, self._tolerance, distance, self._turn)

    def advance(self, count: int) -> None:
        super().advance(count)
        self._sweeps += count

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        moved = super().observe_all(balances, active)
        self._forecasts.see(self._sweeps, np.where(moved, np.inf, balances.imbalance))
        return moved

    def go_on(self, imbalance: float, copy: int = 0) -> None:
        self._forecasts.aim[copy] = imbalance

    def leave_saddle(self, copy: int = 0) -> bool:
        self._saddles[copy] = True
        return self.finished_alone

    def leaving(self) -> np.ndarray:
        if not self.finished_alone:
            return super().leaving()
        return self._saddles | (self._forecasts.remaining > self._ahead)
