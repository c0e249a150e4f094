"""Neo-Hookean elasticity without a logarithm [PBNG eq. 8, BNH eq. 7, GPBD eq. 21]."""

import math

from supple.algebra.isotropic_functions import Quadratic
from supple.algebra.matrix3 import cofactor, cofactor_differential, combine, contract, det, scale_matrix
from supple.materials.isotropic import Isotropic, stress_coefficients
from supple.materials.material import bound_coefficients, constraint_pair, psi, stress_differential


class NeoHookean(Isotropic):
    """ψ = μ/2 (|F|² - 3) + λ̂/2 (J - 1)² - μ (J - 1), λ̂ = λ + μ, J = det F. Finite for every F.

    This is PBNG eq. 8, μ/2 |F|² + λ̂/2 (J - 1 - μ/λ̂)², shifted to zero at rest.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli μ and κ [Pa], both positive, in place of `young` and `poisson`.
    """

    __slots__ = ()


@psi.of(NeoHookean)
def _psi(material, F):
    growth = det(F) - 1.0
    shear = 0.5 * material.mu * (contract(F, F) - 3.0)
    return shear + (0.5 * (material.lam + material.mu) * growth - material.mu) * growth


@stress_coefficients.of(NeoHookean)
def _stress_coefficients(material, F):
    """P = μ F + (λ̂ (J - 1) - μ) cof F."""
    pressure = (material.lam + material.mu) * (det(F) - 1.0) - material.mu
    return Quadratic(material.mu, pressure)


@stress_differential.of(NeoHookean)
def _stress_differential(material, F, dF):
    C = cofactor(F)
    stiffness = material.lam + material.mu
    pressure = stiffness * (det(F) - 1.0) - material.mu
    volumetric = combine(stiffness * contract(C, dF), C, pressure, cofactor_differential(F, dF))
    return combine(material.mu, dF, 1.0, volumetric)


@bound_coefficients.of(NeoHookean)
def _bound_coefficients(material, F):
    """μ and λ̂: exact for one vertex, since J is affine in its position."""
    return material.mu, material.lam + material.mu


@constraint_pair.of(NeoHookean)
def _constraint_pair(material, F):
    """J - γ with λ̂, γ = 1 + μ/λ̂, and √(tr Fᵀ F) with μ [BNH eq. 8, 9]; neither vanishes at rest."""
    stiffness = material.lam + material.mu
    norm = math.sqrt(contract(F, F))
    gamma = 1.0 + material.mu / stiffness
    return det(F) - gamma, cofactor(F), stiffness, norm, scale_matrix(1.0 / norm, F), material.mu
