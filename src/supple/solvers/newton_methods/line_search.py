"""Line searches that move a problem's u along descent paths x(t) = X + u(t).

halve t until E falls as Armijo's rule requires         `backtrack`
double t while E falls ever more                        `expand`
quarter t until E falls, for negative curvature         `quarter_until_lower`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from supple.problem import Problem
from supple.problem.vertex_kernels import MoveAlongLine

ARMIJO = 1e-4
"""Required fraction of the decrease that the slope predicts."""

MIN_STEP = 1e-6
"""Smallest step as a fraction of the first one tried."""

MIN_GAIN_RATIO = 1.3
"""A step is doubled if the decrease of the energy grows by at least this factor."""

MAX_STEP = 64.0
"""Largest t of a doubled step."""

MAX_QUARTERINGS = 8
"""Number of steps tried along a direction of negative curvature, each a quarter of the last."""

Move = Callable[[float], None]
"""Sets the problem's u to the point t of a path."""


class Start(NamedTuple):
    """Start of a path.

    Attributes:
        energy: Energy E [J].
        rounding: Bound of the rounding error of E [J].
        residual: Residual |f| of the net forces f [N].
    """

    energy: float
    rounding: float
    residual: float

    @staticmethod
    def of(problem: Problem, residual: float) -> Start:
        """Evaluate the energy at the problem's u."""
        energy = problem.energy()
        return Start(energy, problem.diagnostics.energy_rounding(), residual)


class AcceptedStep(NamedTuple):
    """Step length t and the energy [J] there."""

    t: float
    energy: float


def backtrack(
    problem: Problem, move: Move, start: Start, slope: float, t: float = 1.0, smallest: float = MIN_STEP,
    makes_progress: Callable[[], bool] | None = None,
) -> AcceptedStep | None:  # fmt: skip
    """Halve t until E(x(t)) ≤ E - c t slope [Armijo 1966].

    If the decrease is below the rounding error of the energy, a step is accepted when the residual decreases
    or, at the first t, when `makes_progress` returns True. Infinite and NaN energies never decrease.

    Args:
        problem: Problem whose u moves.
        move: Sets u to a point of the path.
        start: Start of the path.
        slope: f · x'(0) [J].
        t: First step.
        smallest: Smallest step as a fraction of the first one.
        makes_progress: Another test of progress toward the minimum. It is called after net forces were
            evaluated at u.

    Returns:
        The accepted step, with u there, or None if no t is acceptable.
    """
    first, least = t, smallest * t
    while t >= least:
        move(t)
        energy = problem.energy()
        change = energy - start.energy
        if change <= -ARMIJO * t * slope and change < -start.rounding:
            return AcceptedStep(t, energy)
        if abs(change) <= start.rounding:
            decreases = problem.balance().residual < start.residual
            if decreases or (makes_progress is not None and t == first and makes_progress()):
                return AcceptedStep(t, energy)
        t *= 0.5
    return None


def quarter_until_lower(
    problem: Problem, move: Move, start: Start, below: float, t: float
) -> AcceptedStep | None:
    """Quarter t until the energy is below `below` [J].

    Returns:
        The accepted step, with u there, or None if no t is acceptable.
    """
    for _ in range(MAX_QUARTERINGS):
        move(t)
        energy = problem.energy()
        if energy < below - start.rounding:
            return AcceptedStep(t, energy)
        t *= 0.25
    return None


def is_lower(problem: Problem, swept: AcceptedStep, start: Start, reached: AcceptedStep | None) -> bool:
    """True if u, with the energy of `swept`, is lower than the state reached.

    Energies that are equal up to rounding count as lower if the residual is smaller than at the start. If
    nothing was reached, the start is compared.
    """
    change = swept.energy - (start.energy if reached is None else reached.energy)
    if change < -start.rounding:
        return True
    return change <= start.rounding and problem.balance().residual < start.residual


def expand(problem: Problem, move: Move, start: Start, reached: AcceptedStep) -> AcceptedStep:
    """Double t while the decrease grows by the factor `MIN_GAIN_RATIO`: the quadratic model was too stiff.

    Returns:
        The longest accepted step, with u there.
    """
    while reached.t < MAX_STEP:
        move(2 * reached.t)
        doubled = AcceptedStep(2 * reached.t, problem.energy())
        gain, before = start.energy - doubled.energy, start.energy - reached.energy
        if not gain > MIN_GAIN_RATIO * before + start.rounding:
            move(reached.t)
            break
        reached = doubled
    return reached


def copy_u(problem: Problem) -> np.ndarray:
    """Return a copy of u in device memory."""
    member = problem.zeros(problem.u.shape)
    problem.device.assign(member, problem.u)
    return member


def straight_path(problem: Problem, d: np.ndarray) -> Callable[[float], None]:
    """Return the straight path from the problem's u along padded vectors d (n + 1, 4) [m]."""
    start, nothing = copy_u(problem), problem.zeros(problem.u.shape)

    def go(t: float) -> None:
        problem.device.apply_to_vectors(MoveAlongLine(problem.u, start, d, float(t), nothing))
        problem.dynamic_terms.limit_step(start)

    return go
