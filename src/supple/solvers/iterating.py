"""Iterations of a method, as many as one launch can do.

On a device a launch takes as long as an iteration. So one does several steps of time, each of which begins
with what is done to records of vertices, and all iterations in each. A method says what one of them is.
"""

from __future__ import annotations

from supple.kernels import generic_passage, kernel
from supple.problem.records import begin_step


@generic_passage
def iterate(method, team, phase, iteration):
    """One iteration of a method, with the team's phases from `phase` on; returns the phase that follows."""


@kernel
def iterations(team, steps, method, count):
    """That many iterations in every step."""
    phase = 0
    for _ in range(steps.times):
        phase = begin_step(steps, team, phase)
        for iteration in range(count):
            phase = iterate(method, team, phase, iteration)
