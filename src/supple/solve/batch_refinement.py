"""Newton refinement of unconverged batch members: several at once, then one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np

from supple.config.stop_criteria import StopCriteria
from supple.kernels import compilation
from supple.problem import Problem
from supple.solve.error_control import ErrorControl
from supple.solve.report import History, IterationInfo, Outcome, Report
from supple.solvers import Run
from supple.solvers.newton_methods.block_diagonal import block_capacity
from supple.solvers.newton_methods.float64_problem import to_float64, write_back
from supple.support.text import pluralize

MemberOutcomes = dict[int, tuple[Outcome, int, float]]
"""Outcome, iterations and seconds of each batch member."""

REFINED_OUTCOMES = {Outcome.STAGNATED, Outcome.MAX_ITERATIONS, Outcome.FAILED}


def refine_batched(
    problem: Problem,
    run: Run,
    ended: MemberOutcomes,
    stop: StopCriteria,
    error_control: ErrorControl,
    monitored: bool,
) -> dict[int, str]:
    """Refine unconverged batch members by batched Newton steps, if there are several.

    Args:
        problem: Problem that was solved.
        run: Method that was run; it provides the Newton solver, if any.
        ended: Outcomes so far; those of converged members are updated.
        stop: Termination criteria.
        error_control: Error estimates.
        monitored: True to skip the first batch member, because it is monitored.

    Returns:
        Note on each converged batch member.
    """
    members = [c for c, how in ended.items() if how[0] in REFINED_OUTCOMES and how[0] is not Outcome.FAILED]
    members = [member for member in members if member or not monitored]
    group_size, notes, efforts = block_capacity(problem), {}, {}
    for first in range(0, len(members), group_size) if len(members) > 1 else ():
        group = members[first : first + group_size]
        with compilation() as compiled:
            began = perf_counter()
            newton = run.start_batched_newton(group, stop.position_tolerance)
            if newton is None:
                return {}
            newton.run()
            seconds_each = (perf_counter() - began - compiled.seconds) / len(group)
        for member in newton.converged:
            efforts[member] = ended[member][1] + newton.steps, ended[member][2] + seconds_each
            notes[member] = f"then {pluralize(newton.steps, 'Newton step')} with others"
    balances = problem.diagnostics.balances()
    accurate_members = error_control.accurate_members({member: balances[member] for member in efforts})
    for member in accurate_members:
        outcome = round_outcome(
            problem, Outcome.CONVERGED, balances[member].relative_residual, stop.tolerance
        )
        ended[member] = outcome, *efforts[member]
    return {member: notes[member] for member in accurate_members}


def refine_sequential(
    problem: Problem,
    ended: MemberOutcomes,
    solve: Callable[..., Report],
    callback: Callable[[IterationInfo], None] | None,
    history: History | None,
) -> dict[int, Report]:
    """Solve every unconverged batch member alone, in float64 from its present state.

    Args:
        problem: Problem that was solved.
        ended: Outcomes so far, updated.
        solve: Function that solves a problem with batch size 1.
        callback: Callback for the first batch member, continued.
        history: Residual history of the first batch member, continued.

    Returns:
        Reports of these solves.
    """
    reports = {}
    for member, (outcome, iterations, seconds) in ended.items():
        if outcome in REFINED_OUTCOMES:
            float64_problem = to_float64(problem, member)
            callbacks = {
                "callback": _offset_callback(callback, iterations, seconds),
                "record_history": history is not None,
            }
            reports[member] = report = solve(float64_problem, **callbacks if member == 0 else {})
            write_back(float64_problem, problem, member)
            ended[member] = report.outcome, iterations + report.iterations, seconds + report.seconds
            if history is not None and report.history is not None:
                history.append(report.history)
    return reports


def _offset_callback(
    callback: Callable[[IterationInfo], None] | None, iterations: int, seconds: float
) -> Callable[[IterationInfo], None] | None:
    """Offset the counts that a callback receives by iterations and seconds already spent."""
    if callback is None:
        return None
    return lambda info: callback(
        replace(
            info,
            iteration=iterations + info.iteration,
            seconds=seconds + info.seconds,
            stage="refinement",
        )
    )


def round_outcome(
    problem: Problem, outcome: Outcome, relative_residual: float, tolerance: float | None
) -> Outcome:
    """Outcome of a float64 solve after rounding to the problem's precision."""
    lost = problem.dtype == np.float32 and tolerance is not None and relative_residual > tolerance
    return Outcome.ROUNDING_LIMIT if lost and outcome is Outcome.CONVERGED else outcome
