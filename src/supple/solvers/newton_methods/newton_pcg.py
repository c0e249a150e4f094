"""Second phase of `Hybrid`: Newton's method with multigrid-preconditioned CG along rotation paths.

    H = exact Hessian at x, M = multilevel(H), d = PCG(H, r, M) to a forcing tolerance
    negative curvature p  →  H = sum of the positive semi-definite element parts, new M and d
    x(t) from x along d, rotating elements;  t: Armijo on E, doubled if the model was too stiff
    no acceptable t: the positive part instead, then sweeps, accepted if E decreases
    p found: also descend along x(t) from x along ±p

H, M and d are computed in newton_system.py. E never increases, except by rounding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from supple.problem import Balance, Problem
from supple.solvers.newton_methods.line_search import (
    Move,
    Reached,
    Start,
    backtrack,
    copy_u,
    expand,
    falls,
    first_lower,
    straight_path,
)
from supple.solvers.newton_methods.newton_system import PROBE_ACCURACY, Direction, Linearization
from supple.solvers.newton_methods.rotation_path import RotationPath
from supple.solvers.pbng import PBNG
from supple.support.text import pluralize

if TYPE_CHECKING:
    from supple.solvers.hybrid import Hybrid

STIFF_MODEL = 1.4, 4.0
"""Ratios of actual to predicted decrease between which the model is too stiff and longer steps are tried."""

FIRST_ACCURACY = 1e-3
"""Relative accuracy of the first linear solve of a run that begins with Newton steps.

