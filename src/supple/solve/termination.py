"""Termination criteria and outcome of a solve, with detection of stagnation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from supple.config.stop_criteria import StopCriteria
from supple.contact.barrier import report_barrier_contact
from supple.contact.state.contact_report import ContactReport
from supple.contact.state.obstacle_contact import rigid_relative_residual
from supple.contact.state.obstacle_report import report_obstacle_contact
from supple.contact.weak_contact import report_penalty_contact
from supple.problem import Balance, Balances, Problem
from supple.problem.diagnostics import Diagnostics
from supple.solve.batch_refinement import round_outcome
from supple.solve.error_control import ErrorControl
from supple.solve.report import Outcome
from supple.solvers import Run

PROGRESS_RATIO = 0.99
"""Ratio to the lowest value so far below which a residual counts as reduced."""

ROUNDING_FACTOR = 3.0
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

    def __init__(self, batch_size: int, iteration: int = 0) -> None:
        self.residual, self.relative_residual, self.energy = (np.full(batch_size, np.inf) for _ in range(3))
        self.at = np.full(batch_size, iteration)
        self.patience: int | None = None

    def record(self, balances: Balances, members: np.ndarray, iteration: int) -> None:
        """Record residual and relative residual; a reduction of either is progress.

        The residual may fall alone while a body without loads relaxes and all its forces vanish together. The
        relative residual may fall alone while forces build up from rest under a load and the residual rises.
        """
        for values, least in (
            (balances.residual, self.residual),
            (balances.relative_residual, self.relative_residual),
        ):
            better = members[values[members] < PROGRESS_RATIO * least[members]]
            least[better], self.at[better] = values[better], iteration

    def stalled(self, run: Run, iteration: int) -> np.ndarray:
        """(batch,) True for batch members without progress for longer than the patience of the run."""
        if self.patience not in (None, run.patience):  # the run has switched to another method
            self.at[:] = iteration
        self.patience = run.patience
        stalled: np.ndarray = iteration - self.at > run.patience
        return stalled

    def outcome(
        self,
        diagnostics: Diagnostics,
        member: int,
        latest: Balance,
        stop: StopCriteria,
        run: Run,
        iteration: int,
    ) -> Outcome | None:
        """Outcome of a solve without progress.

        With an explicit iteration limit the solve continues in spite of stagnation, except at the rounding
        limit.

        Args:
            diagnostics: Diagnostics of the states.
            member: Batch member.
            latest: Latest residual.
            stop: Termination criteria.
            run: Running method.
            iteration: Number of iterations made.

        Returns:
            The outcome, or None to continue.
        """
        if not self.stalled(run, iteration)[member]:
            return None
        if latest.is_rounding(ROUNDING_FACTOR):
            return Outcome.ROUNDING_LIMIT
        energy = diagnostics.energy_of(member)
        falls = energy < self.energy[member] - diagnostics.energy_rounding(member)
        self.energy[member], self.at[member] = energy, iteration
        continues = falls or stop.max_iterations is not None or run.is_moving(member)
        return None if continues else Outcome.STAGNATED


def iterations_until_check(run: Run, stop: StopCriteria, iteration: int, limit: int, clock: float) -> int:
    """Number of iterations until the next termination check."""
    count = min(run.check_every - iteration % run.check_every, limit - iteration)
    if stop.time_limit is not None:
        per_iteration, remaining = clock / iteration if iteration else np.inf, stop.time_limit - clock
        count = count if remaining >= count * per_iteration else max(1, int(remaining / per_iteration))
    return count


def check_termination(
    balance: Balance,
    stop: StopCriteria,
    iteration: int,
    limit: int,
    clock: float,
    problem: Problem,
    run: Run,
    error_control: ErrorControl,
    member: int = 0,
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
        error_control: Error estimates.
        member: Batch member.

    Returns:
        The outcome, or None to continue.
    """
    reached = float64_balance(balance, run)
    if not reached.finite and not is_recovering(problem, run):
        return Outcome.FAILED
    if stop.tolerance is not None and reached.relative_residual <= stop.tolerance:
        if problem.trust_region.is_blocked:
            return Outcome.STAGNATED
        if _is_complete(problem, stop.tolerance) and error_control.accepts(reached, member):
            return round_outcome(problem, Outcome.CONVERGED, balance.relative_residual, stop.tolerance)
    if run.unbounded:
        return Outcome.UNBOUNDED
    if stop.time_limit is not None and clock >= stop.time_limit:
        return Outcome.TIME_LIMIT if stop.tolerance is not None else Outcome.FIXED_ITERATIONS
    if iteration >= limit:
        return Outcome.MAX_ITERATIONS if stop.tolerance is not None else Outcome.FIXED_ITERATIONS
    return None


