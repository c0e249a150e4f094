"""States that were swept together and did not arrive go on one by one, as single solves do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.problem import Problem
from supple.report import History, Outcome, Report
from supple.solvers.newton_steps.twin import bring_back, exact_twin

Ended = dict[int, tuple[Outcome, int, float]]
"""How the solve of each copy has ended, after how many iterations and seconds."""

UNFINISHED = {Outcome.STAGNATED, Outcome.BUDGET_ITERATIONS, Outcome.FAILED}


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
