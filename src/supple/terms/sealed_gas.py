"""Gas sealed in a closed surface: the energy W(V) = -∫ p dV of P V^γ = const, P = p + p₀.

With γ = 1, W = p₀ (V - V₀) - P₀ V₀ ln(V/V₀); else W = p₀ (V - V₀) - P₀ V₀ (1 - (V₀/V)^(γ-1))/(γ - 1). W is
convex in V. Forces are p ∂V/∂x. The Hessian has -p ∂²V/∂x², as that of `Pressure`, and γ P/V ∂V/∂x ∂V/∂xᵀ,
which is of rank one and couples all vertices. Below `MIN_VOLUME_RATIO` V₀, W continues as its second-order
Taylor polynomial, so that inverted walls are pushed apart again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from supple.terms.pressure import Pressure

MIN_VOLUME_RATIO = 1e-3
"""Volume, relative to V₀, below which W is quadratic."""


@dataclass(frozen=True, eq=False)
class SealedGas(Pressure):
    """Gas sealed in closed triangles.

    Attributes:
        absolute: Absolute pressure P₀ [Pa] at the volume V₀.
        volume: Reference volume V₀ [m³].
        ambient: Ambient pressure p₀ [Pa].
        exponent: Polytropic exponent γ.

    The inherited `pressure` is p = P - p₀ at the volume of the last update.
    """

    absolute: float = 0.0
    volume: float = 0.0
    ambient: float = 0.0
    exponent: float = 1.0

    name: ClassVar[str] = "gas"
    encloses: ClassVar[bool] = True

    def volume_at(self, x: np.ndarray) -> float:
        """Return V [m³] for vertices at x (n, 3) [m]."""
        return volume_within(x, self.vertices)

    def gradient_at(self, x: np.ndarray) -> np.ndarray:
        """Return ∂V/∂x (n, 3) [m²], a third of the area vectors around each vertex."""
        a, b, c = np.moveaxis(x[self.vertices], 1, 0)
        third = np.cross(b - a, c - a) / 6
        corners = self.vertices.ravel()
        sums = [np.bincount(corners, np.repeat(third[:, i], 3), minlength=len(x)) for i in range(3)]
        return np.stack(sums, axis=1)

    def pressure_at(self, volume: float) -> float:
        """Return p(V) [Pa]."""
        least = max(volume, MIN_VOLUME_RATIO * self.volume)
        return self._absolute(least) - self.ambient + self._stiffness(least) * (least - volume)

    def stiffness_at(self, volume: float) -> float:
        """Return -dp/dV = γ P/V [Pa/m³]."""
        return self._stiffness(max(volume, MIN_VOLUME_RATIO * self.volume))

    def work_at(self, volume: float) -> float:
        """Return W(V) [J], which is 0 at V₀."""
        least = max(volume, MIN_VOLUME_RATIO * self.volume)
        log, missing = math.log1p((least - self.volume) / self.volume), volume - least
        power = self.exponent - 1
        work = log if power == 0 else -math.expm1(-power * log) / power
        outer = self.ambient * (least - self.volume) - self.absolute * self.volume * work
        gauge = self._absolute(least) - self.ambient
        return outer - gauge * missing + 0.5 * self._stiffness(least) * missing**2

    def _absolute(self, volume: float) -> float:
        return float(self.absolute * (self.volume / volume) ** self.exponent)

    def _stiffness(self, volume: float) -> float:
        return self.exponent * self._absolute(volume) / volume

    def at_volume(self, volume: float) -> SealedGas:
        """Return the gas with the pressure of a volume [m³]."""
        return replace(self, pressure=np.full_like(self.pressure, self.pressure_at(volume)))


def volume_within(x: np.ndarray, triangles: np.ndarray) -> float:
    """Return V = 1/6 Σ xₐ · (x_b × x_c) [m³] of closed triangles (k, 3) with points x (n, 3)."""
    corners = x[triangles]
    a, b, c = np.moveaxis(corners - corners.reshape(-1, 3).mean(axis=0), 1, 0)
    return float(np.einsum("ti,ti->", a, np.cross(b, c)) / 6)
