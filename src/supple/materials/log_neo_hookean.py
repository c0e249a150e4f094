"""Neo-Hookean elasticity with a logarithmic barrier against inversion [GPBD eq. 20, PBCM section 4.1]."""

import math

from supple.algebra.isotropic_functions import Quadratic
from supple.algebra.matrix3 import (
    cofactor,
    cofactor_differential,
    combine,
    contract,
    det,
    dot,
    matvec,
)
from supple.materials.isotropic import Isotropic, stress_coefficients
from supple.materials.material import (
    bound_coefficients,
    inverse_square_safe_radius,
    psi,
    step_limit,
    stress_differential,
)


class LogNeoHookean(Isotropic):
    """ψ = μ/2 (|F|² - 3) - μ log J + λ/2 log² J, J = det F; infinite at J = 0, undefined for J < 0.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli μ and κ [Pa], both positive, in place of `young` and `poisson`.
    """

    __slots__ = ()
    barrier = True


@psi.of(LogNeoHookean)
def _psi(material, F):
    L = math.log(det(F))
    return 0.5 * material.mu * (contract(F, F) - 3.0) + (0.5 * material.lam * L - material.mu) * L


@stress_coefficients.of(LogNeoHookean)
def _stress_coefficients(material, F):
    """P = μ F + (λ log J - μ)/J cof F."""
    J = det(F)
    return Quadratic(material.mu, (material.lam * math.log(J) - material.mu) / J)


@stress_differential.of(LogNeoHookean)
def _stress_differential(material, F, dF):
    C = cofactor(F)
    J = det(F)
    slope = (material.lam * math.log(J) - material.mu) / J
    curvature = (material.lam / J - slope) / J
    volumetric = combine(curvature * contract(C, dF), C, slope, cofactor_differential(F, dF))
    return combine(material.mu, dF, 1.0, volumetric)


@bound_coefficients.of(LogNeoHookean)
def _bound_coefficients(material, F):
    """μ and |f″(J)| with f″ = (λ + μ - λ log J)/J²; exact for one vertex while f″ ≥ 0.

    At large J, ψ is not convex in J. A bound of 0 there would leave the forces of λ to the stiffness μ, and
    steps would overshoot by λ/μ.
    """
    J = det(F)
    curvature = (material.lam + material.mu - material.lam * math.log(J)) / (J * J)
    return material.mu, abs(curvature)


@inverse_square_safe_radius.of(LogNeoHookean)
def _inverse_square_safe_radius(material, F, g):
    """J keeps at least a tenth of its value over r = 0.9 J / |cof F g|."""
    slope, margin = matvec(cofactor(F), g), 0.9 * det(F)
    return dot(slope, slope) / (margin * margin)


@step_limit.of(LogNeoHookean)
def _step_limit(material, F, g, step):
    """J changes by t (cof F g)·step, so it keeps a tenth of its value up to t = 0.9 J / -(…)."""
    J = det(F)
    loss = -dot(matvec(cofactor(F), g), step)
    return 0.9 * J / max(loss, 0.9 * J)
