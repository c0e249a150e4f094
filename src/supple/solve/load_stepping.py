"""Incremental loads and motions with step cutback.

The load path selects among several equilibria. Full loads in one step could also invert elements, or fail to
converge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from supple.config.stop_criteria import StopCriteria
from supple.model.model import Conditions, Model
from supple.model.state import State
from supple.problem import Problem
from supple.solve.batch_solve import Callback, solve
from supple.solve.report import FAR_RELATIVE_RESIDUAL, Outcome, Report
from supple.solvers import Solver
from supple.support.text import pluralize

MIN_STEP = Fraction(1, 1024)
"""Smallest step as a fraction of the path, if forces are infinite at the start of longer steps."""

MIN_CUTBACK = Fraction(1, 64)
"""Smallest step after solves that did not converge, relative to the requested step."""

MIN_INTERSECTION_CUTBACK = Fraction(1, 4)
"""Smallest step after solves whose surfaces passed each other, relative to the requested step. Surfaces that
pass in such steps, too, yield to the forces rather than jump."""

MIN_SECONDS = 1e-3
"""Time limit of a solve if previous solves have spent the whole budget [s]."""


class LoadStepping:
    """Sequence of solves under increasing loads and motions, with step cutback.

    - Infinite forces at the start of a step: the step is halved, unless the solver recovers from such a
      start.
    - A solve fails, stagnates or reaches the rounding limit far from balance: the step is halved and repeated
      from the last converged step, down to `MIN_CUTBACK`.
    - Surfaces passed each other: likewise, down to `MIN_INTERSECTION_CUTBACK`.
    - The shortest step fails, too: the first failed solve is the result.
    - Limits apply to each solve, but the time limit to all together: the remaining time is allotted in
      proportion to step lengths.

    Args:
        problem: Problem.
        solver, stop: As for `solve`.
        steps: Number of steps.
        callback: Called after each measurement of the relative residual.
        record_history: Keep the residual history of the last step.
        began: Start of the set-up [s], for the first report.
        apply: Function that sets up the problem at a fraction of loads and motions; `apply_fraction` by
            default.
    """

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        stop: StopCriteria,
        steps: int,
        callback: Callback | None = None,
        record_history: bool = False,
        began: float | None = None,
        apply: Callable[[Problem, float], None] | None = None,
    ) -> None:
        self._apply = apply or apply_fraction
        self._problem, self._solver, self._stop, self._steps = problem, solver, stop, steps
        self._callback, self._record_history, self._began = callback, record_history, began
        self._reached, self._stride = Fraction(0), Fraction(1, steps)
        self._longest, self._intersects, self._has_cut = self._stride, False, False
        self._state, self._remaining = problem.state, stop.time_limit
        self._failed: tuple[Fraction, Report, State] | None = None
        self._allows_cutback, self._inverted = True, False
        self._solves: list[Report] = []
        self._accepted, self._notes = 0, list[str]()

    def run(self) -> Iterator[tuple[float, Report]]:
        """Solve all steps.

        Yields:
            The fraction of loads and motions, and the report, of each accepted step. The last fraction is 1;
            its report has the iterations and seconds of all solves.
        """
        while self._reached < 1:
            target = self._begin()
            report = self._solve(target)
            if self._cut_back(target, report):
                continue
            if self._failed is not None and not report.outcome.ok:
                target, report = self._give_up(self._failed)
            self._accept(target, report)
            yield float(target), self._summary(report) if target == 1 else report

    def _begin(self) -> Fraction:
        """Set up the next step, halved until its forces are finite, and return its end."""
        while True:
            target = min(self._reached + self._stride, Fraction(1))
            if self._reached > 0:
                self._problem.history.flow()
            self._apply(self._problem, float(target))
            if self._solver.recovers_from_inversion or self._problem.balance().finite:
                return target
            self._restore_accepted()
            self._stride /= 2
            self._inverted = True
            if self._stride < MIN_STEP:
                self._allows_cutback = False
                self._apply(self._problem, 1)
                return Fraction(1)

    def _staged_callback(self, target: Fraction) -> Callback | None:
        """Callback whose argument names the load step, unless it is the last one."""
        callback = self._callback
        if callback is None or target == 1:
            return callback
        stage = f"load step to {float(target):.0%}"
        return lambda info: callback(replace(info, stage=stage))

    def _solve(self, target: Fraction) -> Report:
        """Solve one step within its share of the remaining time limit."""
        share = self._remaining
        if share is not None:
            share *= float((target - self._reached) / (1 - self._reached))
        stop = replace(self._stop, time_limit=share)
        record_history, began = self._record_history and target == 1, self._began
        report = solve(
            self._problem, self._solver, stop, record_history, self._staged_callback(target), began
        )
        self._began = None
        self._solves.append(report)
        if self._remaining is not None:
            self._remaining = max(self._remaining - report.seconds, MIN_SECONDS)
        return report

    def _cut_back(self, target: Fraction, report: Report) -> bool:
        """Halve a step whose solve failed; False if it converged or no shorter step is allowed."""
        if not self._allows_cutback or self._intersects or not calls_for_shorter_steps(report):
            return False
        if self._apply is apply_fraction and not _has_load_path(self._problem.model):
            return False
        if self._failed is None:
            self._failed = target, report, self._problem.state
        in_time = self._remaining is None or self._remaining > MIN_SECONDS
        passed = report.outcome is Outcome.INTERSECTING
        smallest = (MIN_INTERSECTION_CUTBACK if passed else MIN_CUTBACK) / self._steps
        if self._stride / 2 < smallest or not in_time:
            return False
        self._restore_accepted()
        self._stride /= 2
        self._longest, self._has_cut = self._stride, True
        return True

    def _restore_accepted(self) -> None:
        """Return to the last accepted step, with obstacles and pins at its time."""
        time = float(self._reached) * self._problem.model.duration
        self._problem.contacts.set_time(time)
        self._problem.trust_region.set_time(time)
        self._problem.state = self._state

    def _give_up(self, failed: tuple[Fraction, Report, State]) -> tuple[Fraction, Report]:
        """Return to the first failed solve, and disable further cutback."""
        target, report, state = failed
        shortest = pluralize(int(1 / self._stride), "step")
        self._notes.append(
            f"loads and motions were applied in up to {shortest}, which did not converge beyond "
            f"{float(self._reached):.0%} of them"
        )
        self._failed, self._allows_cutback = None, False
        self._stride = self._longest = Fraction(1, self._steps)
        self._apply(self._problem, float(target))
        self._problem.state = state
        return target, report

    def _accept(self, target: Fraction, report: Report) -> None:
        """Accept a step; double the step length up to the longest allowed one."""
        if self._failed is not None and target >= self._failed[0]:
            self._failed = None
        self._reached, self._stride = target, min(2 * self._stride, self._longest)
        self._intersects = report.outcome is Outcome.INTERSECTING
        self._accepted += 1
        if target < 1:
            self._state = self._problem.state

    def _summary(self, last: Report) -> Report:
        """Last step's report with summed iterations and seconds of all solves."""
        solves = self._solves
        if len(solves) == 1:
            return last
        notes = [*last.notes, *self._notes]
        if self._accepted > 1:
            why = ""
            if self._accepted > self._steps:
                reason = "did not converge" if self._has_cut else "would invert elements immediately"
                why = f": longer steps {reason}"
            notes.append(f"loads and motions were applied in {pluralize(self._accepted, 'step')}{why}")
        return replace(
            last,
            iterations=sum(report.iterations for report in solves),
            seconds=sum(report.seconds for report in solves),
            compile_seconds=sum(report.compile_seconds for report in solves),
            setup_seconds=sum(report.setup_seconds for report in solves),
            notes=notes,
        )


