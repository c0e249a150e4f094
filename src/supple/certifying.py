"""When the distance to the equilibrium is computed in a solve, and whether it is small enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from supple.problem import Balance, Balances, Problem
from supple.report import Outcome
from supple.solvers import Run
from supple.solvers.newton_steps.certificate import Certificate, certify, prepare
from supple.solvers.newton_steps.certificates import certify_copies
from supple.solvers.newton_steps.gathered import room_for
from supple.stop import Stop

CLOSER = 2.0, 10.0
"""Bounds of the factor by which the imbalance must fall before the distance is computed again."""

WAITING = 3
"""Looks at which copies that have reached the imbalance wait for others, to be certified together: meanwhile
they get closer."""


@dataclass
class _Copy:
    """What is known of one copy of the state: the imbalance below which it is certified again, the least
    energy [J] at which it was found to be not stable, its last certificate and of what balance that is, and
    whether there is none because a time budget ended."""

    below: float = math.inf
    saddle: float = math.inf
    last: tuple[Balance, Certificate] | None = None
    cut_short: bool = False

    def knows(self, balance: Balance) -> bool:
        """Whether there is a certificate of that very state."""
        return self.last is not None and self.last[0] == balance


class Certifying:
    """The certificates of one solve. A copy of the state is certified when its imbalance is reached, or soon
    after, and at the end."""

    def __init__(self, problem: Problem, stop: Stop, run: Run, prepared: bool = True) -> None:
        self._problem, self._run = problem, run
        self._tolerance, self._wanted = stop.tolerance, stop.distance
        self._timed = stop.time_budget is not None
        self._patient = not self._timed and stop.max_iterations is None
        self._waiting: set[int] = set()
        self._waited = 0
        wanted = problem.copies == 1 and self._wanted is not None and not self._timed
        if prepared and wanted and not problem.contacts:
            prepare(problem)
        self._copies = [_Copy() for _ in range(problem.copies)]

    def see(self, balances: Balances, active: np.ndarray) -> None:
        """Certify at once what will be asked for: copies that have reached the imbalance. Where they are few
        and others are still on their way, they wait for these."""
        if self._wanted is None or self._tolerance is None or len(self._copies) == 1:
            return
        imbalance = balances.imbalance
        reached = active[imbalance[active] <= self._tolerance].tolist()
        there = {c: balances[c] for c in reached if imbalance[c] <= self._copies[c].below}
        self._waiting = set()
        few = len(there) < len(active) and len(there) < room_for(self._problem)
        if self._patient and few and self._waited < WAITING:
            self._waiting, self._waited = set(there), self._waited + bool(there)
            return
        self._waited = 0
        self._know(there)

    def _know(self, balances: Mapping[int, Balance]) -> None:
        new = {copy: b for copy, b in balances.items() if not self._copies[copy].knows(b)}
        if len(new) > 1:
            for copy, certificate in certify_copies(self._problem, new).items():
                self._copies[copy].last = new[copy], certificate

    def near(self, balances: Mapping[int, Balance]) -> list[int]:
        """Which copies with these balances are stable, and as close to the equilibrium as wanted."""
        if self._wanted is None:
            return list(balances)
        self._know(balances)
        found = {copy: self._certify(balance, copy) for copy, balance in balances.items()}
        return [copy for copy, one in found.items() if one.stable and one.worst.of_size <= self._wanted]

    def agrees(self, balance: Balance, copy: int = 0) -> bool:
        """Whether a state that has reached the imbalance is as close to the equilibrium as wanted, as far as
        that can be computed; a run is told when it is not."""
        if self._wanted is None:
            return True
        known = self._copies[copy]
        if balance.imbalance > known.below or copy in self._waiting:
            return False
        certificate = self._certify(balance, copy)
        found = certificate.worst.of_size
        if found <= self._wanted:
            return certificate.stable or not self._leaves(copy)
        low, high = CLOSER
        known.below = balance.imbalance / min(max(low, found / self._wanted), high)
        self._run.go_on(known.below, copy)
        return False

    def judged(self, outcome: Outcome | None, balance: Balance, copy: int = 0) -> Outcome | None:
        """How a solve ends that makes no more progress: not at a saddle that can be left, and well where the
        state is in balance and close enough. In a low precision, the imbalance that would tell may be out of
        reach."""
        if outcome is None or self._wanted is None:
            return outcome
        certificate = self._certify(balance, copy)
        if not certificate.stable and self._leaves(copy):
            return None
        balanced = self._tolerance is not None and balance.imbalance <= self._tolerance
        return Outcome.CONVERGED if balanced and certificate.worst.of_size <= self._wanted else outcome

    def _leaves(self, copy: int) -> bool:
        """Whether the run goes on from a state that is not stable; it may try that once for each energy."""
        known, exact = self._copies[copy], self._run.exact
        measures, number = (self._problem.measures, copy) if exact is None else (exact.measures, 0)
        energy = measures.energy_of(number)
        lower = energy < known.saddle - measures.energy_rounding(number)
        known.saddle, known.below = min(energy, known.saddle), math.inf
        return lower and self._run.leave_saddle(copy)

    def final(
        self, ended: Mapping[int, Outcome], balances: Mapping[int, Balance]
    ) -> dict[int, Certificate | None]:
        """Of the states in which the solves of copies have ended, with their outcomes and balances."""
        exact = self._run.exact
        sound = {
            copy: balances[copy] if exact is None else exact.balance()
            for copy, outcome in ended.items()
            if self._wanted is not None and outcome is not Outcome.FAILED
        }
        for copy, balance in sound.items():
            self._copies[copy].cut_short = self._timed and not self._copies[copy].knows(balance)
        wanted = {copy: balance for copy, balance in sound.items() if not self._copies[copy].cut_short}
        self._know(wanted)
        return dict.fromkeys(ended) | {copy: self._certify(b, copy) for copy, b in wanted.items()}

    def _certify(self, balance: Balance, copy: int) -> Certificate:
        known = self._copies[copy]
        if known.last is None or known.last[0] != balance:
            known.last = balance, certify(self._problem, copy, self._run.exact)
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
        followers = self._problem.model.followers if self._copies[copy].last is not None else ()
        caveats = [follower.caveat for _, follower in followers if hasattr(follower, "caveat")]
        return [*self._too_far(copy), *dict.fromkeys(caveats)]

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
