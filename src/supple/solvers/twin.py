"""The same step of the same model in float64 on the CPU, for methods that need differences of energies."""

from __future__ import annotations

import numpy as np

from supple.problem import Problem


def exact_twin(problem: Problem) -> Problem:
    """The problem itself where it is in float64 on the CPU; else another one of its first copy, at the same
    u, under the same forces and with the same inertia."""
    if problem.device.name == "cpu" and problem.dtype == np.float64:
        return problem
    twin: Problem = problem.shared("float64 twin", lambda: Problem(problem.model, "float64"))
    twin.loads.copy(problem.loads)
    mirror(problem, twin)
    return twin


def mirror(problem: Problem, twin: Problem) -> None:
    """Put another problem of the same vertices where the first copy of a problem is, held at the same
    places."""
    of_problem, of_twin = problem.states, twin.states
    pairs = [(of_problem.u, of_twin.u), (of_problem.anchor, of_twin.anchor)]
    if problem.model.held is not None:
        pairs.append((of_problem.held_at, of_twin.held_at))
    for records, copied in pairs:
        copied[:-1, :3] = of_problem.vectors(records)[0]


def bring_back(twin: Problem, problem: Problem) -> None:
    """Give the problem the u of its twin, rounded."""
    if twin is not problem:
        problem.positions = twin.positions