def _is_complete(problem: Problem, tolerance: float) -> bool:
    """True if prescribed motions have reached their targets and rigid bodies are in balance."""
    arrived = problem.trust_region.has_arrived and problem.dynamic_terms.rigid_bodies_at_rest
    return arrived and rigid_relative_residual(problem.contacts) <= tolerance


def check_stagnation(
    progress: Progress,
    balance: Balance,
    stop: StopCriteria,
    iteration: int,
    problem: Problem,
    run: Run,
    error_control: ErrorControl,
    member: int = 0,
) -> Outcome | None:
    """Check for stagnation.

    Args:
        progress: Record of the best residuals.
        balance: Residual in working precision.
        stop: Termination criteria.
        iteration: Number of iterations made.
        problem: Problem being solved.
        run: Running method.
        error_control: Error estimates.
        member: Batch member.

    Returns:
        The outcome, or None to continue.
    """
    reached, float64_problem = float64_balance(balance, run), run.float64_problem
    diagnostics, number = (
        (problem.diagnostics, member) if float64_problem is None else (float64_problem.diagnostics, 0)
    )
    outcome = progress.outcome(diagnostics, number, reached, stop, run, iteration)
    judged = error_control.judge_outcome(outcome, reached, member)
    is_final = judged is not Outcome.CONVERGED or _is_complete(problem, stop.tolerance or np.inf)
    outcome = judged if is_final else outcome
    return outcome and round_outcome(problem, outcome, balance.relative_residual, stop.tolerance)


def float64_balance(balance: Balance, run: Run) -> Balance:
    """Float64 residual of a run that keeps a float64 state, otherwise `balance`.

    The same state rounded to the problem's precision may have a large residual although it is as close to the
    equilibrium as that precision allows.
    """
    return balance if run.float64_problem is None else run.float64_problem.balance()


def float64_balances(balances: Balances, run: Run) -> Balances:
    """Residuals of the batch in float64; a run with a float64 state has batch size 1."""
    return balances if run.float64_problem is None else run.float64_problem.diagnostics.balances()


def float64_energies(problem: Problem, run: Run) -> np.ndarray:
    """Energies (batch,) [J], in float64 for a run with a float64 state, which has batch size 1."""
    return (run.float64_problem or problem).diagnostics.energies()


def is_recovering(problem: Problem, run: Run) -> bool:
    """True if displacements are finite and the method recovers from infinite forces.

    Forces are infinite in inverted elements of materials with a barrier.
    """
    if run.recovers_from_inversion:
        problem.device.download(problem.u)
    return run.recovers_from_inversion and bool(np.isfinite(problem.u[:-1]).all())


def check_intersections(outcome: Outcome, contact: ContactReport | None) -> Outcome:
    """Replace CONVERGED by INTERSECTING if surfaces, or obstacles and faces, passed through each other."""
    intersecting = contact is not None and contact.is_intersecting
    return Outcome.INTERSECTING if intersecting and outcome is Outcome.CONVERGED else outcome


def make_contact_reports(problem: Problem, stop: StopCriteria, evaluated: bool) -> list[ContactReport | None]:
    """Report contact per batch member after its solve; contact between bodies has batch size 1.

    Forces are reused only if no other evaluation followed, by error estimates or other batch members.

    Args:
        problem: Problem that was solved.
        stop: Termination criteria.
        evaluated: True if forces were evaluated at the final state.
    """
    evaluated = evaluated and problem.batch_size == 1 and stop.position_tolerance is None
    reports = report_obstacle_contact(problem, evaluated)
    bodies = report_penalty_contact(problem) or report_barrier_contact(problem)
    if bodies is not None:
        reports[0] = replace(reports[0] or ContactReport(), bodies=bodies)
    return reports


def suggest_remedies(outcome: Outcome, problem: Problem, contact: ContactReport | None) -> list[str]:
    """Suggestions for a better result."""
    at_limit = outcome is Outcome.ROUNDING_LIMIT and problem.dtype == np.float32
    suggestions = ["use precision='float64' for a smaller residual"] if at_limit else []
    return suggestions if contact is None else suggestions + contact.sentences


def save_finite_states(problem: Problem, run: Run, latest: Balances, checkpoint: np.ndarray) -> None:
    """Save finite states, to which a failed solve returns."""
    active = problem.device.active
    members = active if is_recovering(problem, run) else active[latest.finite[active]]
    for member in [None] if len(members) == problem.batch_size else members.tolist():
        problem.device.assign(checkpoint, problem.u, member)
