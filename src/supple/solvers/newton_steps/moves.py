"""Moves of a problem's u, where kernels see it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.problem import Problem
from supple.problem.records import Follow


def present(problem: Problem) -> np.ndarray:
    """A copy of u, where kernels see it."""
    copy = problem.zeros(problem.u.shape)
    problem.device.assign(copy, problem.u)
    return copy


def line(problem: Problem, d: np.ndarray) -> Callable[[float], None]:
    """The straight path from the problem's u along records d (n + 1, 4) [m]."""
    start, nothing = present(problem), problem.zeros(problem.u.shape)

    def go(t: float) -> None:
        problem.device.on_records(Follow(problem.u, start, d, float(t), nothing))
        problem.following.keep_apart(start)

    return go
