"""Time stepping from frame to frame: substeps, external forces and recovery from failed steps."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np

from supple.config.stop_criteria import StopCriteria
from supple.contact.rigid_passage import RigidPassage
from supple.kernels import compilation
from supple.model.model import Model, Step, latest_model, wind_forces, with_bodies_at
from supple.problem import Problem
from supple.problem.history_variables import PASSED, UNSOLVED, HistoryVariables
from supple.problem.material_update import changing_materials
from supple.problem.states import positions_from, to_float64
from supple.solve.batch_solve import Callback, solve_batch
from supple.solve.float_range import check_float_range
from supple.solve.integrators import RULES, SecondOrderIntegrator, check_integrator
from supple.solve.report import Outcome, Report, lag_notes
from supple.solve.time_step_options import StepSchedule
from supple.solvers import Run, Solver


class TimeLoop:
    """Time stepping of a problem, all batch members at once.

    Only the first batch member is monitored and records a history.

    Args:
        problem: Problem.
        solver: Solver.
        stop: Termination criteria of every step.
        schedule: Time stepping parameters.
        record_history: Record the convergence history.
        callback: Called after each measurement of the relative residual.
        began: Start of the set-up [s], for the first report.

    Attributes:
        index: Number of completed frames.
        origin: Time of frame 0 [s].
    """

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        stop: StopCriteria,
        schedule: StepSchedule,
        record_history: bool = False,
        callback: Callback | None = None,
        began: float | None = None,
    ) -> None:
        self.problem, self.solver, self.stop, self.schedule, self.index = problem, solver, stop, schedule, 0
        self._keeps_history, self._callback, self._began = record_history, callback, began
        self.origin = 0.0
        self._model = problem.model
        self._frame_start = problem.zeros(problem.u.shape)
        limited = stop.tolerance is not None or stop.time_limit is not None
        checks = limited or record_history or callback is not None
        self._unmonitored_steps = 0 if checks else schedule.substeps - 1
        self._inverted = np.zeros(problem.batch_size, int)
        self._rule: SecondOrderIntegrator | None = None
        if not schedule.quasistatic:
            check_float_range(problem.model, str(problem.dtype), schedule.step)
            check_integrator(schedule.integrator, problem.model, solver)
            problem.loads.set_time_step(schedule.step)
            if schedule.integrator in RULES:
                self._rule = SecondOrderIntegrator(problem, RULES[schedule.integrator], schedule.step)
        self.begin()

    @property
    def time(self) -> float:
        """Time of the last frame [s]."""
        return self.origin + self.index * self.schedule.dt

    @property
    def model(self) -> Model:
        """Model of the frames.

        It is the same object for all frames, even if parameters vary, unless stencils, pressures or cables
        change.
        """
        now = self.problem.model
        self._model = latest_model(self._model, now)
        return with_bodies_at(self._model, self.problem.contacts.rigid_states)

    def move_obstacles(self) -> None:
        """Move obstacles to their positions at the last frame's time.

        Obstacles moved by bodies are placed with the state.
        """
        self.problem.contacts.set_time(self.time)
        self.problem.trust_region.set_time(self.time)

    def count_inverted(self) -> None:
        """Count inverted elements at the start of the motion, which reports tolerate."""
        self._inverted = self.problem.diagnostics.inversions().astype(int)

    def begin(self) -> None:
        """Continue from the problem's current positions and velocities."""
        self._velocities_current, self._interrupted = True, False
        self.problem.history.clear_motions(self.history_name)

    @property
    def history_name(self) -> str | None:
        """Name of the integrator's history variables, or None."""
        rule = None if self.schedule.quasistatic else RULES.get(self.schedule.integrator)
        return None if rule is None else rule.history_name

    def advance(self, forces: np.ndarray | None = None, pins: np.ndarray | None = None) -> list[Report]:
        """Advance to the next frame.

        Args:
            forces: (n, 3) or (batch, n, 3) forces [N] in addition to the model's during the frame, or None.
            pins: (k, 3) or (batch, k, 3) target positions [m] of the pinned vertices at the end of the
                frame, reached at constant velocity; None for the model's prescribed motion.

        Returns:
            One report per batch member.
        """
        self.refuse_interrupted()
        problem, schedule = self.problem, self.schedule
        self._interrupted = True
        problem.device.assign(self._frame_start, problem.u)
        self._history_start = problem.history.get_variables()
        if problem.contacts:
            problem.contacts.paths.clear_passages()
        rigid = RigidPassage(problem.contacts) if problem.contacts.rigid else None
        times = [self.time + k * schedule.step for k in range(1, schedule.substeps)]
        times.append(
            self.origin + (self.index + 1) * schedule.dt
        )  # bitwise equal to the start time of a continued motion
        prescribed_steps = [None] * schedule.substeps if pins is None else self._pin_targets(pins)
        steps = list(zip(times, prescribed_steps, strict=True))
        reports = []
        if self._unmonitored_steps:
            reports.append(self._run_unmonitored_steps(steps[: self._unmonitored_steps], forces))
        for time, prescribed in steps[self._unmonitored_steps :]:
            self._begin_step(time, prescribed, forces)
            limits = self._keeps_history, self._callback, self._pop_setup_start()
            reports.append(solve_batch(problem, self.solver, self.stop, *limits))
        self.index += 1
        self._velocities_current = self._interrupted = False
        passed = [any(map(has_passed, member_reports)) for member_reports in zip(*reports, strict=True)]
        frame_reports = [merge_reports(list(member_reports)) for member_reports in zip(*reports, strict=True)]
        if any(report.outcome is Outcome.FAILED for report in frame_reports):
            self._revert_failed()
        for rigid_body, name in [] if rigid is None else rigid.find():
            frame_reports[0].notes.append(f"the rigid body {rigid_body!r} passed through a face of {name!r}")
            passed[0] = True
        mark_passed(problem.history, frame_reports, passed, self.time)
        if self._rule is not None:
            mark_unsolved(problem.history, frame_reports, schedule.integrator, self.time)
        for member, report in enumerate(frame_reports):
            report.inverted_before = int(self._inverted[member])
            self._inverted[member] = min(report.inverted, report.inverted_before)
            report.notes += self._lag_notes(report)
        return frame_reports

    def _lag_notes(self, report: Report) -> list[str]:
        """Notes on a time step that ended far from equilibrium."""
        if self.schedule.quasistatic:
            return []
        takes_inertial_guess = self.solver.accepts_guess and self.schedule.initial_guess != "inertial"
        return lag_notes(report, ("inertial",) if takes_inertial_guess else ())

    def refuse_interrupted(self) -> None:
        """Raise an error after an interrupted step, whose state is undefined."""
        if self._interrupted:
            raise ValueError(
                "the previous step was interrupted, so the current state is undefined; call "
                "reset(), or assign an earlier state"
            )

    def finish_frame(self) -> np.ndarray:
        """Finish the frame and return its velocities (batch, n, 3) [m/s].

        They are rounded to the working precision, so that the state of a frame determines the next one
        completely.
        """
        states = self.problem.states
        if not self._velocities_current:
            self._set_velocities()
            self._velocities_current = True
        return to_float64(states, states.velocity)

    def last_steps(self) -> list[Step | None]:
        """Last step of each batch member; None if only the model's constant forces acted."""
        p, schedule = self.problem, self.schedule
        force, materials = (
            (p.loads.force if p.loads.force is not p.model.force else None),
            changing_materials(p.model),
        )
        history, is_constant = p.history.get_variables(), force is None and materials is None
        if schedule.quasistatic and is_constant and not any(history) and p.model.obstacles is None:
            return [None] * p.batch_size
        anchors = positions_from(p.states, p.u if schedule.quasistatic else p.states.anchor)
        forces = force if force is not None and force.ndim == 3 else [force] * p.batch_size
        dt = math.inf if schedule.quasistatic else schedule.inertia
        members = zip(anchors, forces, history, strict=True)
        return [
            Step(dt, anchor, force, materials, self.time, variables) for anchor, force, variables in members
        ]

    def _set_velocities(self) -> None:
        """Compute velocities at the end of a step."""
        states, schedule = self.problem.states, self.schedule
        if schedule.quasistatic:
            states.update_velocity(self._frame_start, schedule.dt)
        elif self._rule is not None:
            states.set_velocities(self._rule.finish_step(schedule.damping))
        else:
            states.update_velocity(states.last, schedule.step, schedule.damping)

    def _begin_step(self, time: float, prescribed: np.ndarray | None, forces: np.ndarray | None) -> None:
        """Begin a step that ends at a time [s], with prescribed positions and additional forces."""
        dt = math.inf if self.schedule.quasistatic else self.schedule.step
        self.problem.history.evolve(self.schedule.step)
        if self.problem.model.winds and not self.schedule.quasistatic:
            forces = self._wind_forces(time) + (0.0 if forces is None else forces)
        if self._rule is not None:
            self.finish_frame()
            self._rule.prepare_history(time, forces)
            self._velocities_current = False
        guess = self.schedule.initial_guess if self.solver.accepts_guess else "coast"
        first_guess = "coast" if self._rule is not None else guess
        self.problem.begin_step(time, dt, self.schedule.damping, forces, prescribed, first_guess)
        if self._rule is not None:
            self._rule.set_inertial_target(guess, time)

    def _wind_forces(self, time: float) -> np.ndarray:
        """(n, 3) or (batch, n, 3) wind forces [N] at the start of the step that ends at a time [s]."""
        velocities, positions = self.finish_frame(), self.problem.states.positions
        self._velocities_current = self._rule is not None
        states = zip(positions, velocities, strict=True)
        forces = [wind_forces(self.problem.model, x, v, time) for x, v in states]
        return forces[0] if len(forces) == 1 else np.stack(forces)

    def _pin_targets(self, pins: np.ndarray) -> list[np.ndarray]:
        """Prescribed positions [m] after each substep, on a straight line to their targets."""
        if self.schedule.substeps == 1:
            return [pins]
        p = self.problem
        current = p.states.positions[:, p.model.pinned]
        parts = np.arange(1, self.schedule.substeps) / self.schedule.substeps
        return [*(current + part * (pins - current) for part in parts), pins]

    def _run_unmonitored_steps(
        self, steps: list[tuple[float, np.ndarray | None]], forces: np.ndarray | None
    ) -> list[Report]:
        """Take steps without convergence checks.

        The residual is evaluated only for methods that need it for stability. Rejected vertex steps are
        counted at the next check.
        """
        problem, solver, limit = self.problem, self.solver, self.stop.max_iterations
        assert limit is not None
        began = self._pop_setup_start()
        with compilation() as compiled:
            start, setup, done = perf_counter() if began is None else began, 0.0, 0
            for time, prescribed in steps:
                self._begin_step(time, prescribed, forces)
                run = solver.begin(problem)
                run.set_targets(None, limit, None)
                if began is not None:
                    setup, began = perf_counter() - began - compiled.seconds, None
                done += self._sweep(run, limit)
            problem.device.wait()
        return [
            Report(
                outcome=Outcome.FIXED_ITERATIONS,
                solver=solver.name,
                iterations=done,
                relative_residual=np.nan,
                reduction=np.nan,
                residual=np.nan,
                energy=np.nan,
                seconds=perf_counter() - start - setup - compiled.seconds,
                compile_seconds=compiled.seconds if member == 0 else 0.0,
                setup_seconds=setup if member == 0 else 0.0,
                rejected=0,
                notes=run.notes(member),
            )
            for member in range(problem.batch_size)
        ]

    def _sweep(self, run: Run, iterations: int) -> int:
        """Run iterations, with residual checks and contact updates as required.

        Iterations in which prescribed motions are in progress are added.

        Returns:
            Number of iterations taken.
        """
        dynamic_terms, done = self.problem.dynamic_terms, 0
        every = run.check_every if run.needs_monitoring else iterations
        while done < iterations:
            count = dynamic_terms.clamp_to_update(min(every - done % every, iterations - done))
            iterations += count if self.problem.trust_region.in_progress else 0
            for chunk in self.problem.gases.each(count):
                run.advance(chunk)
            done += count
            exchanged = dynamic_terms.count_and_update(count)
            if run.needs_monitoring and (exchanged or done % every == 0 or done == iterations):
                run.observe_all(self.problem.diagnostics.balances(), self.problem.device.active)
        dynamic_terms.finish_step()
        return done

    def _pop_setup_start(self) -> float | None:
        """Return the set-up start time once, for the first report."""
        began, self._began = self._began, None
        return began

    def _revert_failed(self) -> None:
        """Return batch members that are infinite or NaN to the previous frame, at rest.

        This follows substeps without convergence checks.
        """
        p = self.problem
        lost = ~np.isfinite(p.states.vectors(p.u)).all(axis=(1, 2))
        if not lost.any():
            return
        self._set_velocities()
        velocities = to_float64(p.states, p.states.velocity)
        velocities[lost] = 0
        for member in np.flatnonzero(lost):
            p.device.assign(p.u, self._frame_start, int(member))
        p.trust_region.set_time(self.origin + (self.index - 1) * self.schedule.dt)
        current = p.history.get_variables()
        p.history.set_variables(
            [self._history_start[k] if is_lost else current[k] for k, is_lost in enumerate(lost)]
        )
        motions = p.history.motions()
        p.history.set_motions([{} if is_lost else motions[k] for k, is_lost in enumerate(lost)])
        p.states.set_velocities(velocities)
        self._velocities_current = True


