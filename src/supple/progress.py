"""Whether a solve still gets anywhere."""

from __future__ import annotations

import numpy as np

from supple.problem import Balance, Balances
from supple.problem.measures import Measures
from supple.report import Outcome
from supple.solvers import Run
from supple.stop import Stop

PROGRESS = 0.99
"""A figure counts as reduced when it falls below this part of the lowest seen."""

ROUNDED = 3.0
"""A solve that gets stuck below this many times the estimated rounding error has reached the limit of its
precision; measured on all materials in float32, that is at 0.3 times at most."""


class Progress:
    """What the solves of all copies of a state have achieved, (copies,) each: the lowest figures so far, the
    iteration at which anything last improved, and the energy [J] when the figures had not for long; it may
    fall for thousands of iterations before they do; patience of the run at the last look."""

    def __init__(self, copies: int, iteration: int = 0) -> None:
        self.residual, self.imbalance, self.energy = (np.full(copies, np.inf) for _ in range(3))
        self.at = np.full(copies, iteration)
        self.patience: int | None = None

    def see(self, balances: Balances, copies: np.ndarray, iteration: int) -> None:
        """Either figure may fall alone: the residual, while a body without loads relaxes and all its forces
        vanish together; the imbalance, while forces build up from rest under a load and the residual
        rises."""
        for found, least in ((balances.residual, self.residual), (balances.imbalance, self.imbalance)):
            better = copies[found[copies] < PROGRESS * least[copies]]
            least[better], self.at[better] = found[better], iteration

    def lacking(self, run: Run, iteration: int) -> np.ndarray:
        """(copies,) which have made no progress for long."""
        if self.patience not in (None, run.patience):  # it has gone over to another method, which may do more
            self.at[:] = iteration
        self.patience = run.patience
        lacking: np.ndarray = iteration - self.at > run.patience
        return lacking

    def outcome(
        self, measures: Measures, copy: int, latest: Balance, stop: Stop, run: Run, iteration: int
    ) -> Outcome | None:
        """How a solve ends that has made no progress for long, or None; measures: of its states. Iterations
        that were asked for are done all the same, unless rounding is all that they could change."""
        if not self.lacking(run, iteration)[copy]:
            return None
        if latest.is_rounding(ROUNDED):
            return Outcome.PRECISION
        energy = measures.energy_of(copy)
        falls = energy < self.energy[copy] - measures.energy_rounding(copy)
        self.energy[copy], self.at[copy] = energy, iteration
        goes_on = falls or stop.max_iterations is not None or run.on_its_way(copy)
        return None if goes_on else Outcome.STAGNATED
