"""Newton's method for tractions that follow their surface, in load steps where one step is too far.

    F = follower loads at x, f = net forces, T = H - K, K = ∂F/∂x
    Δu = T⁻¹ f (linear/follower.py; `d` in the code);  x(t) from x along Δu, turning elements
    |Δu| does not fall  →  back; x at no follower load by minimization of E, then λ F with λ up to 1:
                           Δλ doubled after few corrections, quartered where |Δu| does not fall

Such loads have no energy, so that nothing but |Δu| tells progress [Deuflhard 2011, section 2.1]. The numbers
of corrections and of load steps are bounded; where they do not suffice, `failed` says so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.problem import Problem
from supple.solvers.newton_methods.line_search import copy_u, straight_path
from supple.solvers.newton_methods.newton_system import Linearization
from supple.solvers.newton_methods.rotation_path import RotationPath
from supple.support.text import pluralize

ACCURACY = 1e-3
"""Relative accuracy of every linear solve."""

MAX_ROTATION = 1.0
"""Largest rotation of nearly all elements in one correction [rad]."""

MIN_CONTRACTION = 0.3
"""Required decrease of |Δu| as a fraction of a full correction."""

CLOSE_DISTANCE = 1e-3
"""Largest entry of Δu at the end of a load step, relative to the size of the scene."""

MAX_STEP_CORRECTIONS = 15
"""Limit of the corrections of a load step before Δu is close."""

FEW_CORRECTIONS = 4
"""Corrections after which the next load step is twice as long."""

MIN_LOAD_STEP = 1e-3
"""Smallest load step as a fraction of the full load."""

MAX_CORRECTIONS = 400
"""Limit of the corrections of all load steps."""

MAX_INVERTED = 0.05
"""Fraction of the elements that a load step may invert."""

MAX_FIXED_LOAD_UPDATES = 20
"""Updates of fixed follower loads after which a solve with fixed loads ends."""

UNLOADED_RESIDUAL, MAX_MINIMIZATIONS = 1e-2, 50
"""Residual without follower loads, relative to these loads, and the limit of Newton steps to reach it."""


class FollowerNewton:
    """Corrections of a problem in float64 towards the equilibrium under its follower loads.

    Attributes:
        problem: Problem whose follower loads act in full at the current positions after every step.
        tolerance: Relative residual to reach; unused, since all linear solves have the same accuracy.
        failed: True if load steps became too short, or too many.
    """

    def __init__(
        self, problem: Problem, tolerance: float, minimize: Callable[[], None], rotates: bool = True
    ) -> None:
        """Begin at the problem's u.

        Args:
            problem: Problem in float64.
            tolerance: Relative residual to reach.
            minimize: Makes one step of u towards the minimum of the energy under fixed follower loads.
            rotates: True if corrections rotate elements; otherwise they are straight.
        """
        self.problem, self.tolerance, self._minimize = problem, tolerance, minimize
        self.linear: Linearization = problem.get_shared("linearization", lambda: Linearization(problem))
        self._paths: RotationPath | None = None
        if rotates:
            self._paths = problem.get_shared("rotation path", lambda: RotationPath(problem))
        self._size = float(np.ptp(problem.model.rest, axis=0).max(initial=0)) or 1.0
        self._before = self.linear.iterations
        self.at_saddle = self.failed = False
        self._initial = self._last_equilibrium = copy_u(problem)
        self._inverted = int(problem.diagnostics.inversions()[0])
        self._reached: float | None = None  # load fraction of `_last_equilibrium`, None before it
        self._target_fraction, self._step = 1.0, 0.5
        self._last: float | None = None
        self._step_corrections = self._corrections = self._load_steps = self._minimized = 0

    @property
    def is_moving(self) -> bool:
        """True until an equilibrium under the full load is close."""
        return not self.failed and self._reached != 1.0

    def notes(self) -> list[str]:
        iterations = self.linear.iterations - self._before
        notes = [
            f"{pluralize(self._corrections, 'Newton step')} with the load stiffness and "
            f"{pluralize(iterations, 'linear iteration')}"
        ]
        if self._load_steps:
            steps = pluralize(self._load_steps, "load step")
            notes.append(f"follower tractions were applied in {steps}")
        return notes

    def step(self) -> None:
        """Make one correction of the present load step."""
        loads = self.problem.follower_loads
        loads.fraction = self._target_fraction
        loads.sync()
        if self._target_fraction > 0:
            self._correct()
        else:
            self._unload()
        loads.fraction = 1.0
        loads.sync()

    def _unload(self) -> None:
        """Make one step towards the equilibrium without follower loads."""
        self._minimize()
        self._minimized += 1
        residual = self.problem.balance().residual
        if residual <= UNLOADED_RESIDUAL * self.problem.follower_loads.magnitude:
            self._finish_load_step()
        elif self._minimized >= MAX_MINIMIZATIONS or not np.isfinite(residual):
            self._fail()

    def _correct(self) -> None:
        """Make one Newton step under the loads of the present load step, limited by `MAX_ROTATION`."""
        problem = self.problem
        balance = problem.balance()
        if not balance.finite:
            return self._return_to_last_equilibrium()
        if not balance.residual > 0:
            return self._finish_load_step()
        direction = self.linear.follower_direction(ACCURACY)
        d = problem.states.vectors(direction.d)[0]
        length = float(np.sqrt(np.square(d).sum()))
        close = float(np.abs(d).max(initial=0)) <= CLOSE_DISTANCE * self._size
        slow = self._last is not None and not length <= self._last
        if direction.projected or (not close and (slow or self._step_corrections >= MAX_STEP_CORRECTIONS)):
            return self._return_to_last_equilibrium()
        t = self._go(direction.d)
        self._step_corrections += 1
        self._corrections += 1
        self._last = (1 - MIN_CONTRACTION * t) * length
        if close:
            self._finish_load_step()
        elif self._corrections >= MAX_CORRECTIONS:
            self._fail()

    def _go(self, d: np.ndarray) -> float:
        """Move along d up to `MAX_ROTATION`; return the fraction of d."""
        if self._paths is None:
            straight_path(self.problem, d)(1.0)
            return 1.0
        path = self._paths.along(d, np.inf)
        t = min(1.0, MAX_ROTATION / max(path.typical_rotation, 1e-9))
        path.go(t)
        return t

    def _finish_load_step(self) -> None:
        """Finish a load step and begin the next one, unless the load is full."""
        if self._reached == 1.0:
            return
        inverted = int(self.problem.diagnostics.inversions()[0])
        if inverted > self._inverted + MAX_INVERTED * self.problem.model.elements:  # another equilibrium
            return self._return_to_last_equilibrium()
        self._inverted = inverted
        if self._reached is not None:
            self._load_steps += 1
            self._step *= 2 if self._step_corrections <= FEW_CORRECTIONS else 1
        self._reached, self._last_equilibrium = self._target_fraction, copy_u(self.problem)
        self._target_fraction = min(1.0, self._reached + self._step)
        self._last, self._step_corrections = None, 0

    def _return_to_last_equilibrium(self) -> None:
        """Return to the last equilibrium and shorten the load step; without one, remove the load."""
        self.problem.device.assign(self.problem.u, self._last_equilibrium)
        self._last, self._step_corrections = None, 0
        if self._reached == 1.0:
            self._fail()
        elif self._reached is None:
            self._target_fraction = 0.0
        else:
            self._step = 0.25 * (self._target_fraction - self._reached)
            self._target_fraction = self._reached + self._step
            if self._step < MIN_LOAD_STEP:
                self._fail()

    def _fail(self) -> None:
        if self._reached != 1.0:
            self.problem.device.assign(self.problem.u, self._initial)
        self.failed = True
