"""Termination criteria and outcome of a solve.

Detection of stagnation.
"""

from __future__ import annotations

import numpy as np

from supple.config.stop import StopCriteria
from supple.contact.barrier_report import ApartReport
from supple.contact.obstacle_contact import rigid_relative_residual
from supple.contact.obstacle_report import ContactReport, contact_reports
from supple.contact.weak import MetReport
from supple.problem import Balance, Balances, Problem
from supple.problem.diagnostics import Measures
from supple.solve.batch_refinement import rounded
from supple.solve.error_control import Certifying
from supple.solve.report import Outcome
from supple.solvers import Run

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
        relative_residual: (batch,) lowest relative residual.
        energy: (batch,) energy [J] at the last detection of stagnating residuals. The energy may fall for
            thousands of iterations before the residuals do.
        at: (batch,) iteration of the last improvement.
        patience: Patience of the run at the last check.
    """

    def __init__(self, copies: int, iteration: int = 0) -> None:
        self.residual, self.relative_residual, self.energy = (np.full(copies, np.inf) for _ in range(3))
        self.at = np.full(copies, iteration)
        self.patience: int | None = None

    def see(self, balances: Balances, copies: np.ndarray, iteration: int) -> None:
        """Record residual and relative residual; a reduction of either is progress.

        The residual may fall alone while a body without loads relaxes and all its forces vanish together. The
        relative residual may fall alone while forces build up from rest under a load and the residual rises.
        """
        for found, least in (
            (balances.residual, self.residual),
            (balances.relative_residual, self.relative_residual),
        ):
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
        self, measures: Measures, copy: int, latest: Balance, stop: StopCriteria, run: Run, iteration: int
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
            return Outcome.ROUNDING_LIMIT
        energy = measures.energy_of(copy)
        falls = energy < self.energy[copy] - measures.energy_rounding(copy)
        self.energy[copy], self.at[copy] = energy, iteration
        goes_on = falls or stop.max_iterations is not None or run.on_its_way(copy)
        return None if goes_on else Outcome.STAGNATED


def next_look(run: Run, stop: StopCriteria, iteration: int, limit: int, clock: float) -> int:
    """Number of iterations until the next termination check."""
    count = min(run.check_every - iteration % run.check_every, limit - iteration)
    if stop.time_limit is not None:
        per_iteration, left = clock / iteration if iteration else np.inf, stop.time_limit - clock
        count = count if left >= count * per_iteration else max(1, int(left / per_iteration))
    return count


def outcome_here(
    balance: Balance,
    stop: StopCriteria,
    iteration: int,
    limit: int,
    clock: float,
    problem: Problem,
    run: Run,
    certifying: Certifying,
    copy: int = 0,
) -> Outcome | None:
    """Check termination criteria at the present state.

    Args:
        balance: Residual in working precision.
        stop: Termination criteria.
        iteration: Number of iterations made.
        limit: Iteration limit.
        clock: Time used [s].
        problem: Problem being solved.
        run: Running method.
        certifying: Error estimates.
        copy: Batch member.

    Returns:
        The outcome, or None to continue.
    """
    reached = exactly(balance, run)
    if not reached.finite and not recovering(problem, run):
        return Outcome.FAILED
    if stop.tolerance is not None and reached.relative_residual <= stop.tolerance:
        if problem.room.blocked:
            return Outcome.STAGNATED
        there = problem.room.arrived and problem.following.settled
        there = there and rigid_relative_residual(problem.contacts) <= stop.tolerance
        if there and certifying.agrees(reached, copy):
            return rounded(problem, Outcome.CONVERGED, balance.relative_residual, stop.tolerance)
    if run.unbounded:
        return Outcome.UNBOUNDED
    if stop.time_limit is not None and clock >= stop.time_limit:
        return Outcome.TIME_LIMIT if stop.tolerance is not None else Outcome.FIXED_ITERATIONS
    if iteration >= limit:
        return Outcome.MAX_ITERATIONS if stop.tolerance is not None else Outcome.FIXED_ITERATIONS
    return None


def without_progress(
    progress: Progress,
    balance: Balance,
    stop: StopCriteria,
    iteration: int,
    problem: Problem,
    run: Run,
    certifying: Certifying,
    copy: int = 0,
) -> Outcome | None:
    """Check for stagnation.

    Args:
        progress: Record of the best residuals.
        balance: Residual in working precision.
        stop: Termination criteria.
        iteration: Number of iterations made.
        problem: Problem being solved.
        run: Running method.
        certifying: Error estimates.
        copy: Batch member.

    Returns:
        The outcome, or None to continue.
    """
    reached, exact = exactly(balance, run), run.exact
    measures, number = (problem.measures, copy) if exact is None else (exact.measures, 0)
    outcome = progress.outcome(measures, number, reached, stop, run, iteration)
    outcome = certifying.judged(outcome, reached, copy)
    return outcome and rounded(problem, outcome, balance.relative_residual, stop.tolerance)


def exactly(balance: Balance, run: Run) -> Balance:
    """Float64 residual of a run that keeps a float64 state, otherwise `balance`.

    The same state rounded to the problem's precision may have a large residual although it is as close to the
    equilibrium as that precision allows.
    """
    return balance if run.exact is None else run.exact.balance()


def exact_of(balances: Balances, run: Run) -> Balances:
    """Residuals of the batch in float64; a run with a float64 state has batch size 1."""
    return balances if run.exact is None else run.exact.measures.balances()


def recovering(problem: Problem, run: Run) -> bool:
    """True if displacements are finite and the method recovers from infinite forces.

    Forces are infinite in inverted elements of materials with a barrier.
    """
    if run.recovers:
        problem.device.pull(problem.u)
    return run.recovers and bool(np.isfinite(problem.u[:-1]).all())


def unless_passed(outcome: Outcome, *contacts: MetReport | ApartReport | ContactReport | None) -> Outcome:
    """Replace CONVERGED by PASSED if surfaces, or obstacles and faces, have passed through each other."""
    passed = any(contact is not None and contact.passed for contact in contacts)
    return Outcome.INTERSECTING if passed and outcome is Outcome.CONVERGED else outcome


def contact_here(problem: Problem, stop: StopCriteria, looked: bool) -> list[ContactReport | None]:
    """Report obstacle contact per batch member after its solve.

    Forces are reused only if no other evaluation followed, by error estimates or other batch members.

    Args:
        problem: Problem that was solved.
        stop: Termination criteria.
        looked: True if forces were evaluated at the final state.
    """
    return contact_reports(problem, looked and problem.copies == 1 and stop.position_tolerance is None)


def advice(outcome: Outcome, problem: Problem, contact: ContactReport | None) -> list[str]:
    """Suggestions for a better result."""
    at_limit = outcome is Outcome.ROUNDING_LIMIT and problem.dtype == np.float32
    further = ["precision='float64' would get further"] if at_limit else []
    return further if contact is None else further + contact.sentences


def keep_sound(problem: Problem, run: Run, latest: Balances, good: np.ndarray) -> None:
    """Save finite states, to which a failed solve returns."""
    active = problem.device.active
    sound = active if recovering(problem, run) else active[latest.finite[active]]
    for copy in [None] if len(sound) == problem.copies else sound.tolist():
        problem.device.assign(good, problem.u, copy)
