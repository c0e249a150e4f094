"""Newton steps of `Hybrid`: multigrid-preconditioned CG and a search along rotation paths.

    f ← net forces;  accuracy ← forcing term                Linearization.accuracy
    Δu ← PCG(H, f, M);  p ← negative curvature met          Linearization.direction
        p: H ← positive part of every element, new Δu       Linearization.projected_direction
    t ← 1, less for large rotations; halved until Armijo's rule holds along x(t)
                                                            `_search_along`, backtrack
        change of E below rounding: |f| or f · H⁻¹ f must fall
                                                            `_gain_shrinks`
        E fell 1.4 to 4 times as predicted: t doubled       expand
    t below a tenth of the first: step of the positive part, then ten sweeps, each if E falls
                                                            `_fallback_step`
    p: also descend along ±p                                `_descend_along_curvature`

These lines are `NewtonPCG.step`. E, f and H are those of newton.py. The Newton direction Δu is `d` in the
code, p is a direction with p · H p < 0, and x(t) = X + u(t) is a path with x'(0) = Δu. H and M =
multilevel(H) are in newton_system.py, the line searches in line_search.py, the paths in rotation_path.py. E
never increases, except by rounding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from supple.problem import Balance, Problem
from supple.solvers.newton_methods.line_search import (
    AcceptedStep,
    Move,
    Start,
    backtrack,
    copy_u,
    expand,
    is_lower,
    quarter_until_lower,
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

SUFFICIENT_FRACTION = 0.3
"""Residual of a linear solve, relative to the tolerance, below which more accuracy is useless."""

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
    """Newton steps of `Hybrid` on a problem in float64.

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
        self._max_displacement = float(np.ptp(problem.model.rest, axis=0).max(initial=0)) or 1.0
        """Largest displacement of a vertex along negative curvature [m], for bodies that hardly rotate."""
        self._steps = self._rescues = 0
        self._counts_at_start = self.linear.iterations, self.linear.projected_solves
        self._residual: float | None = None
        self._failed = self.at_saddle = False

    def step(self) -> None:
        """Make one Newton step to lower energy; after a failed step, do nothing."""
        balance = self.problem.balance()
        if self.at_saddle:
            return self._leave_saddle(balance)
        if self._failed or not balance.residual > 0 or not balance.finite:
            return
        start_u, start = copy_u(self.problem), Start.of(self.problem, balance.residual)
        absolute_tolerance = (
            0.0 if self.linear.quadratic else SUFFICIENT_FRACTION * self.tolerance * balance.smallest_scale
        )
        accuracy = self.linear.accuracy(balance.residual, self._residual, self.tolerance)
        if self._residual is None and self.options.max_predicted_sweeps == 0:
            accuracy = min(accuracy, FIRST_ACCURACY)
        direction = self.linear.direction(accuracy, absolute_tolerance)
        reached, first_t = self._search_along(direction, start)
        if reached is None or reached.t < MIN_STEP_RATIO * first_t:
            reached = self._fallback_step(direction, start_u, start, reached, accuracy, absolute_tolerance)
        if direction.negative_curvature is not None:
            reached = self._descend_along_curvature(direction.negative_curvature, start, reached)
        self._steps += 1
        self._residual, self._failed = balance.residual, reached is None

    def _search_along(self, direction: Direction, start: Start) -> tuple[AcceptedStep | None, float]:
        """Search along Δu; return the accepted step and the first t tried.

        If no step is acceptable, u returns to the start.
        """
        start_u, slope = copy_u(self.problem), direction.slope
        move, rotation, _ = self._path(direction.d, slope)
        first_t = min(1.0, self.options.max_rotation / max(rotation, 1e-9))
        search = self.problem, move, start, slope, first_t
        makes_progress = None if direction.projected else lambda: self._gain_shrinks(slope)
        reached = backtrack(*search, makes_progress=makes_progress) if slope > 0 else None
        if reached is None:
            self._set_u(start_u)
            return None, first_t
        predicted = reached.t * slope * (1 - 0.5 * reached.t)
        low, high = STIFF_MODEL
        if reached.t == 1.0 and low * predicted < start.energy - reached.energy < high * predicted:
            reached = expand(self.problem, move, start, reached)
        return reached, first_t

    def _gain_shrinks(self, slope: float) -> bool:
        """True if the predicted gain of the next step [J] is much smaller than that of this step.

        f · H⁻¹ f resolves far smaller differences than rounding leaves of energies. |f| is useless for this
        purpose if stiff elements dominate it.
        """
        next_direction = self.linear.direction(NEXT_ACCURACY, 0.0)
        return not next_direction.projected and 0 <= next_direction.slope < GAIN_RATIO * slope

    def _fallback_step(
        self, direction: Direction, start_u: np.ndarray, start: Start, reached: AcceptedStep | None,
        accuracy: float, absolute_tolerance: float,
    ) -> AcceptedStep | None:  # fmt: skip
        """Search along the projected direction, keep the step if it reaches lower energy, then sweep."""
        self._rescues += 1
        current = copy_u(self.problem)
        if not direction.projected:
            self._set_u(start_u)
            self.problem.balance()
            deeper, _ = self._search_along(
                self.linear.projected_direction(accuracy, absolute_tolerance), start
            )
            if deeper is not None and (reached is None or deeper.energy < reached.energy):
                current, reached = copy_u(self.problem), deeper
        self._set_u(current)
        PBNG().begin(self.problem).advance(RESCUE_SWEEPS)
        swept = AcceptedStep(math.nan, self.problem.energy())
        if is_lower(self.problem, swept, start, reached):
            return swept
        self._set_u(current)
        return reached

    def _leave_saddle(self, balance: Balance) -> None:
        """Descend along negative curvature from an unstable equilibrium."""
        p = self.linear.direction(PROBE_ACCURACY, 0.0, probe=True).negative_curvature
        if p is not None:
            self._descend_along_curvature(p, Start.of(self.problem, balance.residual), None)
        self.at_saddle, self._failed, self._residual = False, False, None

    def _descend_along_curvature(
        self, p: np.ndarray, start: Start, reached: AcceptedStep | None
    ) -> AcceptedStep | None:
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
        t = min(CURVATURE_ROTATION / max_turn, self._max_displacement / self._edge) if max_turn > 0 else 1.0
        lower = quarter_until_lower(self.problem, move, start, energy, t)
        if lower is None:
            self._set_u(current)
        return lower or reached

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

    def _set_u(self, u: np.ndarray) -> None:
        self.problem.device.assign(self.problem.u, u)

    def notes(self) -> list[str]:
        iterations = self.linear.iterations - self._counts_at_start[0]
        projected_solves = self.linear.projected_solves - self._counts_at_start[1]
        notes = [f"{pluralize(self._steps, 'Newton step')} with {pluralize(iterations, 'linear iteration')}"]
        if projected_solves:
            notes.append(f"negative curvature was found in {pluralize(projected_solves, 'step')}")
        if self._rescues:
            notes.append(f"{pluralize(self._rescues, 'step')} needed the projected Hessian or sweeps")
        return notes
