"""Detection of stagnation."""

from __future__ import annotations

import numpy as np

from supple.problem import Balance, Balances
from supple.problem.measures import Measures
from supple.report import Outcome
from supple.solvers import Run
from supple.stop import Stop

PROGRESS = 0.99
"""Ratio to the lowest value so far below which a residual counts as reduced."""

ROUNDED = 3.0
"""Multiple of the estimated rounding error below which a stagnating solve has reached its precision limit.

Measured on all materials in float32, that is at 0.3 times at most.
"""


class Progress:
    """Best values so far of every batch member.

    Attributes:
        residual: (batch,) lowest residual [N].
        imbalance: (batch,) lowest imbalance.
        energy: (batch,) energy [J] at the last detection of stagnating residuals. The energy may fall for
            thousands of iterations before the residuals do.
        at: (batch,) iteration of the last improvement.
        patience: Patience of the run at the last check.
    """

    def __init__(self, copies: int, iteration: int = 0) -> None:
        self.residual, self.imbalance, self.energy = (np.full(copies, np.inf) for _ in range(3))
        self.at = np.full(copies, iteration)
        self.patience: int | None = None

    def see(self, balances: Balances, copies: np.ndarray, iteration: int) -> None:
        """Record residual and imbalance; a reduction of either is progress.

        The residual may fall alone while a body without loads relaxes and all its forces vanish together. The
        imbalance may fall alone while forces build up from rest under a load and the residual rises.
        """
        for found, least in ((balances.residual, self.residual), (balances.imbalance, self.imbalance)):
            better = copies[found[copies] < PROGRESS * least[copies]]
            least[better], self.at[better] = found[better], iteration

    def lacking(self, run: Run, iteration: int) -> np.ndarray:
        """(batch,) True for batch members without progress for longer than the patience of the run."""
        if self.patience not in (None, run.patience):  # the run has switched to another method
            self.at[:] = iteration
        self.patience = run.patience
        lacking: np.ndarray = iteration - self.at > run.patience
        return lacking

    def outcome(
        self, measures: Measures, copy: int, latest: Balance, stop: Stop, run: Run, iteration: int
    ) -> Outcome | None:
        """Outcome of a solve without progress.

        Iterations that the user requested are made all the same, unless they could only change rounding.

        Args:
            measures: Diagnostics of the states.
            copy: Batch member.
            latest: Latest residual.
            stop: Termination criteria.
            run: Running method.
            iteration: Number of iterations made.

        Returns:
            The outcome, or None to continue.
        """
        if not self.lacking(run, iteration)[copy]:
            return None
        if latest.is_rounding(ROUNDED):
            return Outcome.PRECISION
        energy = measures.energy_of(copy)
        falls = energy < self.energy[copy] - measures.energy_rounding(copy)
        self.energy[copy], self.at[copy] = energy, iteration
        goes_on = falls or stop.max_iterations is not None or run.on_its_way(copy)
        return None if goes_on else Outcome.STAGNATED
