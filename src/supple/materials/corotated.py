"""Fixed corotated elasticity [PBNG eq. 7]."""

import math

from supple.algebra.isotropic_functions import Cubic
from supple.algebra.matrix3 import cofactor, cofactor_differential, combine, contract, det, scale_matrix
from supple.algebra.rotation import rotation, rotation_coefficients, rotation_differential
from supple.kernels import rounding, where
from supple.materials.isotropic import Isotropic, stress_coefficients
from supple.materials.material import constraint_pair, psi, stress_differential


class Corotated(Isotropic):
    """ψ = μ |F - R|² + λ/2 (J - 1)², R the rotation of F = R S, J = det F. Finite for every F.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli μ and κ [Pa], both positive, in place of `young` and `poisson`.
    """

    __slots__ = ()


@psi.of(Corotated)
def _psi(material, F):
    """|F - R|² = |F|² - 2 R:F + 3, also for a rotation R that is not unique or not exactly orthogonal.

    The correction 3 - |R|² is dropped if it is within rounding; near rest it would dominate the energy.
    """
    R = rotation(F)
    D = combine(1.0, F, -1.0, R)
    missing = 3.0 - contract(R, R)
    significant = abs(missing) > 0.1 * math.sqrt(rounding(missing))
    shear = contract(D, D) + where(significant, missing, 0.0 * missing)
    volume_change = det(F) - 1.0
    return material.mu * shear + 0.5 * material.lam * volume_change * volume_change


@stress_coefficients.of(Corotated)
def _stress_coefficients(material, F):
    """P = 2μ (F - R) + λ (J - 1) cof F."""
    R = rotation_coefficients(F)
    stiffness = 2.0 * material.mu
    return Cubic(stiffness * (1.0 - R.a), material.lam * (det(F) - 1.0) - stiffness * R.b, -(stiffness * R.c))


@stress_differential.of(Corotated)
def _stress_differential(material, F, dF):
    C = cofactor(F)
    D = combine(1.0, dF, -1.0, rotation_differential(F, rotation(F), dF))
    volumetric = combine(contract(C, dF), C, det(F) - 1.0, cofactor_differential(F, dF))
    return combine(2.0 * material.mu, D, material.lam, volumetric)


PAIR_EPSILON = 1e-12
"""Regularization ε of the constraint √(|F - R|² + ε), which keeps it differentiable at F = R."""


@constraint_pair.of(Corotated)
def _constraint_pair(material, F):
    """√(|F - R|² + ε) with 2μ and J - 1 with λ [PXPBD eq. 5]; the derivative of the first is (F - R)/C."""
    D = combine(1.0, F, -1.0, rotation(F))
    C = math.sqrt(contract(D, D) + PAIR_EPSILON)
    return C, scale_matrix(1.0 / C, D), 2.0 * material.mu, det(F) - 1.0, cofactor(F), material.lam
