"""Loads and motions that grow in steps: where the path decides which equilibrium is found, and where all of
them at once would turn elements inside out that resist it with infinite energy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from supple.problem import Problem
from supple.report import Report
from supple.solvers import Solver
from supple.solving import Watcher, solve
from supple.stop import Stop
from supple.words import counted

LEAST = Fraction(1, 1024)
"""The smallest step that is tried."""


def grow(
    problem: Problem, solver: Solver, stop: Stop, steps: int, watch: Watcher | None = None
) -> Iterator[tuple[float, Report]]:
    """Solve at 1/steps, 2/steps, … of all loads and motions, from where the last one has led, and set up the
    whole, which is left to the caller. Steps at whose start forces are infinite are halved as often as it
    takes, unless the solver knows what to do there. A time budget is for all of them."""
    reached, longest = Fraction(0), Fraction(1, steps)
    stride, last, left = longest, problem.state, stop.time_budget
    while True:
        aim = min(reached + stride, Fraction(1))
        act_in_part(problem, float(aim))
        if not solver.recovers and not problem.balance().finite:
            problem.state, stride = last, stride / 2
            if stride >= LEAST:
                continue
            act_in_part(problem, 1)
            return
        if aim == 1:
            return
        report = solve(problem, solver, replace(stop, time_budget=left), watch=watch)
        yield float(aim), report
        left = None if left is None else max(left - report.seconds, 1e-3)
        reached, last, stride = aim, problem.state, min(2 * stride, longest)


def act_in_part(problem: Problem, fraction: float) -> None:
    """Let motions and ramps be at a fraction of the time that they take, and let that fraction of the
    constant loads act; 1 is the end of everything."""
    if fraction == 1:
        problem.begin_step(np.inf)
        return
    model = problem.model
    time = fraction * model.duration
    problem.begin_step(time)
    problem.loads.set(model.force_at(time) - (1 - fraction) * model.force)


def in_all(last: Report, before: list[Report], steps: int) -> Report:
    """The report of the last step with the iterations and seconds of all."""
    if not before:
        return last
    every = [*before, last]
    forced = len(every) > steps
    why = ": longer ones would turn elements inside out at once" if forced else ""
    return replace(
        last,
        iterations=sum(report.iterations for report in every),
        seconds=sum(report.seconds for report in every),
        compile_seconds=sum(report.compile_seconds for report in every),
        notes=[*last.notes, f"loads and motions grew in {counted(len(every), 'step')}{why}"],
    )
