"""When the distance to the equilibrium is computed in a solve, and whether it is small enough."""

from __future__ import annotations

import math

from supple.problem import Balance, Problem
from supple.report import Outcome
from supple.solvers import Run
from supple.solvers.certificate import Certificate, certify, prepare
from supple.stop import Stop

CLOSER = 2.0, 10.0
"""Bounds of the factor by which the imbalance must fall before the distance is computed again."""


class Certifying:
    """The certificates of one solve. A state is certified when its imbalance is reached, and at the end; for
    several copies it is not, which is said."""

    def __init__(self, problem: Problem, stop: Stop, prepared: bool = True) -> None:
        self._problem, self._tolerance, self._wanted = problem, stop.tolerance, stop.distance
        self._able = problem.copies == 1
        self._timed = stop.time_budget is not None
        wanted = self._able and self._wanted is not None and not self._timed
        if prepared and wanted and not problem.contacts:
            prepare(problem)
        self._below = math.inf
        self._saddle: Balance | None = None
        self._cut_short = False
        self._last: tuple[Balance, Certificate] | None = None

    def agrees(self, balance: Balance, run: Run) -> bool:
        """Whether a state that has reached the imbalance is as close to the equilibrium as wanted, as far as
        that can be computed; a run is told when it is not."""
        if self._wanted is None or not self._able:
            return True
        if balance.imbalance > self._below:
            return False
        certificate = self._certify(balance)
        found = certificate.worst.of_size
        if found <= self._wanted:
            return certificate.stable or not self._leaves(balance, run)
        low, high = CLOSER
        self._below = balance.imbalance / min(max(low, found / self._wanted), high)
        run.go_on(self._below)
        return False

    def judged(self, outcome: Outcome | None, balance: Balance, run: Run) -> Outcome | None:
        """How a solve ends that makes no more progress: not at a saddle that can be left, and well where the
        state is in balance and close enough. In a low precision, the imbalance that would tell may be out of
        reach."""
        if outcome is None or self._wanted is None or not self._able:
            return outcome
        certificate = self._certify(balance)
        if not certificate.stable and self._leaves(balance, run):
            return None
        balanced = self._tolerance is not None and balance.imbalance <= self._tolerance
        return Outcome.CONVERGED if balanced and certificate.worst.of_size <= self._wanted else outcome

    def _leaves(self, balance: Balance, run: Run) -> bool:
        """Whether a run goes on from a state that is not stable; it may try that once."""
        again, self._saddle, self._below = self._saddle == balance, balance, math.inf
        return not again and run.leave_saddle()

    def final(self, outcome: Outcome, balance: Balance) -> Certificate | None:
        """Of the state in which the solve has ended."""
        if self._wanted is None or not self._able or outcome is Outcome.FAILED:
            return None
        known = self._last is not None and self._last[0] == balance
        self._cut_short = self._timed and not known
        return None if self._cut_short else self._certify(balance)

    def _certify(self, balance: Balance) -> Certificate:
        if self._last is None or self._last[0] != balance:
            self._last = balance, certify(self._problem)
        return self._last[1]

    def notes(self) -> list[str]:
        """What is to be said of distances that are missing, or too large."""
        if self._wanted is None:
            return []
        if self._cut_short:
            return [
                "the time budget ended before the distance to the equilibrium was computed; "
                "without time_budget it would be"
            ]
        if self._able:
            return self._too_far()
        return ["the distance to the equilibrium was not computed: that is for single solves"]

    def _too_far(self) -> list[str]:
        """Where a distance, and no imbalance, is what was not reached."""
        if self._last is None or self._tolerance is None or self._wanted is None:
            return []
        (balance, certificate), wanted = self._last, self._wanted
        found = certificate.worst.of_size
        if found <= wanted or balance.imbalance > self._tolerance:
            return []
        return [
            f"the forces balance, but the equilibrium is still {found:.1e} of the size away, not {wanted:g}"
        ]
