"""Accuracy of a solve beyond its relative residual: distance to equilibrium, momentum of time steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from supple.config.stop_criteria import StopCriteria
from supple.problem import Balance, Balances, Problem
from supple.solve.momentum import MomentumBalance
from supple.solve.report import Outcome
from supple.solvers import Run
from supple.solvers.newton_methods.block_diagonal import block_capacity
from supple.solvers.newton_methods.error_estimate import (
    ErrorEstimate,
    estimate_error,
    estimate_errors,
    prepare,
)

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
        momentum: Tolerance, residual norms and momentum error of the state where it was last evaluated.
    """

    below: float = math.inf
    saddle: float = math.inf
    last: tuple[Balance, ErrorEstimate] | None = None
    cut_short: bool = False
    momentum: tuple[float, Balance, float] | None = None

    def covers(self, balance: Balance) -> bool:
        """True if the latest error estimate belongs to the state with these residual norms."""
        return self.last is not None and self.last[0] == balance


class ErrorControl:
    """Error estimates of one solve.

    The error of a batch member is estimated when it reaches the tolerance of the relative residual, or soon
    after, and at the end of the solve.
    """

    def __init__(self, problem: Problem, stop: StopCriteria, run: Run, prepared: bool = True) -> None:
        self._problem, self._run = problem, run
        self._tolerance, self._position_tolerance = stop.tolerance, stop.position_tolerance
        self._timed = stop.time_limit is not None
        self._patient = not self._timed and stop.max_iterations is None
        self._deferred: set[int] = set()
        self._deferred_checks = 0
        prepares = problem.batch_size == 1 and self._position_tolerance is not None and not self._timed
        if prepared and prepares and not problem.contacts:
            prepare(problem)
        self._members = [_MemberEstimates() for _ in range(problem.batch_size)]
        self._momentum = MomentumBalance(problem)

    def estimate_converged(self, balances: Balances, active: np.ndarray) -> None:
        """Estimate the errors of converged batch members in one batch.

        In solves without a time limit or iteration limit, the estimate is deferred for up to
        `MAX_DEFERRED_CHECKS` checks if only few members have converged and others are still active.
        """
        if self._position_tolerance is None or self._tolerance is None or len(self._members) == 1:
            return
        relative_residual = balances.relative_residual
        reached = active[relative_residual[active] <= self._tolerance].tolist()
        converged = {c: balances[c] for c in reached if relative_residual[c] <= self._members[c].below}
        self._deferred = set()
        is_few = len(converged) < len(active) and len(converged) < block_capacity(self._problem)
        if self._patient and is_few and self._deferred_checks < MAX_DEFERRED_CHECKS:
            self._deferred, self._deferred_checks = set(converged), self._deferred_checks + bool(converged)
            return
        self._deferred_checks = 0
        self._estimate_batch(converged)

    def _estimate_batch(self, balances: Mapping[int, Balance]) -> None:
        """Estimate errors of several batch members together; single ones are estimated on demand."""
        unknown = {member: b for member, b in balances.items() if not self._members[member].covers(b)}
        if len(unknown) > 1:
            for member, error_estimate in estimate_errors(self._problem, unknown).items():
                self._members[member].last = unknown[member], error_estimate

    def accurate_members(self, balances: Mapping[int, Balance]) -> list[int]:
        """Return batch members that are stable, within the distance tolerance, and balanced in momentum."""
        balances = {member: b for member, b in balances.items() if self._momentum_excess(b, member) <= 1}
        if self._position_tolerance is None:
            return list(balances)
        self._estimate_batch(balances)
        estimates = {member: self._estimate(balance, member) for member, balance in balances.items()}
        return [
            member
            for member, one in estimates.items()
            if one.stable and one.position_error <= self._position_tolerance
        ]

    def accepts(self, balance: Balance, member: int = 0) -> bool:
        """True if a state within the relative residual tolerance also satisfies the distance tolerance.

        In time steps, the momentum of bodies has to balance, too. Otherwise the solver run receives a lower
        relative residual at which both may be satisfied.
        """
        own = self._members[member]
        excess = self._momentum_excess(balance, member)
        if excess > 1:
            self._tighten(balance, excess, member)
            return False
        if self._position_tolerance is None:
            return True
        if balance.relative_residual > own.below or member in self._deferred:
            return False
        error_estimate = self._estimate(balance, member)
        position_error = error_estimate.position_error
        if position_error <= self._position_tolerance:
            return error_estimate.stable or not self._leaves_saddle(member)
        self._tighten(balance, position_error / self._position_tolerance, member)
        return False

    def _momentum_excess(self, balance: Balance, member: int) -> float:
        """Momentum error at the tolerance of the solve; 0 without a tolerance."""
        if self._tolerance is None or not self._momentum.applies:
            return 0.0
        return self.momentum_error(self._tolerance, balance, member)

    def momentum_error(self, tolerance: float, balance: Balance, member: int = 0) -> float:
        """Momentum error of a state, just evaluated; see `MomentumBalance.error`."""
        own = self._members[member]
        if own.momentum is None or own.momentum[:2] != (tolerance, balance):
            supported = self._tolerance is not None
            error = self._momentum.error(tolerance, balance, self._run.float64_problem, member, supported)
            own.momentum = tolerance, balance, error
        return own.momentum[2]

    def _tighten(self, balance: Balance, excess: float, member: int) -> None:
        """Ask the solver run for a relative residual that is smaller by a factor near `excess`."""
        low, high = REDUCTION_BOUNDS
        self._members[member].below = balance.relative_residual / min(max(low, excess), high)
        self._run.tighten_tolerance(self._members[member].below, member)

    def judge_outcome(self, outcome: Outcome | None, balance: Balance, member: int = 0) -> Outcome | None:
        """Determine the outcome of a stagnated solve.

        In low precision the relative residual that satisfies the distance may be unreachable, so that a
        stagnated state can still be converged.

        Returns:
            None at a saddle point that the method can leave; CONVERGED if relative residual, momentum and
            distance satisfy their tolerances; otherwise the given outcome.
        """
        if outcome is None or self._position_tolerance is None:
            return outcome
        balanced = self._tolerance is not None and balance.relative_residual <= self._tolerance
        balanced = balanced and self._momentum_excess(balance, member) <= 1
        error_estimate = self._estimate(balance, member)
        if not error_estimate.stable and self._leaves_saddle(member):
            return None
        return (
            Outcome.CONVERGED
            if balanced and error_estimate.position_error <= self._position_tolerance
            else outcome
        )

    def _leaves_saddle(self, member: int) -> bool:
        """True if the run continues from an unstable state, at most once per energy level."""
        own, float64_problem = self._members[member], self._run.float64_problem
        diagnostics, number = (
            (self._problem.diagnostics, member)
            if float64_problem is None
            else (float64_problem.diagnostics, 0)
        )
        energy = diagnostics.energy_of(number)
        lower = energy < own.saddle - diagnostics.energy_rounding(number)
        own.saddle, own.below = min(energy, own.saddle), math.inf
        return lower and self._run.leave_saddle(member)

    def final(
        self, ended: Mapping[int, Outcome], balances: Mapping[int, Balance]
    ) -> dict[int, ErrorEstimate | None]:
        """Error estimates of the final states of batch members, from their outcomes and residual norms."""
        float64_problem = self._run.float64_problem
        finite = {
            member: balances[member] if float64_problem is None else float64_problem.balance()
            for member, outcome in ended.items()
            if self._position_tolerance is not None and outcome is not Outcome.FAILED
        }
        for member, balance in finite.items():
            self._members[member].cut_short = self._timed and not self._members[member].covers(balance)
        remaining = {
            member: balance for member, balance in finite.items() if not self._members[member].cut_short
        }
        self._estimate_batch(remaining)
        return dict.fromkeys(ended) | {member: self._estimate(b, member) for member, b in remaining.items()}

    def _estimate(self, balance: Balance, member: int) -> ErrorEstimate:
        """Return a state's error estimate, cached if already known."""
        own = self._members[member]
        if own.last is None or own.last[0] != balance:
            own.last = balance, estimate_error(self._problem, member, self._run.float64_problem)
        return own.last[1]

    def notes(self, member: int = 0) -> list[str]:
        """Report notes about momentum, and about missing or excessive error estimates."""
        last, notes = self._members[member].momentum, []
        if self._tolerance and last and last[2] > 1 and last[1].relative_residual <= self._tolerance:
            notes.append(
                "the relative residual reached the tolerance, but loads and inertia of a body do not balance "
                f"({last[2]:.1g} times what the tolerance allows): its motion as a whole is inaccurate"
            )
        return notes + self._estimate_notes(member)

    def _estimate_notes(self, member: int) -> list[str]:
        """Report notes about missing or excessive error estimates."""
        if self._position_tolerance is None:
            return []
        if self._members[member].cut_short:
            return ["the time limit was reached before the error estimate was computed; raise time_limit"]
        dynamic_terms = self._problem.model.dynamic_terms if self._members[member].last is not None else ()
        caveats = [each.caveat for _, each in dynamic_terms if each.caveat]
        return [*self._position_note(member), *dict.fromkeys(caveats)]

    def _position_note(self, member: int) -> list[str]:
        """Note for states within the relative residual tolerance but beyond the distance tolerance."""
        last, tolerance = self._members[member].last, self._position_tolerance
        if last is None or self._tolerance is None or tolerance is None:
            return []
        balance, error_estimate = last
        position_error = error_estimate.position_error
        if position_error <= tolerance or balance.relative_residual > self._tolerance:
            return []
        return [
            f"the forces balance, but the distance to the equilibrium is {position_error:.1e} of the "
            f"size, above position_tolerance={tolerance:g}"
        ]
