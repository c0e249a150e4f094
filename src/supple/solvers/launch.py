"""Iteration loop of solvers, with as many iterations as possible per kernel launch.

On a device, a launch takes as long as an iteration. Therefore one launch covers several time steps with all
their iterations. Each step begins with operations on the padded vertex vectors. A method implements a single
iteration by `iterate`.
"""

from __future__ import annotations

from supple.kernels import generic_control, kernel
from supple.problem.vertex_kernels import begin_step


@generic_control
def iterate(method, team, phase, iteration):
    """Run one iteration of a method in the thread team's phases from `phase` on; return the next phase."""


@kernel
def run_iterations(team, steps, method, count):
    """Run `count` iterations in every time step."""
    phase = 0
    for _ in range(steps.times):
        phase = begin_step(steps, team, phase)
        for iteration in range(count):
            phase = iterate(method, team, phase, iteration)
