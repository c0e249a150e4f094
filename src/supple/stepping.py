"""The one loop from frame to frame: steps of time, what acts in them, and what failures lead to."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np

from supple.integrating import RULES, Integrating, refuse_rule
from supple.kernels import compilation
from supple.magnitudes import refuse_beyond
from supple.model import Model, Step, blown, latest, with_bodies_at
from supple.pace import Pace
from supple.problem import Problem
from supple.problem.materials import changing_materials
from supple.problem.remembered import Remembered
from supple.problem.states import exactly, placed
from supple.report import Outcome, Report, lag_notes
from supple.solvers import Run, Solver
from supple.solving import Watcher, solve_copies
from supple.stop import Stop


class Stepping:
    """A problem on its way from frame to frame; index: frames that are done.

    Everything here is for all copies of the problem's state at once. What is watched, and has its history
    kept, is the first.
    """

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        stop: Stop,
        pace: Pace,
        history: bool = False,
        watch: Watcher | None = None,
        began: float | None = None,
    ) -> None:
        self.problem, self.solver, self.stop, self.pace, self.index = problem, solver, stop, pace, 0
        self._keeps_history, self._watch, self._began = history, watch, began
        self.origin = 0.0
        self._model = problem.model
        self._before = problem.zeros(problem.u.shape)
        limited = stop.tolerance is not None or stop.time_budget is not None
        looks = limited or history or watch is not None
        self._unseen = 0 if looks else pace.substeps - 1
        self._inverted = np.zeros(problem.copies, int)
        self._rule: Integrating | None = None
        if not pace.quasistatic:
            refuse_beyond(problem.model, str(problem.dtype), pace.step)
            refuse_rule(pace.integrator, problem.model, solver)
            problem.loads.set_time_step(pace.step)
            if pace.integrator in RULES:
                self._rule = Integrating(problem, RULES[pace.integrator], pace.step)
        self.begin()

    @property
    def time(self) -> float:
        """Of the last frame [s]; `origin` is that of frame 0."""
        return self.origin + self.index * self.pace.dt

    @property
    def model(self) -> Model:
        """What frames are of: one for all of them, whatever parameters vary, but where stencils, pressures or
        cables change."""
        now = self.problem.model
        self._model = latest(self._model, now)
        return with_bodies_at(self._model, self.problem.contacts.moved_by_bodies)

    def stand(self) -> None:
        """Have obstacles where they are at the time of the last frame; what is moved by bodies is put there
        with the state."""
        self.problem.contacts.stand_at(self.time)
        self.problem.room.stand_at(self.time)

    def count_inverted(self) -> None:
        """Count the inverted elements with which the motion begins: reports do not object to these."""
        self._inverted = self.problem.measures.inversions().astype(int)

    def begin(self) -> None:
        """Go on from what positions and velocities the problem has been given."""
        self._settled, self._interrupted = True, False
        self.problem.remembered.forget_motions(self.past)

    @property
    def past(self) -> str | None:
        """The name of what steps look back to beside velocities, if anything."""
        rule = None if self.pace.quasistatic else RULES.get(self.pace.integrator)
        return None if rule is None else rule.past

    def advance(self, forces: np.ndarray | None = None, pins: np.ndarray | None = None) -> list[Report]:
        """To the next frame; a report for each copy. forces (n, 3) [N] act beside the model's all the time.
        pins (k, 3) [m]: where the pinned vertices arrive, at constant velocity, instead of where the model
        has them."""
        self.refuse_interrupted()
        problem, pace = self.problem, self.pace
        self._interrupted = True
        problem.device.assign(self._before, problem.u)
        self._remembered = problem.remembered.take()
        times = [self.time + k * pace.step for k in range(1, pace.substeps)]
        times.append(
            self.origin + (self.index + 1) * pace.dt
        )  # to the bit where a motion that goes on from here begins
        aims = [None] * pace.substeps if pins is None else self._ways(pins)
        steps = list(zip(times, aims, strict=True))
        reports = []
        if self._unseen:
            reports.append(self._iterate(steps[: self._unseen], forces))
        for time, aim in steps[self._unseen :]:
            self._begin_step(time, aim, forces)
            limits = self._keeps_history, self._watch, self._take_began()
            reports.append(solve_copies(problem, self.solver, self.stop, *limits))
        self.index += 1
        self._settled = self._interrupted = False
        of_frame = [merged(list(of_copy)) for of_copy in zip(*reports, strict=True)]
        if any(report.outcome is Outcome.FAILED for report in of_frame):
            self._undo_lost()
        if self._rule is not None:
            mark_unsolved(problem.remembered, of_frame, pace.integrator, self.time)
        for copy, report in enumerate(of_frame):
            report.inverted_before = int(self._inverted[copy])
            self._inverted[copy] = min(report.inverted, report.inverted_before)
            report.notes += self._lag_notes(report)
        return of_frame

    def _lag_notes(self, report: Report) -> list[str]:
        """What to know of a step of time that ended far from balance."""
        if self.pace.quasistatic:
            return []
        helps = self.solver.takes_guess and self.pace.initial_guess != "inertial"
        return lag_notes(report, ("inertial",) if helps else ())

    def refuse_interrupted(self) -> None:
        if self._interrupted:
            raise ValueError(
                "the step before was interrupted, and nobody knows where it led; reset(), or set a state"
            )

    def settle(self) -> np.ndarray:
        """The velocities (copies, n, 3) [m/s] at the end of the frame, rounded as the problem has them: what
        is kept of a frame is then all that the next one depends on."""
        states = self.problem.states
        if not self._settled:
            self._set_velocities()
            self._settled = True
        return exactly(states, states.velocity)

    def last_steps(self) -> list[Step | None]:
        """What led to the frame, for each copy; None where nothing but the model's constant forces did."""
        p, pace = self.problem, self.pace
        force, materials = (
            (p.loads.force if p.loads.force is not p.model.force else None),
            changing_materials(p.model),
        )
        remembered, still = p.remembered.take(), force is None and materials is None
        if pace.quasistatic and still and not any(remembered) and p.model.obstacles is None:
            return [None] * p.copies
        anchors = placed(p.states, p.u if pace.quasistatic else p.states.anchor)
        forces = force if force is not None and force.ndim == 3 else [force] * p.copies
        dt = math.inf if pace.quasistatic else pace.inertia
        together = zip(anchors, forces, remembered, strict=True)
        return [Step(dt, anchor, force, materials, self.time, known) for anchor, force, known in together]

    def _set_velocities(self) -> None:
        """Those with which the last step has ended."""
        states, pace = self.problem.states, self.pace
        if pace.quasistatic:
            states.settle(self._before, pace.dt)
        elif self._rule is not None:
            states.set_velocities(self._rule.arrive(pace.damping))
        else:
            states.settle(states.last, pace.step, pace.damping)

    def _begin_step(self, time: float, aim: np.ndarray | None, forces: np.ndarray | None) -> None:
        dt = math.inf if self.pace.quasistatic else self.pace.step
        self.problem.remembered.evolve(self.pace.step)
        if self.problem.model.winds and not self.pace.quasistatic:
            forces = self._winds(time) + (0.0 if forces is None else forces)
        if self._rule is not None:
            self.settle()
            self._rule.look_back(time, forces)
            self._settled = False
        guess = self.pace.initial_guess if self.solver.takes_guess else "coast"
        first = "coast" if self._rule is not None else guess
        self.problem.begin_step(time, dt, self.pace.damping, forces, aim, first)
        if self._rule is not None:
            self._rule.pull(guess, time)

    def _winds(self, time: float) -> np.ndarray:
        """(n, 3) or (copies, n, 3) [N] what winds do where the step that ends at a time [s] begins."""
        velocities, positions = self.settle(), self.problem.states.positions
        self._settled = self._rule is not None
        states = zip(positions, velocities, strict=True)
        forces = [blown(self.problem.model, x, v, time) for x, v in states]
        return forces[0] if len(forces) == 1 else np.stack(forces)

    def _ways(self, pins: np.ndarray) -> list[np.ndarray]:
        """Where pinned vertices are after each substep on a straight way to positions [m]."""
        if self.pace.substeps == 1:
            return [pins]
        p = self.problem
        held = p.states.positions[:, p.model.pinned]
        parts = np.arange(1, self.pace.substeps) / self.pace.substeps
        return [*(held + part * (pins - held) for part in parts), pins]

    def _iterate(
        self, steps: list[tuple[float, np.ndarray | None]], forces: np.ndarray | None
    ) -> list[Report]:
        """Steps that nobody looks at: the residual is evaluated only for methods that need it to stay stable.
        What was rejected is counted when somebody looks."""
        problem, solver, limit = self.problem, self.solver, self.stop.max_iterations
        assert limit is not None
        began = self._take_began()
        with compilation() as compiled:
            start, setup, done = perf_counter() if began is None else began, 0.0, 0
            for time, aim in steps:
                self._begin_step(time, aim, forces)
                run = solver.begin(problem)
                run.aim(None, limit, None)
                if began is not None:
                    setup, began = perf_counter() - began - compiled.seconds, None
                done += self._sweep(run, limit)
            problem.device.wait()
        return [
            Report(
                outcome=Outcome.COMPLETED,
                solver=solver.name,
                iterations=done,
                imbalance=np.nan,
                reduction=np.nan,
                residual=np.nan,
                energy=np.nan,
                seconds=perf_counter() - start - setup - compiled.seconds,
                compile_seconds=compiled.seconds if copy == 0 else 0.0,
                setup_seconds=setup if copy == 0 else 0.0,
                rejected=0,
                notes=run.notes(copy),
            )
            for copy in range(problem.copies)
        ]

    def _sweep(self, run: Run, iterations: int) -> int:
        """So many iterations, with looks that the method and stencils need, and those in which pins are on
        their way; returns how many there were."""
        following, done = self.problem.following, 0
        every = run.check_every if run.guarded else iterations
        while done < iterations:
            count = following.until_look(min(every - done % every, iterations - done))
            iterations += count if self.problem.room.leading else 0
            for some in self.problem.gases.each(count):
                run.advance(some)
            done += count
            exchanged = following.iterated(count)
            if run.guarded and (exchanged or done % every == 0 or done == iterations):
                run.observe_all(self.problem.measures.balances(), self.problem.device.active)
        following.settle()
        return done

    def _take_began(self) -> float | None:
        """When the set-up began, for the first report."""
        began, self._began = self._began, None
        return began

    def _undo_lost(self) -> None:
        """Copies that are not finite, after substeps that nobody has looked at, go back to the frame before
        and stop there."""
        p = self.problem
        lost = ~np.isfinite(p.states.vectors(p.u)).all(axis=(1, 2))
        if not lost.any():
            return
        self._set_velocities()
        velocities = exactly(p.states, p.states.velocity)
        velocities[lost] = 0
        for copy in np.flatnonzero(lost):
            p.device.assign(p.u, self._before, int(copy))
        p.room.stand_at(self.origin + (self.index - 1) * self.pace.dt)
        now = p.remembered.take()
        p.remembered.put([self._remembered[k] if gone else now[k] for k, gone in enumerate(lost)])
        motions = p.remembered.motions()
        p.remembered.move_on([{} if gone else motions[k] for k, gone in enumerate(lost)])
        p.states.set_velocities(velocities)
        self._settled = True


def mark_unsolved(remembered: Remembered, reports: list[Report], integrator: str, time: float) -> None:
    """Rules of second order go on from accelerations that are those of the forces only where the step was
    solved: nothing has converged after one that was not, until positions or another state are set.

    Args:
        remembered: What the copies' steps look back to, where it is kept that one was not solved.
        reports: Of the frame, one for each copy; outcomes are changed, and notes added.
        integrator: The rule.
        time: Of the frame [s].
    """
    unsolved = remembered.unsolved()
    for report, since in zip(reports, unsolved, strict=True):
        if since is not None and report.outcome.ok and not report.far:
            report.outcome = Outcome.UNSOLVED_BEFORE
            report.notes.append(
                f"the step at {since:.6g} s was not solved, and {integrator} goes on from its accelerations: "
                "start again from a frame before it, or from positions and velocities"
            )
    lost = [not report.outcome.ok or report.far for report in reports]
    new = [k for k, gone in enumerate(lost) if gone and unsolved[k] is None]
    if new:
        remembered.leave_unsolved(new, time)


def merged(reports: list[Report]) -> Report:
    """One report for a frame of several substeps: the last, with what adds up added up."""
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
