"""Whether a solve still gets anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.problem import Balance
from supple.problem.measures import Measures
from supple.report import Outcome
from supple.solvers import Run
from supple.stop import Stop

PROGRESS = 0.99
"""A figure counts as reduced when it falls below this part of the lowest seen."""

ROUNDED = 3.0
"""A solve that gets stuck below this many times the estimated rounding error has reached the limit of its
precision; measured on all materials in float32, that is at 0.3 times at most."""


@dataclass
class Progress:
    """What a solve has achieved: the lowest figures so far, the iteration at which anything last improved,
    and the energy [J] when the figures had not for long; it may fall for thousands of iterations before they
    do; patience of the run at the last look."""

    residual: float = np.inf
    imbalance: float = np.inf
    at: int = 0
    energy: float = np.inf
    patience: int | None = None

    def see(self, balance: Balance, iteration: int) -> None:
        """Either figure may fall alone: the residual, while a body without loads relaxes and all its forces
        vanish together; the imbalance, while forces build up from rest under a load and the residual
        rises."""
        if balance.residual < PROGRESS * self.residual:
            self.residual, self.at = balance.residual, iteration
        if balance.imbalance < PROGRESS * self.imbalance:
            self.imbalance, self.at = balance.imbalance, iteration

    def outcome(
        self, measures: Measures, copy: int, latest: Balance, stop: Stop, run: Run, iteration: int
    ) -> Outcome | None:
        """How a solve ends that has made no progress for long, or None; measures: of its states. Iterations
        that were asked for are done all the same, unless rounding is all that they could change."""
        if self.patience not in (None, run.patience):  # it has gone over to another method, which may do more
            self.at = iteration
        self.patience = run.patience
        if iteration - self.at <= run.patience:
            return None
        if latest.is_rounding(ROUNDED):
            return Outcome.PRECISION
        energy = measures.energy_of(copy)
        falls = energy < self.energy - measures.energy_rounding(copy)
        self.energy, self.at = energy, iteration
        goes_on = falls or stop.max_iterations is not None or run.on_its_way(copy)
        return None if goes_on else Outcome.STAGNATED
