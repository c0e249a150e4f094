"""Fixed corotated elasticity [PBNG eq. 7]."""

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
from supple.algebra.rotation import rotation, rotation_differential
from supple.materials.material import Isotropic, hessian_bound, psi, stress, stress_differential


class Corotated(Isotropic):
    """ψ = μ |F - R|² + λ/2 (J - 1)², R the rotation of F = R S, J = det F. Finite for every F."""

    __slots__ = ()


@psi.of(Corotated)
def _psi(material, F):
    D = combine(1.0, F, -1.0, rotation(F))
    volume_change = det(F) - 1.0
    return material.mu * contract(D, D) + 0.5 * material.lam * volume_change * volume_change


@stress.of(Corotated)
def _stress(material, F):
    """P = 2μ (F - R) + λ (J - 1) cof F."""
    D = combine(1.0, F, -1.0, rotation(F))
    return combine(2.0 * material.mu, D, material.lam * (det(F) - 1.0), cofactor(F))


@stress_differential.of(Corotated)
def _stress_differential(material, F, dF):
    C = cofactor(F)
    D = combine(1.0, dF, -1.0, rotation_differential(F, rotation(F), dF))
    volumetric = combine(contract(C, dF), C, det(F) - 1.0, cofactor_differential(F, dF))
    return combine(2.0 * material.mu, D, material.lam, volumetric)


@hessian_bound.of(Corotated)
def _hessian_bound(material, F, g, h):
    """2μ (g·h) I + λ (cof F g)(cof F h)ᵀ [PBNG eq. 32]; what is left out, -2μ δR and λ < 0, lowers it."""
    C = cofactor(F)
    volumetric = scaled(max(material.lam, 0.0 * material.lam), outer(matvec(C, g), matvec(C, h)))
    return add_diagonal(volumetric, 2.0 * material.mu * dot(g, h))
