"""Neo-Hookean elasticity without a logarithm [PBNG eq. 8, BNH eq. 7, GPBD eq. 21]."""

from supple.algebra.matrix3 import (
    add_diagonal,
    cofactor,
    cofactor_differential,
    combine,
    contract,
    det,
    dot,
    matvec,
    outer,
    scaled,
)
from supple.materials.material import Isotropic, hessian_bound, psi, stress, stress_differential


class NeoHookean(Isotropic):
    """ψ = μ/2 (|F|² - 3) + λ̂/2 (J - 1)² - μ (J - 1), λ̂ = λ + μ, J = det F. Finite for every F.

    This is PBNG eq. 8, μ/2 |F|² + λ̂/2 (J - 1 - μ/λ̂)², shifted to be zero at rest.
    """

    __slots__ = ()


@psi.of(NeoHookean)
def _psi(material, F):
    growth = det(F) - 1.0
    shear = 0.5 * material.mu * (contract(F, F) - 3.0)
    return shear + (0.5 * (material.lam + material.mu) * growth - material.mu) * growth


@stress.of(NeoHookean)
def _stress(material, F):
    """P = μ F + (λ̂ (J - 1) - μ) cof F."""
    pressure = (material.lam + material.mu) * (det(F) - 1.0) - material.mu
    return combine(material.mu, F, pressure, cofactor(F))


@stress_differential.of(NeoHookean)
def _stress_differential(material, F, dF):
    C = cofactor(F)
    stiffness = material.lam + material.mu
    pressure = stiffness * (det(F) - 1.0) - material.mu
    volumetric = combine(stiffness * contract(C, dF), C, pressure, cofactor_differential(F, dF))
    return combine(material.mu, dF, 1.0, volumetric)


@hessian_bound.of(NeoHookean)
def _hessian_bound(material, F, g, h):
    """μ (g·h) I + λ̂ (cof F g)(cof F h)ᵀ: exact for one vertex, since J is affine in its position."""
    C = cofactor(F)
    volumetric = scaled(material.lam + material.mu, outer(matvec(C, g), matvec(C, h)))
    return add_diagonal(volumetric, material.mu * dot(g, h))
