"""Gas sealed in chambers of a problem: one pressure for each, which follows the volume."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.model import with_term
from supple.problem.measures import stiffness_of

if TYPE_CHECKING:
    from supple.problem.problem import Problem
    from supple.terms import SealedGas

NEWTON_STEPS = 5
"""To the volume to which a sweep will lead."""


class Gases:
    """The chambers of a problem that hold a sealed amount of gas; indices: the numbers of their terms."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.indices = [k for k, term in enumerate(problem.model.terms) if term.encloses]

    def __bool__(self) -> bool:
        return bool(self.indices)

    def take(self, index: int, gas: SealedGas) -> None:
        """Exchange the amount of gas in a chamber."""
        problem = self._problem
        problem.model = with_term(problem.model, index, gas)
        problem.layout.model = with_term(problem.layout.model, index, gas)
        problem.layout.set_pressure(index, float(gas.pressure[0]))

    def sync(self) -> None:
        """Let every pressure be that of the present volume."""
        if self.indices:
            x = self._problem.positions
            for k in self.indices:
                gas = self._gas(k)
                self.take(k, gas.at_volume(gas.volume_at(x)))

    def energies(self) -> dict[int, float]:
        """W(V) [J] of every chamber, by the number of its term."""
        if not self.indices:
            return {}
        x = self._problem.positions
        return {k: self._gas(k).work_at(self._gas(k).volume_at(x)) for k in self.indices}

    def stiffness(self) -> list[tuple[np.ndarray, float]]:
        """∂V/∂x (n, 3) [m²] and γ P/V [Pa/m³] of every chamber: the Hessian has γ P/V ∂V/∂x ∂V/∂xᵀ."""
        if not self.indices:
            return []
        x, gases = self._problem.positions, [self._gas(k) for k in self.indices]
        return [(gas.gradient_at(x), gas.stiffness_at(gas.volume_at(x))) for gas in gases]

    def each(self, iterations: int) -> Iterator[int]:
        """Iterations between which pressures follow the volumes."""
        if not self.indices:
            yield iterations
            return
        for _ in range(iterations):
            self.sync()
            yield 1

    def anticipate(self) -> None:
        """Let every pressure be that of the volume to which a sweep will lead, as far as can be told: with
        steps D⁻¹ (r + δp g) of all vertices, g = ∂V/∂x, that is V + g · D⁻¹ r + δp g · D⁻¹ g. A pressure that
        lags behind lets the volume oscillate where gas is stiffer than walls."""
        problem = self._problem
        problem.balance()
        stiffness, x = stiffness_of(problem.measures), problem.positions
        softness = np.where(stiffness > 0, 1 / np.where(stiffness > 0, stiffness, 1.0), 0.0)[:, None]
        net = problem.states.vectors(problem.states.net)[0].astype(float)
        for k in self.indices:
            gas = self._gas(k)
            g, volume = gas.gradient_at(x) * problem.model.free[:, None], gas.volume_at(x)
            compliance, change = float((g * softness * g).sum()), float((g * softness * net).sum())
            problem.layout.set_pressure(k, _pressure_ahead(gas, volume, compliance, change))

    def _gas(self, index: int) -> SealedGas:
        gas: Any = self._problem.model.terms[index]
        return gas


def _pressure_ahead(gas: SealedGas, volume: float, compliance: float, change: float) -> float:
    """p(V + ΔV) where that is p + (ΔV - change)/compliance; Newton steps on this concave equation come to ΔV
    from below."""
    now, ahead = gas.pressure_at(volume), 0.0
    for _ in range(NEWTON_STEPS if compliance > 0 and math.isfinite(change) else 0):
        there = volume + ahead
        beyond = now - gas.pressure_at(there) + (ahead - change) / compliance
        ahead -= beyond / (1 / compliance + gas.stiffness_at(there))
    return gas.pressure_at(volume + ahead)
