"""Loads of a problem that depend on its deformation: gas and tractions.

The pressure of sealed gas follows the volume of its chamber. Tractions that turn with their surface have a
load stiffness.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.model.model import with_term
from supple.problem.diagnostics import stiffness_of

if TYPE_CHECKING:
    from supple.problem.problem import Problem
    from supple.terms import SealedGas, Term

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

    def predict_pressures(self) -> None:
        """Set every pressure to the predicted pressure after the next sweep.

        With steps D⁻¹ (r + δp g) of all vertices, g = ∂V/∂x, the volume becomes V + g · D⁻¹ (r + δp g).
        With a lagged pressure, the volume oscillates if the gas is stiffer than the walls.
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


class FollowerLoads:
    """Forces f(u) of tractions that follow their surface; terms of the model hold them between updates.

    Held forces have the energy -f · u. The equilibrium of f(u) may be a saddle of that energy, or have none
    nearby: Newton's method needs the load stiffness K = ∂f/∂u.

    Attributes:
        indices: Indices of their terms in the model.
        time: Time [s] at which ramps are evaluated.
        fraction: Fraction of all follower loads that acts; below 1 in the load steps of a solver.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self.time, self.fraction = problem, math.inf, 1.0
        self._loads = {
            index: dynamic_term
            for index, dynamic_term in problem.model.dynamic_terms
            if dynamic_term.is_follower_load
        }
        self.indices = list(self._loads)

    def __bool__(self) -> bool:
        return bool(self.indices)

    @property
    def without_contact(self) -> bool:
        """True if there are follower loads, and no contacts change the problem meanwhile."""
        problem = self._problem
        others = len(problem.model.dynamic_terms) > len(self.indices) and any(
            dynamic_term.every for k, dynamic_term in problem.model.dynamic_terms if k not in self._loads
        )
        return bool(self) and not (others or problem.contacts or problem.trust_region)

    def set_term(self, index: int, term: Term) -> None:
        """Replace the held forces of a term."""
        problem = self._problem
        problem.device.wait()
        problem.model = with_term(problem.model, index, term)
        problem.layout.model = with_term(problem.layout.model, index, term)
        problem.layout.set_force(index, term.force)  # type: ignore[attr-defined]

    def copy_from(self, other: FollowerLoads) -> None:
        """Copy the held forces and the time from another problem with the same terms."""
        self.time, self.fraction = other.time, other.fraction
        for index in self.indices:
            self.set_term(index, other._problem.model.terms[index])

    def sync(self) -> None:
        """Hold the forces of the present positions."""
        if self.indices:
            x = self._problem.positions
            for index, load in self._loads.items():
                term: Any = self._problem.model.terms[index]
                self.set_term(index, replace(term, force=self.fraction * load.forces(x, self.time)))

    @property
    def magnitude(self) -> float:
        """Norm of all follower loads [N] at the present positions and full load factor."""
        x = self._problem.positions
        forces = [load.forces(x, self.time) for load in self._loads.values()]
        return math.sqrt(sum(float(np.square(force).sum()) for force in forces))

    def stiffness(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the triangles (k, 3) of every load, and K of each: blocks (k, 3, 3, 3) [N/m], the derivative
        of the force on any of its corners with respect to the position of each corner."""
        x = self._problem.positions
        for load in self._loads.values():
            triangles, blocks = load.load_stiffness(x, self.time)
            yield triangles, self.fraction * blocks
