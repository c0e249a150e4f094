"""St. Venant-Kirchhoff elasticity [PBCM eq. 15]."""

import math

from supple.algebra.isotropic import Cubic
from supple.algebra.matrix3 import (
    add_diagonal,
    combine,
    contract,
    dot,
    matmul,
    matvec,
    outer,
    scaled,
    transpose,
)
from supple.kernels import physics
from supple.materials.isotropic import Isotropic, stress_coefficients
from supple.materials.material import (
    bound_coefficients,
    hessian_bound,
    psi,
    stress_differential,
)


class StVK(Isotropic):
    """ψ = μ |E|² + λ/2 tr(E)², E = ½ (Fᵀ F - I). Finite for every F, but weak under strong compression."""

    __slots__ = ()


@physics
def green_strain(F):
    """E = ½ (Fᵀ F - I)."""
    return scaled(0.5, add_diagonal(matmul(transpose(F), F), -1.0))


@physics
def _second_piola(material, E):
    """S = 2μ E + λ tr(E) I."""
    return add_diagonal(scaled(2.0 * material.mu, E), material.lam * (E[0] + E[4] + E[8]))


@psi.of(StVK)
def _psi(material, F):
    E = green_strain(F)
    trace = E[0] + E[4] + E[8]
    return material.mu * contract(E, E) + 0.5 * material.lam * trace * trace


@stress_coefficients.of(StVK)
def _stress_coefficients(material, F):
    """P = F S = (λ tr(E) - μ) F + μ F Fᵀ F."""
    trace = 0.5 * (contract(F, F) - 3.0)
    return Cubic(material.lam * trace - material.mu, 0.0 * trace, material.mu)


@stress_differential.of(StVK)
def _stress_differential(material, F, dF):
    FtdF = matmul(transpose(F), dF)
    dE = combine(0.5, FtdF, 0.5, transpose(FtdF))
    S = _second_piola(material, green_strain(F))
    return combine(1.0, matmul(dF, S), 1.0, matmul(F, _second_piola(material, dE)))


@hessian_bound.of(StVK)
def _hessian_bound(material, F, g, h):
    """(|S| + μ/20)(g·h) I + μ (g·h) F Fᵀ + μ (F h)(F g)ᵀ + λ (F g)(F h)ᵀ.

    The exact block has g·S h in place of the first factor, which |S| bounds; μ/20 keeps the bound positive
    definite where F is singular. A negative λ is left out.
    """
    S = _second_piola(material, green_strain(F))
    gh = dot(g, h)
    Fg, Fh = matvec(F, g), matvec(F, h)
    shear = combine(material.mu * gh, matmul(F, transpose(F)), material.mu, outer(Fh, Fg))
    bound = combine(1.0, shear, max(material.lam, 0.0 * material.lam), outer(Fg, Fh))
    return add_diagonal(bound, (math.sqrt(contract(S, S)) + 0.05 * material.mu) * gh)


@bound_coefficients.of(StVK)
def _bound_coefficients(material, F):
    """|S| + μ (1 + |F|²/3) and λ: 2μ and λ at rest, growing with the strain as the exact Hessian does."""
    S = _second_piola(material, green_strain(F))
    shear = math.sqrt(contract(S, S)) + material.mu * (1.0 + contract(F, F) / 3.0)
    return shear, max(material.lam, 0.0 * material.lam)
