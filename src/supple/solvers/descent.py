"""Descent: sweeps while they pay, then Newton's method with a multilevel solver, in steps that turn elements.

    phase 1  PBNG-Anderson sweeps, while the rate of the imbalance promises to arrive soon
    phase 2  H = exact Hessian at x, M = multilevel(H), d = PCG(H, r, M) to a forcing tolerance
             negative curvature p  →  H = the positive part of every element, M and d anew
             x(t) from x along d, turning elements;  t: Armijo on E, doubled where the model was too stiff
             p known: go down along x(t) from x along ±p, too
             no good t: the positive part instead, then sweeps, kept where E falls

E infinite at the start: a surrogate of it first. A balance that is not stable is left along p, too. E never
rises in phase 2. Long waves, which sweeps hardly
move, are what the multilevel solver is for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from supple.checks import check_iterations, one_number, one_of, whole_number
from supple.model import Model
from supple.problem import Balance, Problem
from supple.solvers.beside_obstacles import BesideObstacles
from supple.solvers.forecast import ON_DEVICES, Allowance, Forecast
from supple.solvers.line_search import Move, Reached, Start, backtrack, expand, falls, first_lower
from supple.solvers.linearisation import PROBED, Direction, Linearisation
from supple.solvers.moves import line, present
from supple.solvers.pbng import PBNG
from supple.solvers.righting import ROUGHLY, Righting
from supple.solvers.rotation_path import RotationPath
from supple.solvers.solver import Run, Solver
from supple.solvers.together import SweptTogether
from supple.solvers.twin import bring_back, exact_twin
from supple.words import counted

STIFF_MODEL = 1.4, 4.0
"""Between these ratios of actual and predicted decrease the model is too stiff, and further is better."""

POOR = 0.1
"""A step below this part of the first one tried calls for rescue."""

RESCUE_SWEEPS = 10

TOGETHER = 4
"""How many times as many sweeps pay for several states at once, which share them."""

CURVATURE_TURN = 1.0
"""How far the element that turns most does so [rad] in the first step tried along negative curvature."""


@dataclass(frozen=True)
class Descent(Solver):
    """Descent to a local minimum of the energy: sweeps while they pay, then Newton steps.

    ahead: sweeps end when more than so many further ones are predicted, four times as many on a device; 0
    begins with Newton. turn: how far nearly all elements may turn in one Newton step [rad]. path: "rotation"
    follows turning elements, "straight" the line. iterations: sweeps and Newton steps per time step when a
    call sets no other limit.
    """

    name: ClassVar[str] = "descent"
    batches: ClassVar[bool] = True

    ahead: int = 250
    turn: float = 2.0
    path: Literal["rotation", "straight"] = "rotation"
    iterations: int | None = None

    only_with: ClassVar[dict[str, tuple[str, str]]] = {"turn": ("path", "rotation")}

    def __post_init__(self) -> None:
        whole_number("ahead", self.ahead, at_least=0)
        one_number("turn", self.turn, above=0)
        one_of("path", self.path, ("rotation", "straight"))
        check_iterations(self.iterations)

    def begin(self, problem: Problem) -> Run:
        """Several states at once are swept as long as that pays; bodies that rub on each other, and what
        touches obstacles on a device, to the end."""
        able = not problem.contacts or (problem.copies == 1 and problem.device.name == "cpu")
        if problem.following.rough or not able:
            return PBNG().begin(problem)
        if problem.copies == 1:
            return DescentRun(self, problem)
        return SweptTogether(problem, self.ahead * ON_DEVICES * TOGETHER)

    def memory(self, model: Model, number: int) -> int:
        return PBNG().memory(model, number)


class DescentRun(Run):
    """Descent at work on one problem; in its second phase on the problem's twin in float64."""

    guarded = True

    def __init__(self, options: Descent, problem: Problem) -> None:
        self.options, self.problem = options, problem
        self._sweeping = PBNG().begin(problem)
        self.check_every, self.patience = self._sweeping.check_every, self._sweeping.patience
        self._forecast, self._allowance = Forecast(1e-4), Allowance(None)
        self._righting = Righting(problem)
        self._ahead = options.ahead * (1 if problem.device.name == "cpu" else ON_DEVICES)
        self._sweeps = 0
        self._newton: NewtonPCG | BesideObstacles | None = None
        self._sweeps_only = True
        self._version = problem.layout.version
        if options.ahead == 0:
            self._turn_to_newton()

    @property
    def recovers(self) -> bool:
        return self._righting.open

    def aim(self, tolerance: float | None, max_iterations: int | None, budget: float | None) -> None:
        """Iterations that are asked for without a tolerance are sweeps."""
        self._allowance = Allowance(budget)
        self._sweeps_only = tolerance is None and max_iterations is not None and self.options.ahead > 0
        self._forecast.aim = tolerance or 1e-8
        if self._newton is not None:
            self._newton.tolerance = self._forecast.aim

    def go_on(self, imbalance: float) -> None:
        """By Newton steps: long waves hardly show in the imbalance, and the first direction is known, since
        it was what told the distance."""
        self._forecast.aim = imbalance
        (self._newton or self._turn_to_newton()).tolerance = imbalance

    def leave_saddle(self) -> bool:
        if self.problem.contacts:
            return False
        (self._newton or self._turn_to_newton()).at_saddle = True
        return True

    @property
    def colours(self) -> int:
        return self._sweeping.colours

    def rejected(self) -> list[int]:
        return self._sweeping.rejected()

    def notes(self, copy: int = 0) -> list[str]:
        if self._newton is None:
            return self._righting.notes + self._sweeping.notes(copy)
        steps, *others = self._newton.notes()
        return [*self._righting.notes, f"{counted(self._sweeps, 'sweep')}, then {steps}", *others]

    def advance(self, iterations: int) -> None:
        if self.problem.layout.version != self._version:
            self._see_stencils()
        if self._righting.open:
            self._right()
        if self._newton is None:
            with self._allowance.sweeping(iterations):
                self._sweeping.advance(iterations)
            self._sweeps += iterations
        elif self._allowance.allows_step:
            with self._allowance.stepping(iterations):
                for _ in range(iterations):
                    self._newton.step()
                bring_back(self._newton.problem, self.problem)
        else:
            PBNG().begin(self.problem).advance(iterations)

    def _right(self) -> None:
        self._righting.right(lambda surrogate: NewtonPCG(self.options, surrogate, ROUGHLY).step)
        if self._newton is not None:
            self._turn_to_newton()

    def observe(self, balance: Balance, copy: int = 0) -> bool:
        """Sweep on as long as that promises to arrive soon."""
        if self._newton is not None:
            return False
        moved = self._sweeping.observe(balance, copy)
        self._forecast.see(self._sweeps, math.inf if moved else balance.imbalance)
        slow = self._forecast.remaining > self._ahead
        if slow and not self._sweeps_only and self._allowance.allows_newton:
            self._turn_to_newton()
        return moved

    def _see_stencils(self) -> None:
        """Go on where stencils were exchanged: what was known is of other forces."""
        self._version = self.problem.layout.version
        self._forecast = Forecast(self._forecast.aim)
        if self._newton is not None:
            self._turn_to_newton()

    def _turn_to_newton(self) -> NewtonPCG | BesideObstacles:
        self.check_every, self.patience = 1, 3
        if self.problem.contacts:
            self.patience = RESCUE_SWEEPS
            make = partial(NewtonPCG, self.options)
            self._newton = BesideObstacles(self.problem, make, self._forecast.aim)
        else:
            self._newton = NewtonPCG(self.options, exact_twin(self.problem), self._forecast.aim)
        return self._newton


