"""When the distance to the equilibrium is computed in a solve, and whether it is small enough."""

from __future__ import annotations

import math

from supple.problem import Balance, Problem
from supple.report import Outcome
from supple.solvers import Run
from supple.solvers.certificate import Certificate, certify
from supple.stop import Stop

CLOSER = 2.0, 10.0
"""Bounds of the factor by which the imbalance must fall before the distance is computed again."""


class Certifying:
    """The certificates of one solve. A state is certified when its imbalance is reached, and at the end; what
    a device or several copies would need for it is not there, which is said."""

    def __init__(self, problem: Problem, stop: Stop) -> None:
        self._problem, self._wanted = problem, stop.distance
        self._able = problem.device.name == "cpu" and problem.copies == 1
        self._timed = stop.time_budget is not None
        self._below = math.inf
        self._last: tuple[Balance, Certificate] | None = None

    def agrees(self, balance: Balance, run: Run) -> bool:
        """Whether a state that has reached the imbalance is as close to the equilibrium as wanted, as far as
        that can be computed; a run is told when it is not."""
        if self._wanted is None or not self._able:
            return True
        if balance.imbalance > self._below:
            return False
        found = self._certify(balance).worst.of_size
        if found <= self._wanted:
            return True
        low, high = CLOSER
        self._below = balance.imbalance / min(max(low, found / self._wanted), high)
        run.go_on(self._below)
        return False

    def final(self, outcome: Outcome, balance: Balance) -> Certificate | None:
        """Of the state in which the solve has ended."""
        if self._wanted is None or not self._able or outcome is Outcome.FAILED:
            return None
        if self._last is not None and self._last[0] == balance:
            return self._last[1]
        return None if self._timed else self._certify(balance)

    def _certify(self, balance: Balance) -> Certificate:
        certificate = certify(self._problem)
        self._last = balance, certificate
        return certificate

    def notes(self) -> list[str]:
        """What is to be said of certificates that are missing."""
        if self._wanted is None or self._able:
            return []
        return ["the distance to the equilibrium was not computed: that is for single solves on the CPU"]