def calls_for_shorter_steps(report: Report) -> bool:
    """True for solves that may converge if loads and motions grow in shorter steps."""
    far = report.relative_residual > FAR_RELATIVE_RESIDUAL
    return report.outcome in (Outcome.STAGNATED, Outcome.FAILED, Outcome.INTERSECTING) or (
        report.outcome is Outcome.ROUNDING_LIMIT and far
    )


def solve_along(
    path: Callable[[float], Conditions],
    c: Conditions,
    problem: Problem,
    solver: Solver,
    stop: StopCriteria,
    failed: Report,
) -> Report | None:
    """Repeat a failed solve stepwise along a path to its conditions.

    Args:
        path: Conditions at a fraction of all loads and motions.
        c: Target conditions, with the start.
        problem: Compatible problem; its state is the result, unless the steps fail.
        solver, stop: As for `LoadStepping`.
        failed: Report of the failed solve.

    Returns:
        The report with the iterations and seconds of all solves; None if shorter steps did not converge
        either.
    """

    def apply(problem: Problem, fraction: float) -> None:
        conditions = c if fraction == 1 else path(fraction)
        problem.set_conditions([replace(conditions, initial=problem.positions)])

    if stop.time_limit is not None:
        stop = replace(stop, time_limit=max(stop.time_limit - failed.seconds, MIN_SECONDS))
    problem.set_conditions([c])
    if c.initial is None:
        problem.positions = problem.model.rest
    *before, (_, last) = LoadStepping(problem, solver, stop, 2, apply=apply).run()
    if not last.ok:
        return None
    steps = pluralize(len(before) + 1, "step")
    return replace(
        last,
        iterations=last.iterations + failed.iterations,
        seconds=last.seconds + failed.seconds,
        notes=[*last.notes[:-1], f"loads and motions were applied in {steps}: longer steps did not converge"],
    )


def apply_fraction(problem: Problem, fraction: float) -> None:
    """Set motions, ramps and constant loads to a fraction of the path.

    Motions and ramps are taken at this fraction of their duration, and constant loads are scaled by it. At
    fraction 1, everything is taken at its end.
    """
    if fraction == 1:
        problem.begin_step(np.inf)
        return
    model = problem.model
    time = fraction * model.duration
    problem.begin_step(time)
    problem.loads.set(model.force_at(time) - (1 - fraction) * model.force)


def _has_load_path(model: Model) -> bool:
    """True if loads or motions vary along the continuation path."""
    updated = any(model.terms[index].family != "contact" for index, _ in model.dynamic_terms)
    obstacles = model.obstacles
    moves = not np.array_equal(model.prescribed(0.0), model.prescribed(np.inf)) or (
        obstacles is not None and not np.array_equal(obstacles.poses(0.0), obstacles.poses(np.inf))
    )
    return bool(model.varying or model.changing or updated or moves or np.any(model.force))
