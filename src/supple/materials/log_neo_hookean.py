"""Neo-Hookean elasticity with a logarithmic barrier against inversion [GPBD eq. 20, PBCM section 4.1]."""

import math

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
from supple.materials.material import (
    Isotropic,
    hessian_bound,
    psi,
    step_limit,
    stress,
    stress_differential,
)


class LogNeoHookean(Isotropic):
    """ψ = μ/2 (|F|² - 3) - μ log J + λ/2 log² J, J = det F; infinite at J = 0, undefined for J < 0."""

    __slots__ = ()
    barrier = True


@psi.of(LogNeoHookean)
def _psi(material, F):
    L = math.log(det(F))
    return 0.5 * material.mu * (contract(F, F) - 3.0) + (0.5 * material.lam * L - material.mu) * L


@stress.of(LogNeoHookean)
def _stress(material, F):
    """P = μ F + (λ log J - μ)/J cof F."""
    J = det(F)
    return combine(material.mu, F, (material.lam * math.log(J) - material.mu) / J, cofactor(F))


@stress_differential.of(LogNeoHookean)
def _stress_differential(material, F, dF):
    C = cofactor(F)
    J = det(F)
    slope = (material.lam * math.log(J) - material.mu) / J
    curvature = (material.lam / J - slope) / J
    volumetric = combine(curvature * contract(C, dF), C, slope, cofactor_differential(F, dF))
    return combine(material.mu, dF, 1.0, volumetric)


@hessian_bound.of(LogNeoHookean)
def _hessian_bound(material, F, g, h):
    """μ (g·h) I + max(f″(J), 0) (cof F g)(cof F h)ᵀ with f″ = (λ + μ - λ log J)/J²; exact while f″ ≥ 0."""
    C = cofactor(F)
    J = det(F)
    curvature = (material.lam + material.mu - material.lam * math.log(J)) / (J * J)
    volumetric = scaled(max(curvature, 0.0 * J), outer(matvec(C, g), matvec(C, h)))
    return add_diagonal(volumetric, material.mu * dot(g, h))


@step_limit.of(LogNeoHookean)
def _step_limit(material, F, g, step):
    """J changes by t (cof F g)·step, so it stays above a tenth of its value up to t = 0.9 J / -(…)."""
    J = det(F)
    loss = -dot(matvec(cofactor(F), g), step)
    return 0.9 * J / max(loss, 0.9 * J)