Such a run starts near its end; a less accurate solve would cost an additional step.
"""

MIN_STEP_RATIO = 0.1
"""Accepted steps below this fraction of the first one tried trigger a rescue."""

RESCUE_SWEEPS = 10
"""PBNG sweeps of a rescue: the number between two of its convergence checks."""

NEXT_ACCURACY, GAIN_RATIO = 1e-2, 0.5
"""Accuracy of the linear solve in `NewtonPCG._gain_shrinks`, and the largest ratio of slopes for progress."""

CURVATURE_ROTATION = 1.0
"""Largest rotation of an element [rad] in the first step along negative curvature."""


class NewtonPCG:
    """Second phase of `Hybrid` on a problem in float64.

    Args:
        options: Options of the solver.
        problem: Problem in float64.
        tolerance: Relative residual to reach.
    """

    def __init__(self, options: Hybrid, problem: Problem, tolerance: float) -> None:
        self.options, self.problem, self.tolerance = options, problem, tolerance
        self.linear: Linearization = problem.get_shared("linearization", lambda: Linearization(problem))
        self._paths: RotationPath | None = None
        if options.path == "rotation":
            self._paths = problem.get_shared("rotation path", lambda: RotationPath(problem))
        self._edge = problem.diagnostics.edge or 1.0
        self._farthest = float(np.ptp(problem.model.rest, axis=0).max(initial=0)) or 1.0
        """Largest displacement of a vertex along negative curvature [m], for bodies that hardly rotate."""
        self._steps = self._rescues = 0
        self._before = self.linear.iterations, self.linear.filtered
        self._residual: float | None = None
        self._stuck = self.at_saddle = False

    def notes(self) -> list[str]:
        iterations = self.linear.iterations - self._before[0]
        filtered = self.linear.filtered - self._before[1]
        notes = [f"{pluralize(self._steps, 'Newton step')} with {pluralize(iterations, 'linear iteration')}"]
        if filtered:
            notes.append(f"negative curvature was met in {pluralize(filtered, 'step')}")
        if self._rescues:
            notes.append(f"{pluralize(self._rescues, 'step')} needed rescue by sweeps")
        return notes

    def step(self) -> None:
        """Make one Newton step to lower energy; after a failed step, do nothing."""
        balance = self.problem.balance()
        if self.at_saddle:
            return self._leave_equilibrium(balance)
        if self._stuck or not balance.residual > 0 or not balance.finite:
            return
        begin, start = copy_u(self.problem), Start.of(self.problem, balance.residual)
        floor = 0.0 if self.linear.quadratic else 0.3 * self.tolerance * balance.smallest_scale
        accuracy = self.linear.accuracy(balance.residual, self._residual, self.tolerance)
        if self._residual is None and self.options.max_predicted_sweeps == 0:
            accuracy = min(accuracy, FIRST_ACCURACY)
        direction = self.linear.direction(accuracy, floor)
        reached, first_t = self._go(direction, start)
        if reached is None or reached.t < MIN_STEP_RATIO * first_t:
            reached = self._rescue(direction, begin, start, reached, accuracy, floor)
        if direction.concave is not None:
            reached = self._leave_saddle(direction.concave, start, reached)
        self._steps += 1
        self._residual, self._stuck = balance.residual, reached is None

    def _set_u(self, u: np.ndarray) -> None:
        self.problem.device.assign(self.problem.u, u)

    def _path(self, d: np.ndarray, gain: float = math.inf) -> tuple[Move, float, float]:
        """Return the path along d from the problem's u.

        Args:
            d: Direction, padded vectors [m].
            gain: Expected decrease of the energy [J].

        Returns:
            The move along the path, and the rotations at t = 1 [rad] of nearly all elements and of the
            element that rotates most.
        """
        if self._paths is None:
            return straight_path(self.problem, d), 0.0, 0.0
        path = self._paths.along(d, gain)
        return path.go, path.typical_rotation, path.max_rotation

    def _go(self, direction: Direction, start: Start) -> tuple[Reached | None, float]:
        """Search along d; return the accepted step and the first t tried.

        If no step is acceptable, u returns to the start.
        """
        begin, slope = copy_u(self.problem), direction.slope
        move, rotation, _ = self._path(direction.d, slope)
        first_t = min(1.0, self.options.max_rotation / max(rotation, 1e-9))
        search = self.problem, move, start, slope, first_t
        nearer = None if direction.filtered else lambda: self._gain_shrinks(slope)
        reached = backtrack(*search, nearer=nearer) if slope > 0 else None
        if reached is None:
            self._set_u(begin)
            return None, first_t
        predicted = reached.t * slope * (1 - 0.5 * reached.t)
        low, high = STIFF_MODEL
        if reached.t == 1.0 and low * predicted < start.energy - reached.energy < high * predicted:
            reached = expand(self.problem, move, start, reached)
        return reached, first_t

    def _gain_shrinks(self, slope: float) -> bool:
        """True if the predicted gain of the next step [J] is much smaller than that of this step.

        r · H⁻¹ r resolves far smaller differences than rounding leaves of energies. |r| is useless for this
        purpose if stiff elements dominate it.
        """
        next_direction = self.linear.direction(NEXT_ACCURACY, 0.0)
        return not next_direction.filtered and 0 <= next_direction.slope < GAIN_RATIO * slope

    def _rescue(
        self, direction: Direction, begin: np.ndarray, start: Start, reached: Reached | None,
        accuracy: float, floor: float,
    ) -> Reached | None:  # fmt: skip
        """Search along the direction of the convex part, keep it if it reaches lower energy, then sweep."""
        self._rescues += 1
        current = copy_u(self.problem)
        if not direction.filtered:
            self._set_u(begin)
            self.problem.balance()
            deeper, _ = self._go(self.linear.convex(accuracy, floor), start)
            if deeper is not None and (reached is None or deeper.energy < reached.energy):
                current, reached = copy_u(self.problem), deeper
        self._set_u(current)
        PBNG().begin(self.problem).advance(RESCUE_SWEEPS)
        swept = Reached(math.nan, self.problem.energy())
        if falls(self.problem, swept, start, reached):
            return swept
        self._set_u(current)
        return reached

    def _leave_equilibrium(self, balance: Balance) -> None:
        """Descend along negative curvature from an unstable equilibrium."""
        p = self.linear.direction(PROBE_ACCURACY, 0.0, probe=True).concave
        if p is not None:
            self._leave_saddle(p, Start.of(self.problem, balance.residual), None)
        self.at_saddle, self._stuck, self._residual = False, False, None

    def _leave_saddle(self, p: np.ndarray, start: Start, reached: Reached | None) -> Reached | None:
        """Descend also along ±p after the step; p = 0 has no effect."""
        current, energy = copy_u(self.problem), start.energy if reached is None else reached.energy
        self.problem.balance()
        states = self.problem.states
        direction = states.vectors(p)
        size = float(np.abs(direction).max())
        if size == 0:
            return reached
        downhill = 1.0 if float((states.vectors(states.net) * direction).sum()) >= 0 else -1.0
        move, _, max_turn = self._path(downhill * self._edge / size * p)
        t = min(CURVATURE_ROTATION / max_turn, self._farthest / self._edge) if max_turn > 0 else 1.0
        lower = first_lower(self.problem, move, start, energy, t)
        if lower is None:
            self._set_u(current)
        return lower or reached
