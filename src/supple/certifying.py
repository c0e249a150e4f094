"""When the distance to the equilibrium is computed in a solve, and whether it is small enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from supple.problem import Balance, Balances, Problem
from supple.report import Outcome
from supple.solvers import Run
from supple.solvers.certificate import Certificate, certify, prepare
from supple.solvers.certificates import certify_copies
from supple.stop import Stop

CLOSER = 2.0, 10.0
"""Bounds of the factor by which the imbalance must fall before the distance is computed again."""


@dataclass
class _Copy:
    """What is known of one copy of the state: the imbalance below which it is certified again, where it was
    found to be not stable, its last certificate and of what balance that is, and whether there is none
    because a time budget ended."""

    below: float = math.inf
    saddle: Balance | None = None
    last: tuple[Balance, Certificate] | None = None
    cut_short: bool = False

    def knows(self, balance: Balance) -> bool:
        """Whether there is a certificate of that very state."""
        return self.last is not None and self.last[0] == balance


class Certifying:
    """The certificates of one solve. A copy of the state is certified when its imbalance is reached, and at
    the end; several copies beside obstacles are not, which is said."""

    def __init__(self, problem: Problem, stop: Stop, prepared: bool = True) -> None:
        self._problem, self._tolerance, self._wanted = problem, stop.tolerance, stop.distance
        self._able = problem.copies == 1 or not problem.contacts
        self._timed = stop.time_budget is not None
        wanted = problem.copies == 1 and self._wanted is not None and not self._timed
        if prepared and wanted and not problem.contacts:
            prepare(problem)
        self._copies = [_Copy() for _ in range(problem.copies)]

    @property
    def _asked(self) -> bool:
        return self._wanted is not None and self._able

    def see(self, balances: Balances, active: np.ndarray) -> None:
        """Certify at once what will be asked for: copies that have reached the imbalance."""
        if self._asked and self._tolerance is not None and len(self._copies) > 1:
            imbalance = balances.imbalance
            reached = active[imbalance[active] <= self._tolerance].tolist()
            self._know({c: balances[c] for c in reached if imbalance[c] <= self._copies[c].below})

    def _know(self, balances: Mapping[int, Balance]) -> None:
        new = {copy: b for copy, b in balances.items() if not self._copies[copy].knows(b)}
        if len(new) > 1:
            for copy, certificate in certify_copies(self._problem, new).items():
                self._copies[copy].last = new[copy], certificate

    def agrees(self, balance: Balance, run: Run, copy: int = 0) -> bool:
        """Whether a state that has reached the imbalance is as close to the equilibrium as wanted, as far as
        that can be computed; a run is told when it is not."""
        if not self._asked or self._wanted is None:
            return True
        known = self._copies[copy]
        if balance.imbalance > known.below:
            return False
        certificate = self._certify(balance, copy)
        found = certificate.worst.of_size
        if found <= self._wanted:
            return certificate.stable or not self._leaves(balance, run, copy)
        low, high = CLOSER
        known.below = balance.imbalance / min(max(low, found / self._wanted), high)
        run.go_on(known.below, copy)
        return False

    def judged(self, outcome: Outcome | None, balance: Balance, run: Run, copy: int = 0) -> Outcome | None:
        """How a solve ends that makes no more progress: not at a saddle that can be left, and well where the
        state is in balance and close enough. In a low precision, the imbalance that would tell may be out of
        reach."""
        if outcome is None or not self._asked or self._wanted is None:
            return outcome
        certificate = self._certify(balance, copy)
        if not certificate.stable and self._leaves(balance, run, copy):
            return None
        balanced = self._tolerance is not None and balance.imbalance <= self._tolerance
        return Outcome.CONVERGED if balanced and certificate.worst.of_size <= self._wanted else outcome

    def _leaves(self, balance: Balance, run: Run, copy: int) -> bool:
        """Whether a run goes on from a state that is not stable; it may try that once."""
        known = self._copies[copy]
        again, known.saddle, known.below = known.saddle == balance, balance, math.inf
        return not again and run.leave_saddle(copy)

    def final(self, ended: Mapping[int, Outcome], balances: Balances) -> dict[int, Certificate | None]:
        """Of the states in which the solves of copies have ended, with their outcomes."""
        found: dict[int, Certificate | None] = dict.fromkeys(ended)
        if not self._asked:
            return found
        sound = {copy: balances[copy] for copy, outcome in ended.items() if outcome is not Outcome.FAILED}
        for copy, balance in sound.items():
            self._copies[copy].cut_short = self._timed and not self._copies[copy].knows(balance)
        wanted = {copy: balance for copy, balance in sound.items() if not self._copies[copy].cut_short}
        self._know(wanted)
        return found | {copy: self._certify(b, copy) for copy, b in wanted.items()}

    def _certify(self, balance: Balance, copy: int) -> Certificate:
        known = self._copies[copy]
        if known.last is None or known.last[0] != balance:
            known.last = balance, certify(self._problem, copy)
        return known.last[1]

    def notes(self, copy: int = 0) -> list[str]:
        """What is to be said of distances that are missing, or too large."""
        if self._wanted is None:
            return []
        if self._copies[copy].cut_short:
            return [
                "the time budget ended before the distance to the equilibrium was computed; "
                "without time_budget it would be"
            ]
        if self._able:
            return self._too_far(copy)
        return [
            "the distance to the equilibrium was not computed: beside obstacles that is for single solves"
        ]

    def _too_far(self, copy: int) -> list[str]:
        """Where a distance, and no imbalance, is what was not reached."""
        last, wanted = self._copies[copy].last, self._wanted
        if last is None or self._tolerance is None or wanted is None:
            return []
        balance, certificate = last
        found = certificate.worst.of_size
        if found <= wanted or balance.imbalance > self._tolerance:
            return []
        return [
            f"the forces balance, but the equilibrium is still {found:.1e} of the size away, not {wanted:g}"
        ]
