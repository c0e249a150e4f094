"""Newton steps where obstacles are touched: an active set of vertices that are held by what pushes them.

A step is made by another problem, in which vertices that obstacles push are held along the normals, and those
that stick wholly, while friction acts on those that slide as it did before the step. Then vertices are put
out of obstacles, and who is pushed is found anew. That ends where nothing changes any more, which is in
balance. Where the residual did not fall, sweeps follow instead: they are what finds a far away active set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from supple.problem import Problem
from supple.solvers.newton_steps.moves import present
from supple.solvers.newton_steps.touching_twin import touching_twin
from supple.solvers.pbng import PBNG
from supple.words import counted

SWEEPS = 10
"""In place of a step that leads nowhere."""

Stepping = Callable[[Problem], Callable[[], None]]
"""Makes steps of a problem without obstacles."""


def step_beside_obstacles(problem: Problem, stepping: Stepping) -> bool:
    """One step of a problem with obstacles, on the CPU; False where sweeps had to make it."""
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
    """Makes one Newton step after the other."""

    def step(self) -> None: ...


class BesideObstacles:
    """The second phase of descent on a problem with obstacles. make: what makes the steps of a problem
    without any, to a tolerance."""

    def __init__(self, problem: Problem, make: Callable[[Problem, float], Stepper], tolerance: float) -> None:
        self.problem, self.tolerance, self._make = problem, tolerance, make
        self.at_saddle = False
        self._steps = self._swept = 0

    def step(self) -> None:
        done = step_beside_obstacles(self.problem, lambda twin: self._make(twin, self.tolerance).step)
        self._steps, self._swept = self._steps + 1, self._swept + (not done)

    def notes(self) -> list[str]:
        notes = [f"{counted(self._steps, 'Newton step')} beside obstacles"]
        return [*notes, f"{counted(self._swept, 'step')} made by sweeps"] if self._swept else notes
