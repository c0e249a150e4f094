"""Error estimates during a solve: distance to equilibrium, compared with its tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from supple.config.stop import StopCriteria
from supple.problem import Balance, Balances, Problem
from supple.solve.report import Outcome
from supple.solvers import Run
from supple.solvers.newton_methods.block_diagonal import room_for
from supple.solvers.newton_methods.error_estimate import ErrorEstimate, certify, certify_copies, prepare

REDUCTION_BOUNDS = 2.0, 10.0
"""Bounds of the factor by which the relative residual must fall before the next error estimate."""

MAX_DEFERRED_CHECKS = 3
"""Convergence checks for which the estimate of converged batch members is deferred, so that more of them join
the batch. They keep converging meanwhile."""


@dataclass
class _MemberEstimates:
    """Error estimates of one batch member.

    Attributes:
        below: Relative residual below which the error is estimated again.
        saddle: Lowest energy at which the state was found unstable [J].
        last: Latest error estimate, with the residual norms of its state.
        cut_short: True if a time limit prevented the estimate.
    """

    below: float = math.inf
    saddle: float = math.inf
    last: tuple[Balance, ErrorEstimate] | None = None
    cut_short: bool = False

    def knows(self, balance: Balance) -> bool:
        """True if the latest error estimate belongs to the state with these residual norms."""
        return self.last is not None and self.last[0] == balance


class ErrorControl:
    """Error estimates of one solve.

    The error of a batch member is estimated when it reaches the tolerance of the relative residual, or soon
    after, and at the end of the solve.
    """

    def __init__(self, problem: Problem, stop: StopCriteria, run: Run, prepared: bool = True) -> None:
        self._problem, self._run = problem, run
        self._tolerance, self._wanted = stop.tolerance, stop.position_tolerance
        self._timed = stop.time_limit is not None
        self._patient = not self._timed and stop.max_iterations is None
        self._waiting: set[int] = set()
        self._waited = 0
        wanted = problem.copies == 1 and self._wanted is not None and not self._timed
        if prepared and wanted and not problem.contacts:
            prepare(problem)
        self._copies = [_MemberEstimates() for _ in range(problem.copies)]

    def see(self, balances: Balances, active: np.ndarray) -> None:
        """Estimate the errors of converged batch members in one batch.

        In solves without a time limit or iteration limit, the estimate is deferred for up to `MAX_DEFERRED_CHECKS`
        checks if only few members have converged and others are still active.
        """
        if self._wanted is None or self._tolerance is None or len(self._copies) == 1:
            return
        relative_residual = balances.relative_residual
        reached = active[relative_residual[active] <= self._tolerance].tolist()
        there = {c: balances[c] for c in reached if relative_residual[c] <= self._copies[c].below}
        self._waiting = set()
        few = len(there) < len(active) and len(there) < room_for(self._problem)
        if self._patient and few and self._waited < MAX_DEFERRED_CHECKS:
            self._waiting, self._waited = set(there), self._waited + bool(there)
            return
        self._waited = 0
        self._know(there)

    def _know(self, balances: Mapping[int, Balance]) -> None:
        """Estimate errors of several batch members together; single ones are estimated on demand."""
        new = {copy: b for copy, b in balances.items() if not self._copies[copy].knows(b)}
        if len(new) > 1:
            for copy, error_estimate in certify_copies(self._problem, new).items():
                self._copies[copy].last = new[copy], error_estimate

    def near(self, balances: Mapping[int, Balance]) -> list[int]:
        """Return batch members that are stable and within the distance tolerance."""
        if self._wanted is None:
            return list(balances)
        self._know(balances)
        found = {copy: self._certify(balance, copy) for copy, balance in balances.items()}
        return [copy for copy, one in found.items() if one.stable and one.position_error <= self._wanted]

    def accepts(self, balance: Balance, copy: int = 0) -> bool:
        """True if a state within the relative residual tolerance also satisfies the distance tolerance.

        Otherwise the solver run receives a lower relative residual at which the distance may be satisfied.
        """
        if self._wanted is None:
            return True
        known = self._copies[copy]
        if balance.relative_residual > known.below or copy in self._waiting:
            return False
        error_estimate = self._certify(balance, copy)
        found = error_estimate.position_error
        if found <= self._wanted:
            return error_estimate.stable or not self._leaves(copy)
        low, high = REDUCTION_BOUNDS
        known.below = balance.relative_residual / min(max(low, found / self._wanted), high)
        self._run.go_on(known.below, copy)
        return False

    def judge_outcome(self, outcome: Outcome | None, balance: Balance, copy: int = 0) -> Outcome | None:
        """Determine the outcome of a stagnated solve.

        In low precision the relative residual that satisfies the distance may be unreachable, so that a
        stagnated state can still be converged.

        Returns:
            None at a saddle point that the method can leave; CONVERGED if relative residual and distance
            satisfy their tolerances; otherwise the given outcome.
        """
        if outcome is None or self._wanted is None:
            return outcome
        error_estimate = self._certify(balance, copy)
        if not error_estimate.stable and self._leaves(copy):
            return None
        balanced = self._tolerance is not None and balance.relative_residual <= self._tolerance
        return Outcome.CONVERGED if balanced and error_estimate.position_error <= self._wanted else outcome

    def _leaves(self, copy: int) -> bool:
        """True if the run continues from an unstable state, at most once per energy level."""
        known, exact = self._copies[copy], self._run.exact
        measures, number = (self._problem.measures, copy) if exact is None else (exact.measures, 0)
        energy = measures.energy_of(number)
        lower = energy < known.saddle - measures.energy_rounding(number)
        known.saddle, known.below = min(energy, known.saddle), math.inf
        return lower and self._run.leave_saddle(copy)

    def final(
        self, ended: Mapping[int, Outcome], balances: Mapping[int, Balance]
    ) -> dict[int, ErrorEstimate | None]:
        """Error estimates of the final states of batch members, from their outcomes and residual norms."""
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

    def _certify(self, balance: Balance, copy: int) -> ErrorEstimate:
        """Return a state's error estimate, cached if already known."""
        known = self._copies[copy]
        if known.last is None or known.last[0] != balance:
            known.last = balance, certify(self._problem, copy, self._run.exact)
        return known.last[1]

    def notes(self, copy: int = 0) -> list[str]:
        """Report notes about missing or excessive error estimates."""
        if self._wanted is None:
            return []
        if self._copies[copy].cut_short:
            return [
                "the time limit ended before the distance to the equilibrium was computed; "
                "without time_limit it would be"
            ]
        followers = self._problem.model.followers if self._copies[copy].last is not None else ()
        caveats = [follower.caveat for _, follower in followers if hasattr(follower, "caveat")]
        return [*self._too_far(copy), *dict.fromkeys(caveats)]

    def _too_far(self, copy: int) -> list[str]:
        """Note for states within the relative residual tolerance but beyond the distance tolerance."""
        last, wanted = self._copies[copy].last, self._wanted
        if last is None or self._tolerance is None or wanted is None:
            return []
        balance, error_estimate = last
        found = error_estimate.position_error
        if found <= wanted or balance.relative_residual > self._tolerance:
            return []
        return [
            f"the forces balance, but the equilibrium is still {found:.1e} of the size away, not {wanted:g}"
        ]
