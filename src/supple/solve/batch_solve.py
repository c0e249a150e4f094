"""Main loop of every solve: iterations, convergence checks, termination and report."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from supple.config.backend import Backend
from supple.config.stop_criteria import StopCriteria
from supple.contact.state.obstacle_contact import rigid_relative_residual
from supple.kernels import compilation
from supple.model.model import Model
from supple.problem import Balance, Balances, Device, Problem
from supple.scene import Scene, build_model
from supple.solve.batch_refinement import MemberOutcomes, refine_batched, refine_sequential, round_outcome
from supple.solve.error_control import ErrorControl
from supple.solve.float_range import check_float_range
from supple.solve.report import FAR_RELATIVE_RESIDUAL, History, IterationInfo, Outcome, Report
from supple.solve.termination import (
    Progress,
    check_intersections,
    check_stagnation,
    check_termination,
    float64_balance,
    float64_balances,
    float64_energies,
    iterations_until_check,
    make_contact_reports,
    save_finite_states,
    suggest_remedies,
)
from supple.solvers import Solver
from supple.support.memory import refuse_large_problem

if TYPE_CHECKING:
    from supple.kernels.compile.notices import _Compilations as Compilations

DEFAULT_ITERATIONS = 20_000
"""Iteration limit of a solve with a tolerance and no other limit."""

NO_LIMIT = 2**62
"""Iteration limit of a solve with only a time limit."""

Callback = Callable[[IterationInfo], None]
"""Function of the state of a solve, called after every evaluation of the residual."""


def solve(
    problem: Problem,
    solver: Solver,
    stop: StopCriteria,
    record_history: bool = False,
    callback: Callback | None = None,
    began: float | None = None,
) -> Report:
    """Run a solver on a problem until a termination criterion is met.

    Args:
        problem: Problem with batch size 1.
        solver: Solver to run.
        stop: Termination criteria.
        record_history: True to record the residual history.
        callback: Callback for the first batch member.
        began: Start of the setup by `perf_counter` [s], for the setup time in the report.

    Returns:
        The report. Its time excludes compilation and the recording of the history.
    """
    return solve_batch(problem, solver, stop, record_history, callback, began)[0]


def solve_batch(
    problem: Problem,
    solver: Solver,
    stop: StopCriteria,
    record_history: bool = False,
    callback: Callback | None = None,
    began: float | None = None,
) -> list[Report]:
    """Run a solver on a batch, each member until a termination criterion is met.

    Only the first batch member is monitored and records a residual history.

    Args:
        problem: Problem with its batch.
        solver: Solver to run.
        stop: Termination criteria.
        record_history: True to record the residual history.
        callback: Callback for the first batch member.
        began: Start of the setup by `perf_counter` [s], for the setup time in the report.

    Returns:
        One report per batch member.
    """
    with compilation() as compiled:
        batch_solve = _BatchSolve(problem, solver, stop, record_history, callback, began, compiled)
        batch_solve.run()
        return batch_solve.reports()


class _BatchSolve:
    """Solve of a batch: results so far, and a clock [s] that excludes compilation and history."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        stop: StopCriteria,
        record_history: bool,
        callback: Callback | None,
        began: float | None,
        compiled: Compilations,
    ) -> None:
        self.problem, self.solver, self.stop = problem, solver, stop
        self.callback, self.compiled, self.device = callback, compiled, problem.device
        self.diagnostics = problem.diagnostics
        self.limit = stop.max_iterations or (NO_LIMIT if stop.tolerance is None else DEFAULT_ITERATIONS)
        self._activate_all()  # an interrupted solve may have left some inactive
        self.history = History() if record_history else None
        self.first = self.diagnostics.balances()
        self.latest, self.progress = self.first, Progress(problem.batch_size)
        self.ended: MemberOutcomes = {}
        self.sequential_reports: dict[int, Report] = {}
        self.batched_notes: dict[int, str] = {}
        self.clock, self.iteration, self.evaluated = 0.0, 0, False
        self.checkpoint = problem.zeros(problem.u.shape)
        self.device.assign(self.checkpoint, problem.u)
        self._record_residual()
        self.method = solver.begin(problem)  # may already change u
        self.method.start_at(self.first)
        self.method.set_targets(stop.tolerance, stop.max_iterations, stop.time_limit)
        self._record_multipliers()
        self.error_control = ErrorControl(problem, stop, self.method)
        self.setup = perf_counter() - began - compiled.seconds if began is not None else 0.0
        self.checking = (
            stop.tolerance is not None
            or record_history
            or callback is not None
            or self.method.needs_monitoring
        )

    def run(self) -> None:
        """Iterate until every batch member has terminated."""
        dynamic_terms = self.problem.dynamic_terms
        while not self._terminate_members():
            count = iterations_until_check(self.method, self.stop, self.iteration, self.limit, self.clock)
            count = dynamic_terms.clamp_to_update(count)
            self.limit += count if self.problem.trust_region.in_progress else 0
            target = self.iteration + count
            while self.iteration < target:  # single steps for a history, with identical results
                self._advance(1 if self.history is not None else target - self.iteration, target)
                self._record_residual()
                self._record_multipliers()
            balanced = self._is_balanced
            continues = dynamic_terms.updates_within_steps and (balanced or self.iteration < self.limit)
            if not continues:
                dynamic_terms.count_iterations(count)
            elif dynamic_terms.count_and_update(count, balanced, self.latest[0].residual):
                self._restart_records()
            self.progress.record(
                float64_balances(self.latest, self.method), self.device.active, self.iteration
            )
        self._activate_all()
        if dynamic_terms.finish_step():
            self.latest = self.diagnostics.balances()
        if self.method.refines_sequentially:
            self._refine()

    def _refine(self) -> None:
        """Refine unconverged batch members from their last finite state, first batched, then one by one."""
        self._restore_failed()
        monitored = self.callback is not None or self.history is not None
        inputs = self.problem, self.method, self.ended, self.stop, self.error_control, monitored
        self.batched_notes = refine_batched(*inputs)
        resume = partial(solve, solver=self.solver, stop=self.stop)
        self.sequential_reports = refine_sequential(
            self.problem, self.ended, resume, self.callback, self.history
        )
        self.latest = self.diagnostics.balances()
        for member, report in self.sequential_reports.items():
            outcome = round_outcome(
                self.problem, report.outcome, self.latest[member].relative_residual, self.stop.tolerance
            )
            self.ended[member] = outcome, *self.ended[member][1:]

    @property
    def _is_balanced(self) -> bool:
        """True if an active batch member has reached the tolerance with the present stencils."""
        tolerance = self.stop.tolerance
        return tolerance is not None and bool(
            (self.latest.relative_residual[self.device.active] <= tolerance).any()
        )

    def _restart_records(self) -> None:
        """Restart convergence records after a change of stencils and therefore energy."""
        self.latest = self.diagnostics.balances()
        self.method.start_at(self.latest)
        self.progress = Progress(self.problem.batch_size, self.iteration)
        self.error_control = ErrorControl(self.problem, self.stop, self.method, prepared=False)

    def _activate_all(self) -> None:
        """Activate all batch members."""
        self.device.active = np.arange(self.problem.batch_size, dtype=np.int32)

    def _record_residual(self) -> None:
        """Record and report the residual of the first batch member."""
        balance = self.latest[0]
        if self.history is not None:
            self.history.add(self.iteration, self.clock, balance, self.problem.energy())
        if self.callback is not None:
            self.callback(
                IterationInfo(
                    self.iteration,
                    balance.relative_residual,
                    self.clock,
                    self.problem.energy,
                    solver=self.solver.name,
                )
            )

    def _record_multipliers(self) -> None:
        """Record the multiplier residuals of the method."""
        if self.history is not None:
            self.history.add_multipliers(self.method.residuals())

    def _terminate_members(self) -> bool:
        """Deactivate terminated batch members; return True if all have terminated."""
        problem, stop, run, iteration = self.problem, self.stop, self.method, self.iteration
        self.error_control.estimate_converged(self.latest, self.device.active)
        for member in self._termination_candidates():
            latest = self.latest[member]
            outcome = check_termination(
                latest, stop, iteration, self.limit, self.clock, problem, run, self.error_control, member
            )
            if outcome is None and stop.tolerance is not None:
                outcome = check_stagnation(
                    self.progress, latest, stop, iteration, problem, run, self.error_control, member
                )
            if outcome is None and run.find_members_to_separate()[member]:
                outcome = Outcome.STAGNATED
            if outcome is not None:
                self.ended[member] = outcome, iteration, self.clock
        remaining = self.problem.batch_size - len(self.ended)
        if 0 < remaining < len(self.device.active):
            self.device.active = np.array(
                [c for c in range(problem.batch_size) if c not in self.ended], np.int32
            )
        return remaining == 0

    def _termination_candidates(self) -> list[int]:
        """Active batch members that may have terminated, usually few of thousands."""
        active, stop, latest = self.device.active, self.stop, self.latest
        timed = stop.time_limit is not None and self.clock >= stop.time_limit
        if len(active) == 1 or timed or self.iteration >= self.limit or self.method.unbounded:
            return active.tolist()
        candidates = ~latest.finite | self.method.find_members_to_separate()
        if stop.tolerance is not None:
            candidates |= (latest.relative_residual <= stop.tolerance) | self.progress.stalled(
                self.method, self.iteration
            )
        return active[candidates[active]].tolist()

    def _advance(self, count: int, target: int) -> None:
        """Run iterations, then evaluate residuals if needed."""
        compiling, tick = self.compiled.seconds, perf_counter()
        for chunk in self.problem.gases.each(count):
            self.method.advance(chunk)
        if self.history is not None:
            self.device.wait()
        self.iteration += count
        if self.history is not None:
            self.clock += perf_counter() - tick - (self.compiled.seconds - compiling)
        self.evaluated = self.checking or self.iteration >= self.limit or self.stop.time_limit is not None
        if self.evaluated:
            self.latest = self.diagnostics.balances()
            if self.iteration == target and self.method.observe_all(self.latest, self.device.active).any():
                self.latest = self.diagnostics.balances()
            if not self.method.needs_monitoring:
                save_finite_states(self.problem, self.method, self.latest, self.checkpoint)
        if self.history is None:
            self.clock += perf_counter() - tick - (self.compiled.seconds - compiling)

    def _restore_failed(self) -> Balances:
        """Restore the last finite state of failed batch members; return the present residuals."""
        undone = [
            member for member, (outcome, n, _) in self.ended.items() if outcome is Outcome.FAILED or n == 0
        ]
        for member in undone:
            self.device.assign(self.problem.u, self.checkpoint, member)
        if undone and self.method.float64_problem is not None:
            self.method.float64_problem.positions = self.problem.positions
        return self.diagnostics.balances() if undone else self.latest

    def reports(self) -> list[Report]:
        """Reports of all batch members; failed ones are reset to their last finite state."""
        ended, latest, problem, run = self.ended, self._restore_failed(), self.problem, self.method
        momentum_errors = {member: self._momentum_error(latest[member], member) for member in ended}
        batched = {member: how[0] for member, how in ended.items() if member not in self.sequential_reports}
        error_estimates = self.error_control.final(batched, latest)
        error_estimates |= {
            member: report.error_estimate for member, report in self.sequential_reports.items()
        }
        energies, inverted = float64_energies(problem, run), self.diagnostics.inversions()
        contact, rejected = make_contact_reports(problem, self.stop, self.evaluated), run.collect_rejected()
        norms = self.first.residual, latest.residual, latest.relative_residual
        first, residual, relative_residual = (values.tolist() for values in norms)
        rigid = min(rigid_relative_residual(problem.contacts), 1.0)
        return [
            Report(
                outcome=check_intersections(outcome, contact[member]),
                solver=self.solver.name,
                iterations=iterations,
                relative_residual=max(relative_residual[member], rigid),
                reduction=residual[member] / first[member] if first[member] != 0 else 0.0,
                residual=residual[member],
                energy=float(energies[member]),
                seconds=seconds,
                tolerance=self.stop.tolerance,
                max_iterations=None if self.limit == NO_LIMIT else self.limit,
                compile_seconds=self.compiled.seconds if member == 0 else 0.0,
                setup_seconds=self.setup if member == 0 else 0.0,
                precision=str(problem.dtype),
                threads=self.device.threads,
                vertices=problem.model.vertices,
                elements=problem.model.elements,
                colors=run.colors,
                inverted=int(inverted[member]),
                rejected=rejected[member],
                momentum_error=momentum_errors[member],
                error_estimate=error_estimates[member],
                contact=contact[member],
                notes=run.notes(member)
                + suggest_remedies(outcome, problem, contact[member])
                + self._notes(member),
                history=self.history if member == 0 else None,
            )
            for member, (outcome, iterations, seconds) in sorted(ended.items())
        ]

    def _momentum_error(self, balance: Balance, member: int) -> float:
        """Momentum error of the final state, see `Report`.

        On the host it would take longer than a fixed number of sweeps of a batch or on a GPU.
        """
        affordable = self.problem.batch_size == 1 and self.device.name == "cpu"
        if (self.stop.tolerance is None and not affordable) or member in self.sequential_reports:
            return 0.0
        tolerance = self.stop.tolerance or FAR_RELATIVE_RESIDUAL
        return self.error_control.momentum_error(tolerance, float64_balance(balance, self.method), member)

    def _notes(self, member: int) -> list[str]:
        if member in self.sequential_reports:
            return ["then alone", *self.sequential_reports[member].notes]
        others = [self.batched_notes[member]] if member in self.batched_notes else []
        return (
            others
            + self.error_control.notes(member)
            + self.problem.trust_region.notes(bool(self.problem.loads.inertia.any()))
        )


def make_device(device: str, model: Model, batch_size: int = 1) -> Device | None:
    """Create a device for a model; None for the CPU."""
    if device == "cpu":
        return None
    from supple.problem.cuda import Cuda

    return Cuda(model.vertices + 1, batch_size)


def make_problem(scene: Scene | Model, quasistatic: bool, backend: Backend) -> Problem:
    """Validate and discretize a scene or model.

    Args:
        scene: Scene or model.
        quasistatic: True to build the scene for equilibria.
        backend: Precision, device and threads.

    Returns:
        The problem on the device of `backend`.

    Raises:
        ValueError: Values exceed the range of the precision, or memory does not suffice.
    """
    backend.check_available()
    model = scene if isinstance(scene, Model) else build_model(scene, quasistatic)
    check_float_range(model, backend.precision)
    refuse_large_problem(model.elements, 4 if backend.precision == "float32" else 8)
    return Problem(model, backend.precision, backend.threads, make_device(backend.device, model))
