"""Stable neo-Hookean elasticity with the logarithmic term [PBNG eq. 10, Smith et al. 2018]."""

import math

from supple.algebra.isotropic_functions import Quadratic
from supple.algebra.matrix3 import cofactor, cofactor_differential, combine, contract, det
from supple.kernels import device_function
from supple.materials.isotropic import Isotropic, stress_coefficients
from supple.materials.material import bound_coefficients, psi, stress_differential


class StableNeoHookean(Isotropic):
    """ψ = m/2 (|F|² - 3) + l/2 (J - α)² - m/2 log(1 + |F|²) - ψ₀, finite for every F.

    m = 4/3 μ, l = λ + 5/6 μ and α = 1 + 3m/(4l) match linear elasticity at rest; the constant ψ₀ = l/2 (1 -
    α)² - m/2 log 4 makes ψ zero there. (PBNG eq. 10 omits the factor l.)

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli μ and κ [Pa], both positive, in place of `young` and `poisson`.
    """

    __slots__ = ()


@device_function
def _constants(material):
    """(m, l, α - 1)."""
    m = (4.0 / 3.0) * material.mu
    l = material.lam + (5.0 / 6.0) * material.mu
    return m, l, 0.75 * m / l


@psi.of(StableNeoHookean)
def _psi(material, F):
    m, l, shift = _constants(material)
    I1 = contract(F, F)
    growth = det(F) - 1.0
    shear = 0.5 * m * (I1 - 3.0 - math.log(0.25 * (1.0 + I1)))
    return shear + 0.5 * l * growth * (growth - 2.0 * shift)


@stress_coefficients.of(StableNeoHookean)
def _stress_coefficients(material, F):
    """P = m (1 - 1/(1 + |F|²)) F + l (J - α) cof F."""
    m, l, shift = _constants(material)
    shear = m - m / (1.0 + contract(F, F))
    return Quadratic(shear, l * (det(F) - 1.0 - shift))


@stress_differential.of(StableNeoHookean)
def _stress_differential(material, F, dF):
    m, l, shift = _constants(material)
    C = cofactor(F)
    s = 1.0 / (1.0 + contract(F, F))
    shear = combine(m - m * s, dF, 2.0 * m * s * s * contract(F, dF), F)
    pressure = det(F) - 1.0 - shift
    volumetric = combine(contract(C, dF), C, pressure, cofactor_differential(F, dF))
    return combine(1.0, shear, l, volumetric)


@bound_coefficients.of(StableNeoHookean)
def _bound_coefficients(material, F):
    """9/8 m and l.

    The shear part of a vertex Hessian is m (1 - s)|g|² I + 2 m s² (F g)(F g)ᵀ with s = 1/(1 + |F|²). Its
    largest eigenvalue over m |g|² is at most 1 - s + 2 s² |F|², which peaks at 9/8 for |F|² = 3, the rest
    state.
    """
    m, l, _ = _constants(material)
    return 1.125 * m, l
