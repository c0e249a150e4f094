"""St. Venant-Kirchhoff elasticity with plastic strains [PBCM section 4.2]."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.algebra.matrix3 import combine, matmul
from supple.kernels import device_function
from supple.materials.isotropic import Isotropic
from supple.materials.material import (
    Material,
    bound_coefficients,
    hessian_bound,
    psi,
    shear_modulus,
    stress,
    stress_differential,
)
from supple.materials.moduli import LAM, MU, POISSON, YOUNG
from supple.materials.parameters import Parameter
from supple.materials.stvk import (
    bound,
    coefficients,
    differential,
    green_strain,
    green_strains,
    second_piola,
    strain_energy,
)

YIELD = Parameter(
    "yield_strain", "elastic strain at which plastic flow begins", symbol="γ_yield", at_least=0, example=0.05,
    slider=(0.0, 0.5),
)  # fmt: skip
CREEP = Parameter("creep", "rate of flow", "1/s", "γ_creep", at_least=0, example=10.0, slider=(0.0, 100.0))
MAX_STRAIN = Parameter(
    "max_plastic_strain", "largest plastic strain", symbol="γ_max", above=0, default=1e6, slider=(0.01, 1.0)
)
PLASTIC = Parameter(
    "plastic_strain", "plastic strain", symbol="εₚ", kind="symmetric", default=np.zeros((3, 3)), evolves=True
)


class PlasticStVK(Material):
    """ψ = μ |E - εₚ|² + λ/2 tr(E - εₚ)², E = ½ (Fᵀ F - I), with plastic strains εₚ that flow.

    After each step Δt, elements whose deviatoric elastic strain e has a norm above yield_strain flow: εₚ
    increases by min(Δt · creep, 1) e, and its norm is limited by max_plastic_strain [PBCM section 4.2]. The
    flow takes time: an equilibrium keeps the initial plastic strains.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        yield_strain: Norm of the deviatoric elastic strain at first yield, not negative.
        creep: Rate of flow [1/s], not negative.
        max_plastic_strain: Largest norm of εₚ, positive.
        plastic_strain: Initial plastic strain εₚ, symmetric, (3, 3) or (m, 3, 3); by default 0.
        mu, lam: Lamé parameters [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli [Pa], in place of `young` and `poisson`.
    """

    __slots__ = ()

    parameters = (YOUNG, POISSON, YIELD, CREEP, MAX_STRAIN, PLASTIC)
    stored = (MU, LAM, YIELD, CREEP, MAX_STRAIN, PLASTIC)

    mu: Any
    lam: Any
    yield_strain: Any
    creep: Any
    max_plastic_strain: Any
    plastic_strain: Any

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        elastic = Isotropic.store(young=parameters.pop("young"), poisson=parameters.pop("poisson"))
        return elastic | parameters

    young, poisson = Isotropic.young, Isotropic.poisson

    def evolve(self, F: np.ndarray, dt: float) -> dict[str, np.ndarray]:
        """Apply the plastic flow of a step.

        Args:
            F: (m, 3, 3) deformation gradients.
            dt: Time step [s].

        Returns:
            εₚ (m, 6) as "plastic_strain"; empty if no element yields.
        """
        strain = green_strains(F) - self.plastic_strain
        strain[:, :3] -= strain[:, :3].mean(axis=1, keepdims=True)
        flows = norm(strain) > self.yield_strain
        if not flows.any():
            return {}
        plastic = self.plastic_strain + np.minimum(dt * self.creep * flows, flows)[:, None] * strain
        most = np.broadcast_to(self.max_plastic_strain, len(plastic))
        return {"plastic_strain": plastic * np.minimum(1, most / np.maximum(norm(plastic), most))[:, None]}

    def plastic_strains(self) -> np.ndarray | None:
        """Return the equivalent plastic strain √(2/3) |εₚ|.

        Returns:
            (m,) strains; (1,) for a uniform plastic strain.
        """
        return np.sqrt(2 / 3) * norm(np.atleast_2d(self.plastic_strain))


def norm(strain: np.ndarray) -> np.ndarray:
    """Frobenius norm of symmetric matrices (m, 6) as xx yy zz xy xz yz."""
    return np.sqrt((strain[:, :3] ** 2).sum(axis=1) + 2 * (strain[:, 3:] ** 2).sum(axis=1))


@device_function
def _elastic_strain(material, F):
    E, p = green_strain(F), material.plastic_strain
    return combine(1.0, E, -1.0, (p[0], p[3], p[4], p[3], p[1], p[5], p[4], p[5], p[2]))


@psi.of(PlasticStVK)
def _psi(material, F):
    return strain_energy(material, _elastic_strain(material, F))


@stress.of(PlasticStVK)
def _stress(material, F):
    """P = F S(E - εₚ)."""
    return matmul(F, second_piola(material, _elastic_strain(material, F)))


@stress_differential.of(PlasticStVK)
def _stress_differential(material, F, dF):
    return differential(material, F, dF, second_piola(material, _elastic_strain(material, F)))


@hessian_bound.of(PlasticStVK)
def _hessian_bound(material, F, g, h):
    return bound(material, F, second_piola(material, _elastic_strain(material, F)), g, h)


@bound_coefficients.of(PlasticStVK)
def _bound_coefficients(material, F):
    return coefficients(material, F, second_piola(material, _elastic_strain(material, F)))


@shear_modulus.of(PlasticStVK)
def _shear_modulus(material):
    return material.mu