def mark_unsolved(history: HistoryVariables, reports: list[Report], integrator: str, time: float) -> None:
    """Mark frames that continue from an unconverged step.

    Second-order rules continue from accelerations, which equal those of the forces only if the step
    converged. No later frame counts as converged until positions or another state are set.

    Args:
        history: History variables of the batch members, in which the time of the failed step is stored.
        reports: Reports of the frame, one per batch member; their outcomes and notes are changed.
        integrator: Name of the integrator.
        time: Time of the frame [s].
    """
    unsolved = history.marked_times(UNSOLVED)
    for report, since in zip(reports, unsolved, strict=True):
        if since is not None and report.outcome.ok and not report.is_far_from_balance:
            report.outcome = Outcome.UNSOLVED_BEFORE
            report.notes.append(
                f"the step at {since:.6g} s did not converge, and {integrator} uses its "
                "accelerations: restart from an earlier frame, or from positions and velocities"
            )
    lost = [not report.outcome.ok or report.is_far_from_balance for report in reports]
    new = [k for k, is_lost in enumerate(lost) if is_lost and unsolved[k] is None]
    if new:
        history.mark(UNSOLVED, new, time)


def has_passed(report: Report) -> bool:
    """True if an obstacle and a body passed through each other in a step."""
    return report.contact is not None and report.contact.has_passed


