"""Chebyshev semi-iterative acceleration of a sweep [PBNG section 7.3, Wang 2015]."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import enter, inside, leave, number, physics, proceed, strides
from supple.solvers.problem import Balance, Problem

BLOCK = 256
"""Vertices that are one item of work."""

GROWTH = 4.0
"""How far the residual may rise above its lowest before the acceleration starts over."""


class Acceleration(NamedTuple):
    """weights (iterations,): ω of each sweep, 0 for none; gamma; current xˡ and previous xˡ⁻¹ records."""

    weights: Any
    gamma: Any
    current: Any
    previous: Any


def no_acceleration(iterations: int, u: np.ndarray) -> Acceleration:
    return Acceleration(np.zeros(iterations), 1.0, u, u)


@physics
def extrapolate(team, phase, acceleration, iteration, u):
    """x ← ω (γ (x_sweep - xˡ) + xˡ - xˡ⁻¹) + xˡ⁻¹, then xˡ⁻¹ ← xˡ and xˡ ← x."""
    omega, gamma = acceleration.weights[iteration], acceleration.gamma
    current, previous = acceleration.current, acceleration.previous
    blocks = -(-len(u) // BLOCK)
    block = enter(team, phase, 0, blocks)
    while inside(block, blocks):
        first, step = strides(block)
        start = number(block) * BLOCK
        i, last = start + first, min(len(u), start + BLOCK)
        while i < last:
            for axis in range(3):
                here, before = current[i, axis], previous[i, axis]
                x = omega * (gamma * (u[i, axis] - here) + here - before) + before
                previous[i, axis], current[i, axis], u[i, axis] = here, x, x
            i += step
        block = proceed(team, phase, block, 0, blocks)
    leave(team, phase, 0, blocks)


class Chebyshev:
    """The weights ω₁ = 1, ω₂ = 2/(2 - ρ²), ωₗ₊₁ = 4/(4 - ρ² ωₗ) from sweep `start` on, and a safeguard:
    when the residual rises, the weights start over with an estimate ρ further from 1; once ρ is 0, which is
    no acceleration, it may rise as it does without one."""

    def __init__(self, rho: float, gamma: float, start: int, problem: Problem) -> None:
        self.rho, self.gamma, self.start = rho, gamma, start
        self.problem, u = problem, problem.u
        problem.pull(u)
        self.current, self.previous = u.copy(), u.copy()
        self._best, self._best_residual = u.copy(), np.inf
        self._sweep = 0
        self._omega = 1.0
        self.restarts = 0

    @property
    def notes(self) -> list[str]:
        if not self.restarts:
            return []
        return [f"Chebyshev acceleration started over {self.restarts} times because the residual rose"]

    def rows(self, iterations: int) -> Acceleration:
        """The acceleration of the next sweeps."""
        weights = np.ones(iterations)
        for i in range(iterations):
            if self._sweep > self.start:
                square = self.rho * self.rho
                self._omega = (
                    2 / (2 - square) if self._sweep == self.start + 1 else 4 / (4 - square * self._omega)
                )
                weights[i] = self._omega
            self._sweep += 1
        return Acceleration(weights, self.gamma, self.current, self.previous)

    def observe(self, balance: Balance) -> bool:
        """Remember the best u, or go back to it and start over; True when it went back."""
        if balance.finite and balance.residual < self._best_residual:
            self.problem.assign(self._best, self.problem.u)
            self._best_residual = balance.residual
            return False
        harmless = balance.residual < GROWTH * self._best_residual or self._sweep <= self.start
        if balance.finite and (harmless or self.rho == 0):
            return False
        for array in (self.problem.u, self.current, self.previous):
            self.problem.assign(array, self._best)
        self._sweep, self._omega = 0, 1.0
        self.rho = max(0.0, 1 - 4 * (1 - self.rho))
        self.gamma = 0.5 * (self.gamma + 1.0) if self.gamma > 1 else self.gamma
        self.restarts += 1
        return True
