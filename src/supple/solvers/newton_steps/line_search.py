"""How far to go along a path that begins downhill."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from supple.problem import Problem

ARMIJO = 1e-4
"""Part of the decrease that the slope promises which a step must have."""

SMALLEST_STEP = 1e-6
"""Part of the first step below which none is tried."""

WORTHWHILE = 1.3
"""A step is doubled where that gains so many times as much."""

LONGEST = 64.0
"""Largest t of a step that is doubled."""

QUARTERINGS = 8
"""Steps that are tried along a direction of negative curvature, each a quarter of the last."""

Move = Callable[[float], None]
"""Takes the problem's u to t on a path."""


class Start(NamedTuple):
    """Where a path begins: energy E [J], what rounding may have changed in it [J], residual |r| [N]."""

    energy: float
    rounding: float
    residual: float

    @staticmethod
    def of(problem: Problem, residual: float) -> Start:
        """At the problem's u."""
        energy = problem.energy()
        return Start(energy, problem.measures.energy_rounding(), residual)


class Reached(NamedTuple):
    """How far a step went and the energy [J] there."""

    t: float
    energy: float


def backtrack(
    problem: Problem, move: Move, start: Start, slope: float, t: float = 1.0, smallest: float = SMALLEST_STEP,
    nearer: Callable[[], bool] | None = None,
) -> Reached | None:  # fmt: skip
    """Halve t until E(x(t)) ≤ E - c t slope [Armijo 1966], slope = r · x'(0) [J]; where the decrease drowns
    in rounding, until the residual decreases instead, or, at the first t, u is nearer the minimum by other
    means, with net forces known. u is then at t; None where no t will do. Energies that are infinite or NaN
    are no decrease."""
    first, least = t, smallest * t
    while t >= least:
        move(t)
        energy = problem.energy()
        change = energy - start.energy
        if change <= -ARMIJO * t * slope and change < -start.rounding:
            return Reached(t, energy)
        if abs(change) <= start.rounding:
            falls = problem.balance().residual < start.residual
            if falls or (nearer is not None and t == first and nearer()):
                return Reached(t, energy)
        t *= 0.5
    return None


def first_lower(problem: Problem, move: Move, start: Start, below: float, t: float) -> Reached | None:
    """Quarter t until the energy is lower than `below` [J]; u is then at t. None where no t will do."""
    for _ in range(QUARTERINGS):
        move(t)
        energy = problem.energy()
        if energy < below - start.rounding:
            return Reached(t, energy)
        t *= 0.25
    return None


def falls(problem: Problem, swept: Reached, start: Start, reached: Reached | None) -> bool:
    """Whether u, at the energy of `swept`, is lower than what was reached, or, as far as rounding lets one
    tell, at the same with smaller forces than at the start."""
    change = swept.energy - (start.energy if reached is None else reached.energy)
    if change < -start.rounding:
        return True
    return change <= start.rounding and problem.balance().residual < start.residual


def expand(problem: Problem, move: Move, start: Start, reached: Reached) -> Reached:
    """Double t while that gains much more: the quadratic model was too stiff. u is then at t."""
    while reached.t < LONGEST:
        move(2 * reached.t)
        further = Reached(2 * reached.t, problem.energy())
        gain, before = start.energy - further.energy, start.energy - reached.energy
        if not gain > WORTHWHILE * before + start.rounding:
            move(reached.t)
            break
        reached = further
    return reached
