"""Multiplicative plasticity of logarithmic strains with von Mises' yield [Simo 1992]."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from supple.materials.isotropic import LAM, MU, POISSON, YOUNG, Isotropic
from supple.materials.material import Material
from supple.materials.parameters import Parameter
from supple.materials.resting import Resting, inverse, know_what_the_base_knows, shrinking

YIELD = Parameter(
    "yield_stress", "von Mises stress from which it flows", "Pa", "σ_y", above=0, example=5e3,
    slider=(1e2, 1e8),
)  # fmt: skip
HARDENING = Parameter(
    "hardening", "yield stress gained per plastic strain", "Pa", "H", at_least=0, default=0.0,
    slider=(0.0, 1e6),
)  # fmt: skip
SHAPE = Parameter("plastic_shape", "shape at rest", symbol="Fₚ", kind="tensor", default=np.eye(3))
UNFLOWED = Parameter(
    "unflowed", "inverse of the shape at rest", symbol="Fₚ⁻¹", kind="tensor", default=np.eye(3), evolves=True
)
FLOWED = Parameter(
    "equivalent_plastic_strain", "how much it has flowed", symbol="ᾱ", at_least=0, default=0.0, evolves=True
)


LARGEST_STRAIN = 1e3
"""Norm of a logarithmic strain that nothing reaches; its square is finite in float32, too."""


class YieldingHencky(Material):
    """Incremental potential of a step of von Mises plasticity, in the trial stretches of F Fₚ⁻¹.

    With logarithmic strains ε, their deviator e, the norm at yield n_y = (σ_y + H ᾱ)/(√6 μ) and
    Δᾱ = √6 μ ⟨|e| - n_y⟩/(3μ + H), the flow of the step,

        ψ = μ |ε|² + λ/2 tr(ε)² - ½ (3μ + H) Δᾱ²,

    which is the elastic energy after radial return, the work of hardening and the dissipation
    (σ_y + H ᾱ) Δᾱ together [Ortiz and Stainier 1999]. Its gradient is the returned stress, its Hessian the
    algorithmic tangent.
    """

    __slots__ = ()

    parameters = stored = (MU, LAM, YIELD, HARDENING, FLOWED)

    def psi(self, stretches: Any) -> Any:
        x, y, z = (math.log(stretch) for stretch in stretches)
        trace = x + y + z
        mean = trace / 3.0
        square = (x - mean) * (x - mean) + (y - mean) * (y - mean) + (z - mean) * (z - mean)
        limit = self.yield_stress + self.hardening * self.equivalent_plastic_strain
        at_yield = min(limit / (math.sqrt(6.0) * self.mu), LARGEST_STRAIN)
        larger = max(square, at_yield * at_yield)
        beyond = (larger - at_yield * at_yield) / (math.sqrt(larger) + at_yield)
        elastic = self.mu * square + (0.5 * self.lam + self.mu / 3.0) * trace * trace
        return elastic - 3.0 * self.mu * self.mu / (3.0 * self.mu + self.hardening) * beyond * beyond


class PlasticHencky(Resting):
    """ψ = μ |εₑ|² + λ/2 tr(εₑ)² of the elastic logarithmic strains εₑ of Fₑ = F Fₚ⁻¹, with a plastic shape
    Fₚ, det Fₚ = 1, that flows.

    Where von Mises' √(3/2) |dev τ|, τ = 2μ εₑ + λ tr(εₑ) I, is larger than σ_y + H ᾱ in a step, it returns
    there along its radius within the step [Simo 1992, Box 9.1], so that volumes stay: forces are those after
    the return, and the energy of a step is that of `YieldingHencky`. Steps let it flow whatever time they
    take, and so do equilibria.
    """

    __slots__ = ()

    parameters = (YOUNG, POISSON, YIELD, HARDENING, SHAPE, FLOWED)
    stored = (*YieldingHencky.stored, UNFLOWED)
    base = YieldingHencky
    barrier: ClassVar[bool] = True
    relaxed: ClassVar[bool] = True
    rate_independent: ClassVar[bool] = True

    mu: Any
    lam: Any

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        elastic = Isotropic.store(young=parameters.pop("young"), poisson=parameters.pop("poisson"))
        shape = parameters.pop("plastic_shape")
        return elastic | parameters | {"unflowed": inverse(shape)}

    young, poisson = Isotropic.young, Isotropic.poisson

    @property
    def plastic_shape(self) -> Any:
        return inverse(self.unflowed)

    def flowed(self) -> np.ndarray | None:
        return np.atleast_1d(self.equivalent_plastic_strain)

    def evolve(self, F: np.ndarray, dt: float) -> dict[str, np.ndarray]:
        """Empty where nothing flows."""
        U, s, Vt = np.linalg.svd(F @ np.asarray(self.unflowed).reshape(-1, 3, 3))
        strain = np.log(np.maximum(s, 1e-300))
        mean = strain.mean(axis=1, keepdims=True)
        deviator = strain - mean
        mises = np.sqrt(6) * self.mu * np.linalg.norm(deviator, axis=1)
        beyond = mises - (self.yield_stress + self.hardening * self.equivalent_plastic_strain)
        flows = (beyond > 0) & (np.linalg.det(F) > 0)
        if not flows.any():
            return {}
        flow = np.where(flows, beyond / (3 * self.mu + self.hardening), 0.0)
        left = 1 - 3 * self.mu * flow / np.where(flows, mises, 1.0)
        elastic = (U * np.exp(mean + left[:, None] * deviator)[:, None, :]) @ Vt
        unflowed = np.array(self.unflowed)
        unflowed[flows] = np.linalg.solve(F[flows], elastic[flows]).reshape(-1, 9)
        return {
            "unflowed": unflowed,
            "equivalent_plastic_strain": self.equivalent_plastic_strain + flow,
        }


@shrinking.of(PlasticHencky)
def _shrinking(material):
    return material.unflowed


know_what_the_base_knows(PlasticHencky)
