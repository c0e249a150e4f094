"""The second phase of `Descent`: Newton's method with a multilevel solver, in steps that turn elements.

    H = exact Hessian at x, M = multilevel(H), d = PCG(H, r, M) to a forcing tolerance
    negative curvature p  →  H = the positive part of every element, M and d anew
    x(t) from x along d, turning elements;  t: Armijo on E, doubled where the model was too stiff
    no good t: the positive part instead, then sweeps, kept where E falls
    p known: go down along x(t) from x along ±p, too

H, M and d are made in linearisation.py. E never rises, but for its rounding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from supple.problem import Balance, Problem
from supple.solvers.newton_steps.line_search import (
    Move,
    Reached,
    Start,
    backtrack,
    expand,
    falls,
    first_lower,
)
from supple.solvers.newton_steps.linearisation import PROBED, Direction, Linearisation
from supple.solvers.newton_steps.moves import line, present
from supple.solvers.newton_steps.rotation_path import RotationPath
from supple.solvers.pbng import PBNG
from supple.words import counted

if TYPE_CHECKING:
    from supple.solvers.descent import Descent

STIFF_MODEL = 1.4, 4.0
"""Between these ratios of actual and predicted decrease the model is too stiff, and further is better."""

NEARBY = 1e-3
"""Of the first linear solve where a run begins with Newton steps, as one does that starts near its end: what
it leaves undone would take a step of its own."""

POOR = 0.1
"""A step below this part of the first one tried calls for rescue."""

RESCUE_SWEEPS = 10
"""Of PBNG: as many as it does between two looks."""

LEFT, LESS = 1e-2, 0.5
"""Accuracy of the linear solve that tells how much is left to gain, and which part of what was left before
counts as less."""

CURVATURE_TURN = 1.0
"""How far the element that turns most does so [rad] in the first step tried along negative curvature."""


class NewtonPCG:
    """The second phase, on a problem in float64. tolerance: the imbalance to reach."""

    def __init__(self, options: Descent, problem: Problem, tolerance: float) -> None:
        self.options, self.problem, self.tolerance = options, problem, tolerance
        self.linear: Linearisation = problem.shared("linearisation", lambda: Linearisation(problem))
        self._paths: RotationPath | None = None
        if options.path == "rotation":
            self._paths = problem.shared("rotation path", lambda: RotationPath(problem))
        self._edge = problem.measures.edge or 1.0
        self._farthest = float(np.ptp(problem.model.rest, axis=0).max(initial=0)) or 1.0
        """How far a vertex may go along negative curvature [m]: what hardly turns moves as a whole."""
        self._steps = self._rescues = 0
        self._before = self.linear.iterations, self.linear.filtered
        self._residual: float | None = None
        self._stuck = self.at_saddle = False

    def notes(self) -> list[str]:
        iterations = self.linear.iterations - self._before[0]
        filtered = self.linear.filtered - self._before[1]
        notes = [f"{counted(self._steps, 'Newton step')} with {counted(iterations, 'linear iteration')}"]
        if filtered:
            notes.append(f"negative curvature was met in {counted(filtered, 'step')}")
        if self._rescues:
            notes.append(f"{counted(self._rescues, 'step')} needed rescue by sweeps")
        return notes

    def step(self) -> None:
        """From x to a state of lower energy, unless there is none to be found."""
        balance = self.problem.balance()
        if self.at_saddle:
            return self._leave_balance(balance)
        if self._stuck or not balance.residual > 0 or not balance.finite:
            return
        begin, start = present(self.problem), Start.of(self.problem, balance.residual)
        floor = 0.0 if self.linear.quadratic else 0.3 * self.tolerance * balance.smallest_scale
        accuracy = self.linear.accuracy(balance.residual, self._residual, self.tolerance)
        if self._residual is None and self.options.ahead == 0:
            accuracy = min(accuracy, NEARBY)
        direction = self.linear.direction(accuracy, floor)
        reached, whole = self._go(direction, start)
        if reached is None or reached.t < POOR * whole:
            reached = self._rescue(direction, begin, start, reached, accuracy, floor)
        if direction.concave is not None:
            reached = self._leave_saddle(direction.concave, start, reached)
        self._steps += 1
        self._residual, self._stuck = balance.residual, reached is None

    def _put(self, u: np.ndarray) -> None:
        self.problem.device.assign(self.problem.u, u)

    def _path(self, d: np.ndarray, gain: float = math.inf) -> tuple[Move, float, float]:
        """Moves along d from the problem's u, which would gain so much [J]; how far nearly all elements, and
        any, turn by t = 1 [rad]."""
        if self._paths is None:
            return line(self.problem, d), 0.0, 0.0
        path = self._paths.along(d, gain)
        return path.go, path.turn, path.most

    def _go(self, direction: Direction, start: Start) -> tuple[Reached | None, float]:
        """As far along d as the energy falls well, or back to where it began; and the first t tried."""
        begin, slope = present(self.problem), direction.slope
        move, turn, _ = self._path(direction.d, slope)
        whole = min(1.0, self.options.turn / max(turn, 1e-9))
        ways = self.problem, move, start, slope, whole
        nearer = None if direction.filtered else lambda: self._less_left(slope)
        reached = backtrack(*ways, nearer=nearer) if slope > 0 else None
        if reached is None:
            self._put(begin)
            return None, whole
        predicted = reached.t * slope * (1 - 0.5 * reached.t)
        low, high = STIFF_MODEL
        if reached.t == 1.0 and low * predicted < start.energy - reached.energy < high * predicted:
            reached = expand(self.problem, move, start, reached)
        return reached, whole

    def _less_left(self, slope: float) -> bool:
        """Whether the next step would gain much less than this one, by its slope [J]: r · H⁻¹ r tells that to
        far fewer digits than rounding leaves of energies, and |r|, where stiff elements have most of it, not
        at all."""
        found = self.linear.direction(LEFT, 0.0)
        return not found.filtered and 0 <= found.slope < LESS * slope

    def _rescue(
        self, direction: Direction, begin: np.ndarray, start: Start, reached: Reached | None,
        accuracy: float, floor: float,
    ) -> Reached | None:  # fmt: skip
        """Along the convex part's d from where the step began, if that goes deeper; then sweeps."""
        self._rescues += 1
        here = present(self.problem)
        if not direction.filtered:
            self._put(begin)
            self.problem.balance()
            deeper, _ = self._go(self.linear.convex(accuracy, floor), start)
            if deeper is not None and (reached is None or deeper.energy < reached.energy):
                here, reached = present(self.problem), deeper
        self._put(here)
        PBNG().begin(self.problem).advance(RESCUE_SWEEPS)
        swept = Reached(math.nan, self.problem.energy())
        if falls(self.problem, swept, start, reached):
            return swept
        self._put(here)
        return reached

    def _leave_balance(self, balance: Balance) -> None:
        """Down along negative curvature, where nothing else moves the vertices."""
        p = self.linear.direction(PROBED, 0.0, probe=True).concave
        if p is not None:
            self._leave_saddle(p, Start.of(self.problem, balance.residual), None)
        self.at_saddle, self._stuck, self._residual = False, False, None

    def _leave_saddle(self, p: np.ndarray, start: Start, reached: Reached | None) -> Reached | None:
        """Also down along ±p, from where the step has led; p = 0 leads nowhere."""
        here, energy = present(self.problem), start.energy if reached is None else reached.energy
        self.problem.balance()
        states = self.problem.states
        ways = states.vectors(p)
        size = float(np.abs(ways).max())
        if size == 0:
            return reached
        downhill = 1.0 if float((states.vectors(states.net) * ways).sum()) >= 0 else -1.0
        move, _, most = self._path(downhill * self._edge / size * p)
        t = min(CURVATURE_TURN / most, self._farthest / self._edge) if most > 0 else 1.0
        lower = first_lower(self.problem, move, start, energy, t)
        if lower is None:
            self._put(here)
        return lower or reached
