"""States that were swept together and did not arrive go on by Newton steps: several at once, and then one by
one, as single solves do."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from supple.certifying import Certifying
from supple.kernels import compilation
from supple.problem import Problem
from supple.report import History, Outcome, Report
from supple.solvers import Run
from supple.solvers.newton_steps.gathered import room_for
from supple.solvers.newton_steps.twin import bring_back, exact_twin
from supple.stop import Stop
from supple.words import counted

Ended = dict[int, tuple[Outcome, int, float]]
"""How the solve of each copy has ended, after how many iterations and seconds."""

UNFINISHED = {Outcome.STAGNATED, Outcome.BUDGET_ITERATIONS, Outcome.FAILED}


def finish_together(
    problem: Problem, run: Run, ended: Ended, stop: Stop, certifying: Certifying, followed: bool
) -> dict[int, str]:
    """Newton steps, at once, of copies that have not arrived, if there are several and the method makes such;
    followed: but for the first. Says in `ended` how those went that then have, and what to say of each."""
    copies = [c for c, how in ended.items() if how[0] in UNFINISHED and how[0] is not Outcome.FAILED]
    copies = [copy for copy in copies if copy or not followed]
    room, notes, ways = room_for(problem), {}, {}
    for first in range(0, len(copies), room) if len(copies) > 1 else ():
        group = copies[first : first + room]
        with compilation() as compiled:
            began = perf_counter()
            newton = run.newton_together(group, stop.distance)
            if newton is None:
                return {}
            newton.run()
            each = (perf_counter() - began - compiled.seconds) / len(group)
        for copy in newton.arrived:
            ways[copy] = ended[copy][1] + newton.steps, ended[copy][2] + each
            notes[copy] = f"then {counted(newton.steps, 'Newton step')} with others"
    balances = problem.measures.balances()
    near = certifying.near({copy: balances[copy] for copy in ways})
    for copy in near:
        outcome = rounded(problem, Outcome.CONVERGED, balances[copy].imbalance, stop.tolerance)
        ended[copy] = outcome, *ways[copy]
    return {copy: notes[copy] for copy in near}


def finish_alone(
    problem: Problem,
    ended: Ended,
    solve: Callable[..., Report],
    watch: Callable[[int, float, float], None] | None,
    history: History | None,
) -> dict[int, Report]:
    """Solve every copy that has not arrived by itself, in float64 from where it is, and say in `ended` how
    that went; the reports of those solves. Who watches the first, and its history, go on with it."""
    alone = {}
    for copy, (outcome, iterations, seconds) in ended.items():
        if outcome in UNFINISHED:
            twin = exact_twin(problem, copy)
            followed = {"watch": _later(watch, iterations, seconds), "history": history is not None}
            alone[copy] = report = solve(twin, **followed if copy == 0 else {})
            bring_back(twin, problem, copy)
            ended[copy] = report.outcome, iterations + report.iterations, seconds + report.seconds
            if history is not None and report.history is not None:
                history.go_on(report.history)
    return alone


def _later(
    watch: Callable[[int, float, float], None] | None, iterations: int, seconds: float
) -> Callable[[int, float, float], None] | None:
    """Who watches a solve that began after so many iterations and seconds."""
    if watch is None:
        return None
    return lambda iteration, imbalance, clock: watch(iterations + iteration, imbalance, seconds + clock)


def rounded(problem: Problem, outcome: Outcome, imbalance: float, tolerance: float | None) -> Outcome:
    """How a solve in float64 has ended once its state is in the problem's precision."""
    lost = problem.dtype == np.float32 and tolerance is not None and imbalance > tolerance
    return Outcome.PRECISION if lost and outcome is Outcome.CONVERGED else outcome
