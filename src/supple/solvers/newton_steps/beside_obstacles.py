"""Active-set Newton steps for problems in contact with obstacles.

Each step solves a second problem without obstacles. There, vertices in contact are constrained along the
contact normals, sticking vertices are fully constrained, and friction on sliding vertices keeps its value
from the start of the step. Then vertices are projected out of the obstacles and the active set is detected
again. An unchanged active set means equilibrium. If the residual did not decrease, sweeps replace the step:
they find an active set that is far away. After every further rejected step in a row, `Descent` runs twice as
many sweeps, so that the linear systems of rejected steps never cost much more than the sweeps between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from supple.problem import Balance, Problem
from supple.solvers.newton_steps.moves import present
from supple.solvers.newton_steps.touching_twin import touching_twin
from supple.solvers.pbng import PBNG
from supple.solvers.solver import Run
from supple.words import counted

SWEEPS = 10
"""Sweeps that replace a rejected step."""

Stepping = Callable[[Problem], Callable[[], None]]
"""Returns a step function for a problem without obstacles."""


def step_beside_obstacles(problem: Problem, stepping: Stepping) -> bool:
    """Make one active-set step on the CPU; return False if it was rejected and replaced by sweeps."""
    before, start = problem.balance().residual, present(problem)
    twin = touching_twin(problem)
    stepping(twin)()
    states = problem.states
    states.vectors(states.u)[0] = twin.states.vectors(twin.u)[0]
    if problem.room:
        problem.following.keep_apart(start)
        problem.following.make_room()
    problem.device.on_records(*problem.contacts.clamp())
    problem.contacts.detect()
    problem.room.put_back()
    if problem.balance().residual < before:
        return True
    problem.device.assign(problem.u, start)
    problem.contacts.detect()
    problem.room.put_back()
    PBNG().begin(problem).advance(SWEEPS)
    return False


class Stepper(Protocol):
    """Newton iteration, advanced step by step."""

    def step(self) -> None: ...


class BesideObstacles:
    """Second phase of `Descent` on a problem with obstacles.

    Args:
        problem: Problem with obstacles.
        make: Returns a stepper for a problem without obstacles and a tolerance.
        tolerance: Imbalance to reach.
    """

    def __init__(self, problem: Problem, make: Callable[[Problem, float], Stepper], tolerance: float) -> None:
        self.problem, self.tolerance, self._make = problem, tolerance, make
        self.at_saddle = False
        self._steps = self._swept = 0
        self._rejected = self._pause = 0
        self._sweeping: Run | None = None

    def step(self) -> None:
        """Make a Newton step, or sweeps: after rejections, the next 0, 2, 4, 8 ... steps are sweeps."""
        self._steps += 1
        if self._pause:
            self._sweep()
            return
        self._sweeping = None
        if step_beside_obstacles(self.problem, lambda twin: self._make(twin, self.tolerance).step):
            self._rejected = 0
            return
        self._swept += 1
        self._rejected += 1
        self._pause = 2 ** (self._rejected - 1) if self._rejected > 1 else 0

    def _sweep(self) -> None:
        if self._sweeping is None:
            self._sweeping = PBNG().begin(self.problem)
        self._sweeping.advance(SWEEPS)
        self._pause -= 1
        self._swept += 1

    def observe(self, balance: Balance) -> bool:
        """Pass the residual to the sweeps between Newton steps; True if they restarted from another u."""
        return self._sweeping is not None and self._sweeping.observe(balance)

    def notes(self) -> list[str]:
        notes = [f"{counted(self._steps, 'Newton step')} beside obstacles"]
        return [*notes, f"{counted(self._swept, 'step')} made by sweeps"] if self._swept else notes