class NewtonPCG:
    """The second phase, on a problem in float64. tolerance: the imbalance to reach."""

    def __init__(self, options: Descent, problem: Problem, tolerance: float) -> None:
        self.options, self.problem, self.tolerance = options, problem, tolerance
        self.linear: Linearisation = problem.shared("linearisation", lambda: Linearisation(problem))
        self._paths: RotationPath | None = None
        if options.path == "rotation":
            self._paths = problem.shared("rotation path", lambda: RotationPath(problem))
        self._edge = problem.model.mean_edge or 1.0
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

    def _path(self, d: np.ndarray) -> tuple[Move, float, float]:
        """Moves along d from the problem's u; how far nearly all elements, and any, turn by t = 1 [rad]."""
        if self._paths is None:
            return line(self.problem, d), 0.0, 0.0
        path = self._paths.along(d)
        return path.go, path.turn, path.most

    def _go(self, direction: Direction, start: Start) -> tuple[Reached | None, float]:
        """As far along d as the energy falls well, or back to where it began; and the first t tried."""
        begin, slope = present(self.problem), direction.slope
        move, turn, _ = self._path(direction.d)
        whole = min(1.0, self.options.turn / max(turn, 1e-9))
        reached = backtrack(self.problem, move, start, slope, whole) if slope > 0 else None
        if reached is None:
            self._put(begin)
            return None, whole
        predicted = reached.t * slope * (1 - 0.5 * reached.t)
        low, high = STIFF_MODEL
        if reached.t == 1.0 and low * predicted < start.energy - reached.energy < high * predicted:
            reached = expand(self.problem, move, start, reached)
        return reached, whole

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
        """Also down along ±p, from where the step has led."""
        here, energy = present(self.problem), start.energy if reached is None else reached.energy
        self.problem.balance()
        states = self.problem.states
        downhill = 1.0 if float((states.vectors(states.net) * states.vectors(p)).sum()) >= 0 else -1.0
        move, _, most = self._path(downhill * self._edge / np.abs(p).max() * p)
        lower = first_lower(self.problem, move, start, energy, CURVATURE_TURN / most if most > 0 else 1.0)
        if lower is None:
            self._put(here)
        return lower or reached
