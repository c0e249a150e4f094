"""Multiplicative von Mises plasticity in logarithmic strains [Simo 1992]."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from supple.materials.isotropic import Isotropic
from supple.materials.material import Material
from supple.materials.moduli import LAM, MU, POISSON, YOUNG
from supple.materials.parameters import Parameter
from supple.materials.rest_deformation import (
    InelasticMaterial,
    inverse,
    inverse_rest_deformation,
    register_base_functions,
)

YIELD = Parameter(
    "yield_stress", "von Mises stress at which plastic flow begins", "Pa", "σ_y", above=0, example=5e3,
    slider=(1e2, 1e8),
)  # fmt: skip
HARDENING = Parameter(
    "hardening", "yield stress gained per plastic strain", "Pa", "H", at_least=0, default=0.0,
    slider=(0.0, 1e6),
)  # fmt: skip
SHAPE = Parameter("plastic_shape", "shape at rest", symbol="Fₚ", kind="tensor", default=np.eye(3))
INVERSE_PLASTIC_DEFORMATION = Parameter(
    "unflowed", "inverse of the shape at rest", symbol="Fₚ⁻¹", kind="tensor", default=np.eye(3), evolves=True
)
EQUIVALENT_PLASTIC_STRAIN = Parameter(
    "equivalent_plastic_strain",
    "accumulated plastic strain",
    symbol="ᾱ",
    at_least=0,
    default=0.0,
    evolves=True,
)


LARGEST_STRAIN = 1e3
"""Upper bound of the yield strain norm, beyond any logarithmic strain and with a finite square in float32."""


class YieldingHencky(Material):
    """Incremental potential of a step of von Mises plasticity, in the trial stretches of F Fₚ⁻¹.

    With logarithmic strains ε, their deviator e, the norm at yield n_y = (σ_y + H ᾱ)/(√6 μ) and the plastic
    strain increment Δᾱ = √6 μ ⟨|e| - n_y⟩/(3μ + H),

        ψ = μ |ε|² + λ/2 tr(ε)² - ½ (3μ + H) Δᾱ².

    This is the sum of the elastic energy after radial return, the hardening energy and the dissipation (σ_y +
    H ᾱ) Δᾱ [Ortiz and Stainier 1999]. Its gradient is the returned stress, its Hessian the algorithmic
    tangent.
    """

    __slots__ = ()

    parameters = stored = (MU, LAM, YIELD, HARDENING, EQUIVALENT_PLASTIC_STRAIN)

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


class PlasticHencky(InelasticMaterial):
    """ψ = μ |εₑ|² + λ/2 tr(εₑ)² of the elastic logarithmic strains εₑ of Fₑ = F Fₚ⁻¹; Fₚ flows.

    If von Mises' stress √(3/2) |dev τ|, τ = 2μ εₑ + λ tr(εₑ) I, exceeds σ_y + H ᾱ, it is returned radially
    within the step [Simo 1992, Box 9.1]. The plastic deformation Fₚ preserves volume, det Fₚ = 1. Forces are
    evaluated after the return, with the step's energy `YieldingHencky`. The flow is rate-independent: it also
    occurs in equilibria.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        yield_stress: Von Mises stress σ_y at first yield [Pa], positive.
        hardening: Isotropic hardening modulus H [Pa], not negative.
        plastic_shape: Initial plastic deformation Fₚ, (3, 3) or (m, 3, 3); by default the identity.
        equivalent_plastic_strain: Initial equivalent plastic strain ᾱ, not negative.
        mu, lam: Lamé parameters [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli [Pa], in place of `young` and `poisson`.
    """

    __slots__ = ()

    parameters = (YOUNG, POISSON, YIELD, HARDENING, SHAPE, EQUIVALENT_PLASTIC_STRAIN)
    stored = (*YieldingHencky.stored, INVERSE_PLASTIC_DEFORMATION)
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
        """Plastic deformation Fₚ, a row-major 9-tuple, or (m, 9)."""
        return inverse(self.unflowed)

    def plastic_strains(self) -> np.ndarray | None:
        """Return the equivalent plastic strain ᾱ.

        Returns:
            (m,) ᾱ; (1,) for uniform values.
        """
        return np.atleast_1d(self.equivalent_plastic_strain)

    def evolve(self, F: np.ndarray, dt: float) -> dict[str, np.ndarray]:
        """Apply the plastic flow of a step by radial return.

        Args:
            F: (m, 3, 3) deformation gradients.
            dt: Time step [s], without effect: the flow is rate-independent.

        Returns:
            Fₚ⁻¹ (m, 9) as "unflowed" and ᾱ (m,) as "equivalent_plastic_strain"; empty if no element yields.
        """
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


@inverse_rest_deformation.of(PlasticHencky)
def _inverse_rest_deformation(material):
    return material.unflowed


register_base_functions(PlasticHencky)
