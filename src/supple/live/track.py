"""One solver at work on a live scene."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.compute import Compute
from supple.model import Model, Step, coasted, with_bodies_at
from supple.pace import total_damping
from supple.problem import Balance
from supple.problem.materials import changing_materials
from supple.solvers import Run, Solver
from supple.solving import make_problem

LARGE = 500_000
"""Elements of which a sweep takes longer than a picture, some 20 ms on two cores."""

REMEMBERED = 600
"""Updates that the residual plot shows."""


class DivergedError(ArithmeticError):
    """A solver did not keep a body together. The text is a sentence for the user."""


class Track:
    """A solver, the problem it works on, and how far it has come: positions (n, 3) [m], velocities (n, 3)
    [m/s], the last balance of forces, and a history of update numbers with the imbalance after them."""

    def __init__(
        self, solver: Solver, start: np.ndarray, velocities: np.ndarray, bodies: np.ndarray | None = None
    ) -> None:
        self.solver = solver
        self.begin_at(start, velocities, bodies)

    def begin_at(self, start: np.ndarray, velocities: np.ndarray, bodies: np.ndarray | None = None) -> None:
        """Forget everything and start from these positions (n, 3) [m] with velocities (n, 3) [m/s]. bodies
        (k, 18): where rigid ones are and how they move; None: as the scene has them first."""
        self.positions, self.velocities = start.copy(), velocities.copy()
        self.iterations = 0
        self.balance: Balance | None = None
        self.history: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)
        self._run: Run | None = None
        self._step: tuple[float, np.ndarray] | None = None
        self._time = 0.0
        self.bodies = bodies

    def go_back_to(self, positions: np.ndarray, bodies: np.ndarray | None, updates: int) -> None:
        """Forget what came after so many updates, and go on from positions (n, 3) [m], at rest, and with
        rigid bodies where they were."""
        self.positions, self.velocities, self.bodies = positions, np.zeros_like(positions), bodies
        self._problem.remembered.put([{}])
        self.history = deque([entry for entry in self.history if entry[0] <= updates], maxlen=REMEMBERED)

    def work_on(self, model: Model, compute: Compute) -> None:
        """Go on with another model of the same vertices, which a solver may refuse with a ValueError."""
        self._problem = make_problem(model, True, compute.suited_to(self.solver))
        self._problem.positions = self.positions
        if self.bodies is not None:
            self._problem.contacts.moved_by_bodies = self.bodies
        self.solver.begin(self._problem)
        self._run = self._step = self.balance = None

    def model_of(self, model: Model) -> Model:
        """The model with rigid bodies where this solver has them."""
        return model if self.bodies is None else with_bodies_at(model, self.bodies)

    @property
    def step(self) -> Step | None:
        """The backward Euler step that led here; None in quasistatics."""
        if self._step is None:
            return None
        p = self._problem
        materials, (remembered, *_) = changing_materials(p.model), p.remembered.take()
        return Step(*self._step, p.loads.force, materials, self._time, remembered)

    def follow_pins(self, time: float) -> None:
        """Show the pinned vertices where they are at a time [s], without solving."""
        self._problem.positions = self.positions
        self._problem.begin_step(time)
        self.positions, self._run = self._problem.positions, None

    def relax(self, time: float, moved: bool, sweeps: int, interrupted: Callable[[], bool]) -> None:
        """Some sweeps towards the equilibrium; the run goes on where nothing moved the pins."""
        if moved or self._run is None:
            self._problem.positions = self.positions
            self._problem.begin_step(time)
            self._run = self.solver.begin(self._problem)
        self._sweep(sweeps, interrupted)
        self.positions = self._problem.positions

    def advance(
        self,
        time: float,
        dt: float,
        damping: float,
        sweeps: int,
        interrupted: Callable[[], bool],
        winds: Callable[[np.ndarray, np.ndarray, float], Any],
    ) -> None:
        """One backward Euler step to a time [s], solved by so many sweeps; v = (1 - damping) Δx/Δt. winds:
        (x, v, t) -> their forces (n, 3) [N], or None."""
        p, self._time = self._problem, time
        p.positions = self.positions
        p.states.set_velocities(self.velocities)
        p.loads.set_time_step(dt)
        p.remembered.evolve(dt)
        p.begin_step(time, dt, forces=winds(self.positions, self.velocities, time))
        self._run = self.solver.begin(p)
        self._step = dt, coasted(p.model, self.positions, self.velocities, dt)
        self._sweep(sweeps, interrupted)
        (self.velocities,) = p.states.velocities(dt, total_damping(self.solver, damping))
        self.positions, self.bodies = p.positions, p.contacts.moved_by_bodies

    def _sweep(self, sweeps: int, interrupted: Callable[[], bool]) -> None:
        """Advance the run and look at the balance. Where nobody can interrupt it, it is one call."""
        assert self._run is not None
        done, following = 0, self._problem.following
        while done < sweeps and not (done and interrupted()):
            count = following.until_look(1 if self._slow else sweeps - done)
            self._run.advance(count)
            done += count
            following.iterated(count)
        following.settle()
        balance = self._problem.balance()
        if self._run.observe(balance):
            balance = self._problem.balance()
        self._refuse_lost(balance)
        self.balance = balance
        self.iterations += done

    @property
    def _slow(self) -> bool:
        """Whether single iterations take so long that one wants to interrupt them."""
        return self.solver.solves_systems or self._problem.model.elements > LARGE

    def _refuse_lost(self, balance: Balance) -> None:
        assert self._run is not None
        if not np.isfinite(self._problem.positions).all():
            raise DivergedError(f"{self.solver.name} diverged: positions became infinite.")
        if not balance.finite and not self._run.recovers:
            raise DivergedError(f"{self.solver.name} failed: forces became infinite, {self._cause}.")

    @property
    def _cause(self) -> str:
        materials = [term.material for term in self._problem.model.terms]
        if any(getattr(material, "barrier", False) for material in materials):
            return "as they do in inverted elements of a material with a barrier"
        return f"too large for {self._problem.dtype}"
