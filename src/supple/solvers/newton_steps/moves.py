"""Moves of a problem's u in device memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.problem import Problem
from supple.problem.records import Follow


def present(problem: Problem) -> np.ndarray:
    """Return a copy of u in device memory."""
    copy = problem.zeros(problem.u.shape)
    problem.device.assign(copy, problem.u)
    return copy


def line(problem: Problem, d: np.ndarray) -> Callable[[float], None]:
    """Return the straight path from the problem's u along padded vectors d (n + 1, 4) [m]."""
    start, nothing = present(problem), problem.zeros(problem.u.shape)

    def go(t: float) -> None:
        problem.device.on_records(Follow(problem.u, start, d, float(t), nothing))
        problem.following.keep_apart(start)

    return go
