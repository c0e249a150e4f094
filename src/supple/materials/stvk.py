"""St. Venant-Kirchhoff elasticity [PBCM section 4.1, eq. 4-7]."""

import math

import numpy as np

from supple.algebra.isotropic_functions import Cubic
from supple.algebra.matrix3 import (
    add_diagonal,
    combine,
    contract,
    dot,
    matmul,
    matvec,
    outer,
    scale_matrix,
    transpose,
)
from supple.kernels import device_function
from supple.materials.isotropic import Isotropic, stress_coefficients
from supple.materials.material import bound_coefficients, hessian_bound, psi, stress_differential
from supple.materials.parameters import SYMMETRIC_ENTRIES


class StVK(Isotropic):
    """ψ = μ |E|² + λ/2 tr(E)², E = ½ (Fᵀ F - I). Finite for every F, but weak under strong compression.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli μ and κ [Pa], both positive, in place of `young` and `poisson`.
    """

    __slots__ = ()
    clamp = 0.577  # 1/√3, the stretch of maximum compressive stress


def green_strains(F: np.ndarray) -> np.ndarray:
    """(m, 6) E = ½ (Fᵀ F - I) of deformation gradients (m, 3, 3)."""
    return (0.5 * (F.transpose(0, 2, 1) @ F - np.eye(3))).reshape(-1, 9)[:, SYMMETRIC_ENTRIES]


@device_function
def green_strain(F):
    """E = ½ (Fᵀ F - I)."""
    return scale_matrix(0.5, add_diagonal(matmul(transpose(F), F), -1.0))


@device_function
def second_piola(material, E):
    """S = 2μ E + λ tr(E) I."""
    return add_diagonal(scale_matrix(2.0 * material.mu, E), material.lam * (E[0] + E[4] + E[8]))


@device_function
def strain_energy(material, E):
    """μ |E|² + λ/2 tr(E)²."""
    trace = E[0] + E[4] + E[8]
    return material.mu * contract(E, E) + 0.5 * material.lam * trace * trace


@device_function
def differential(material, F, dF, S):
    """δP = δF S + F δS."""
    FtdF = matmul(transpose(F), dF)
    dE = combine(0.5, FtdF, 0.5, transpose(FtdF))
    return combine(1.0, matmul(dF, S), 1.0, matmul(F, second_piola(material, dE)))


@device_function
def bound(material, F, S, g, h):
    """(|S| + μ/20)(g·h) I + μ (g·h) F Fᵀ + μ (F h)(F g)ᵀ + λ (F g)(F h)ᵀ.

    The exact block has g·S h instead of |S| (g·h), its bound. μ/20 keeps the result positive definite for
    singular F. A negative λ is replaced by 0.
    """
    gh = dot(g, h)
    Fg, Fh = matvec(F, g), matvec(F, h)
    shear = combine(material.mu * gh, matmul(F, transpose(F)), material.mu, outer(Fh, Fg))
    block = combine(1.0, shear, max(material.lam, 0.0 * material.lam), outer(Fg, Fh))
    return add_diagonal(block, (math.sqrt(contract(S, S)) + 0.05 * material.mu) * gh)


@psi.of(StVK)
def _psi(material, F):
    return strain_energy(material, green_strain(F))


@stress_coefficients.of(StVK)
def _stress_coefficients(material, F):
    """P = F S = (λ tr(E) - μ) F + μ F Fᵀ F."""
    trace = 0.5 * (contract(F, F) - 3.0)
    return Cubic(material.lam * trace - material.mu, 0.0 * trace, material.mu)


@stress_differential.of(StVK)
def _stress_differential(material, F, dF):
    return differential(material, F, dF, second_piola(material, green_strain(F)))


@hessian_bound.of(StVK)
def _hessian_bound(material, F, g, h):
    return bound(material, F, second_piola(material, green_strain(F)), g, h)


@device_function
def coefficients(material, F, S):
    """|S| + μ (1 + |F|²/3) and λ: 2μ and λ at rest, growing with the strain like the exact Hessian."""
    shear = math.sqrt(contract(S, S)) + material.mu * (1.0 + contract(F, F) / 3.0)
    return shear, max(material.lam, 0.0 * material.lam)


@bound_coefficients.of(StVK)
def _bound_coefficients(material, F):
    return coefficients(material, F, second_piola(material, green_strain(F)))
