"""States that were swept together and did not arrive go on one by one, as single solves do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.problem import Problem
from supple.report import Outcome, Report
from supple.solvers.twin import bring_back, exact_twin

Ended = dict[int, tuple[Outcome, int, float]]
"""How the solve of each copy has ended, after how many iterations and seconds."""

UNFINISHED = {Outcome.STAGNATED, Outcome.BUDGET_ITERATIONS, Outcome.FAILED}


def finish_alone(problem: Problem, ended: Ended, solve: Callable[[Problem], Report]) -> dict[int, Report]:
    """Solve every copy that has not arrived by itself, in float64 from where it is, and say in `ended` how
    that went; the reports of those solves."""
    alone = {}
    for copy, (outcome, iterations, seconds) in ended.items():
        if outcome in UNFINISHED:
            twin = exact_twin(problem, copy)
            alone[copy] = report = solve(twin)
            bring_back(twin, problem, copy)
            ended[copy] = report.outcome, iterations + report.iterations, seconds + report.seconds
    return alone


def rounded(problem: Problem, outcome: Outcome, imbalance: float, tolerance: float | None) -> Outcome:
    """How a solve in float64 has ended once its state is in the problem's precision."""
    lost = problem.dtype == np.float32 and tolerance is not None and imbalance > tolerance
    return Outcome.PRECISION if lost and outcome is Outcome.CONVERGED else outcome
