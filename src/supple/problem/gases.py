"""Sealed chambers of a problem, whose pressure follows the volume."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.model.model import with_term
from supple.problem.diagnostics import stiffness_of

if TYPE_CHECKING:
    from supple.problem.problem import Problem
    from supple.terms import SealedGas

NEWTON_STEPS = 5
"""Newton steps for the volume after a sweep."""


class Gases:
    """Chambers of a problem with a sealed amount of gas.

    Attributes:
        indices: Indices of their terms in the model.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.indices = [k for k, term in enumerate(problem.model.terms) if term.encloses]

    def __bool__(self) -> bool:
        return bool(self.indices)

    def set_gas(self, index: int, gas: SealedGas) -> None:
        """Replace the amount of gas in a chamber."""
        problem = self._problem
        problem.model = with_term(problem.model, index, gas)
        problem.layout.model = with_term(problem.layout.model, index, gas)
        problem.layout.set_pressure(index, float(gas.pressure[0]))

    def sync(self) -> None:
        """Set every pressure to p(V) at the present positions."""
        if self.indices:
            x = self._problem.positions
            for k in self.indices:
                gas = self._gas(k)
                self.set_gas(k, gas.at_volume(gas.volume_at(x)))

    def energies(self) -> dict[int, float]:
        """Return W(V) [J] of every chamber, keyed by the index of its term."""
        if not self.indices:
            return {}
        x = self._problem.positions
        return {k: self._gas(k).work_at(self._gas(k).volume_at(x)) for k in self.indices}

    def stiffness(self) -> list[tuple[np.ndarray, float]]:
        """Return ∂V/∂x (n, 3) [m²] and γ P/V [Pa/m³] of every chamber."""
        if not self.indices:
            return []
        x, gases = self._problem.positions, [self._gas(k) for k in self.indices]
        return [(gas.gradient_at(x), gas.stiffness_at(gas.volume_at(x))) for gas in gases]

    def each(self, iterations: int) -> Iterator[int]:
        """Split iterations into single ones, each with updated pressures."""
        if not self.indices:
            yield iterations
            return
        for _ in range(iterations):
            self.sync()
            yield 1

    def anticipate(self) -> None:
        """Set every pressure to the predicted pressure after the next sweep.

        With steps D⁻¹ (r + δp g) of all vertices, g = ∂V/∂x, the volume becomes V + g · D⁻¹ (r + δp g).
        A lagged pressure lets the volume oscillate if the gas is stiffer than the walls.
        """
        problem = self._problem
        problem.balance()
        stiffness, x = stiffness_of(problem.diagnostics), problem.positions
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
    """Solve p(V + ΔV) = p + (ΔV - change)/compliance for that pressure.

    Args:
        gas: Gas of the chamber.
        volume: Present volume V [m³].
        compliance: g · D⁻¹ g [m³/Pa].
        change: g · D⁻¹ r [m³], the change of volume at constant pressure.
    """
    now, ahead = gas.pressure_at(volume), 0.0
    for _ in range(NEWTON_STEPS if compliance > 0 and math.isfinite(change) else 0):
        trial_volume = volume + ahead
        mismatch = now - gas.pressure_at(trial_volume) + (ahead - change) / compliance
        ahead -= mismatch / (1 / compliance + gas.stiffness_at(trial_volume))
    return gas.pressure_at(volume + ahead)
