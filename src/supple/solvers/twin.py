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
    for array, of_twin in ((problem.u, twin.u), (problem.states.anchor, twin.states.anchor)):
        of_twin[:-1, :3] = problem.states.vectors(array)[0]
    return twin


def bring_back(twin: Problem, problem: Problem) -> None:
    """Give the problem the u of its twin, rounded."""
    if twin is not problem:
        problem.positions = twin.positions