def mark_passed(history: HistoryVariables, reports: list[Report], passed: list[bool], time: float) -> None:
    """Mark frames with and after a passage of obstacles through bodies, or of bodies through obstacles.

    Whether they have since returned to their sides is unknown: no later frame counts as converged until
    positions or another state are set.

    Args:
        history: History variables of the batch members, in which the time of the passage is stored.
        reports: Reports of the frame, one per batch member, which are changed.
        passed: True for batch members with a passage in this frame.
        time: Time of the frame [s].
    """
    new = [k for k, since in enumerate(history.marked_times(PASSED)) if passed[k] and since is None]
    if new:
        history.mark(PASSED, new, time)
    for report, since in zip(reports, history.marked_times(PASSED), strict=True):
        report.passed_since = since
        if since is not None and report.outcome is Outcome.CONVERGED:
            report.outcome = Outcome.INTERSECTING
        if since is not None and since < time:
            report.notes.append(
                f"an obstacle and a body passed through each other in the frame at {since:.6g} s, "
                "and may be on the wrong sides since then: restart from an earlier frame, or from "
                "positions and velocities"
            )


def merge_reports(reports: list[Report]) -> Report:
    """Merge the reports of a frame's substeps: the last report, with summed iterations and times."""
    last = reports[-1]
    if len(reports) > 1:
        last.iterations = sum(r.iterations for r in reports)
        last.seconds = sum(r.seconds for r in reports)
        last.compile_seconds = sum(r.compile_seconds for r in reports)
        last.setup_seconds = sum(r.setup_seconds for r in reports)
        last.rejected = sum(r.rejected for r in reports)
        failed = [r.outcome for r in reports if not r.outcome.ok]
        if failed:
            last.outcome = Outcome.FAILED if Outcome.FAILED in failed else failed[0]
    return last
