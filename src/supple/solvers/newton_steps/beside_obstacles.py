"""Newton steps where obstacles are touched: an active set of vertices that are held by what pushes them.

A step is made by another problem, in which vertices that obstacles push are held along the normals, and those
that stick wholly, while friction acts on those that slide as it did before the step. Then vertices are put
out of obstacles, and who is pushed is found anew. That ends where nothing changes any more, which is in
balance. Where the residual did not fall, sweeps follow instead: they are what finds a far away active set.
Descent sweeps twice as long after every further step in a row that is rejected, so that the linear systems of
rejected steps never cost much more than the sweeps between them.
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
        self._rejected = self._pause = 0
        self._sweeping: Run | None = None

    def step(self) -> None:
        """A Newton step, or sweeps after rejected ones: those of 0, 2, 4, 8 ... further steps."""
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
        """Show the residual to the sweeps between Newton steps; True where they start over from elsewhere."""
        return self._sweeping is not None and self._sweeping.observe(balance)

    def notes(self) -> list[str]:
        notes = [f"{counted(self._steps, 'Newton step')} beside obstacles"]
        return [*notes, f"{counted(self._swept, 'step')} made by sweeps"] if self._swept else notes
