"""Termination criteria and outcome of a solve."""

from __future__ import annotations

import numpy as np

from supple.apart_report import ApartReport
from supple.certifying import Certifying
from supple.finishing import rounded
from supple.problem import Balance, Balances, Problem
from supple.problem.contacts import rigid_imbalance
from supple.problem.touched import ContactReport, contact_reports
from supple.progress import Progress
from supple.report import Outcome
from supple.solvers import Run
from supple.stop import Stop
from supple.weak_contact import MetReport


def next_look(run: Run, stop: Stop, iteration: int, limit: int, clock: float) -> int:
    """Number of iterations until the next termination check."""
    count = min(run.check_every - iteration % run.check_every, limit - iteration)
    if stop.time_budget is not None:
        per_iteration, left = clock / iteration if iteration else np.inf, stop.time_budget - clock
        count = count if left >= count * per_iteration else max(1, int(left / per_iteration))
    return count


def outcome_here(
    balance: Balance,
    stop: Stop,
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
    if stop.tolerance is not None and reached.imbalance <= stop.tolerance:
        if problem.room.blocked:
            return Outcome.STAGNATED
        there = problem.room.arrived and problem.following.settled
        there = there and rigid_imbalance(problem.contacts) <= stop.tolerance
        if there and certifying.agrees(reached, copy):
            return rounded(problem, Outcome.CONVERGED, balance.imbalance, stop.tolerance)
    if run.unbounded:
        return Outcome.UNBOUNDED
    if stop.time_budget is not None and clock >= stop.time_budget:
        return Outcome.BUDGET_TIME if stop.tolerance is not None else Outcome.COMPLETED
    if iteration >= limit:
        return Outcome.BUDGET_ITERATIONS if stop.tolerance is not None else Outcome.COMPLETED
    return None


def without_progress(
    progress: Progress,
    balance: Balance,
    stop: Stop,
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
    return outcome and rounded(problem, outcome, balance.imbalance, stop.tolerance)


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
    return Outcome.PASSED if passed and outcome is Outcome.CONVERGED else outcome


def contact_here(problem: Problem, stop: Stop, looked: bool) -> list[ContactReport | None]:
    """Report obstacle contact per batch member after its solve.

    Forces are reused only if no other evaluation followed, by error estimates or other batch members.

    Args:
        problem: Problem that was solved.
        stop: Termination criteria.
        looked: True if forces were evaluated at the final state.
    """
    return contact_reports(problem, looked and problem.copies == 1 and stop.distance is None)


def advice(outcome: Outcome, problem: Problem, contact: ContactReport | None) -> list[str]:
    """Suggestions for a better result."""
    at_limit = outcome is Outcome.PRECISION and problem.dtype == np.float32
    further = ["precision='float64' would get further"] if at_limit else []
    return further if contact is None else further + contact.sentences


def keep_sound(problem: Problem, run: Run, latest: Balances, good: np.ndarray) -> None:
    """Save finite states, to which a failed solve returns."""
    active = problem.device.active
    sound = active if recovering(problem, run) else active[latest.finite[active]]
    for copy in [None] if len(sound) == problem.copies else sound.tolist():
        problem.device.assign(good, problem.u, copy)
