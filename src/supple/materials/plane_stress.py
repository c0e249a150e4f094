"""Isotropic materials of thin sheets under plane stress.

The kinematic F = Σ xₐ gₐᵀ + n n₀ᵀ of a sheet keeps the thickness constant. Here ψ(F) is the minimum of the
energy over all thicknesses: plane stress. ψ depends on the in-plane part of F only: |F|² - 1 and J = det F
are the sum of squares and the product of the two in-plane stretches.
"""

from __future__ import annotations

from typing import Any, ClassVar

from supple.algebra.isotropic_functions import Quadratic
from supple.algebra.matrix3 import cofactor, cofactor_differential, combine, contract, det
from supple.kernels import device_function
from supple.materials.corotated import Corotated
from supple.materials.isotropic import Isotropic, stress_coefficients
from supple.materials.material import bound_coefficients, psi, stress_differential
from supple.materials.stvk import StVK


class PlaneStress(Isotropic):
    """An isotropic energy density of sheets, given by Young's modulus E [Pa] and Poisson's ratio ν.

    Stored are the Lamé parameters of plane stress, μ = E / (2 (1 + ν)) and λ = E ν / (1 - ν²) [Pa]: with them
    the Hessian at F = I equals in-plane linear elasticity. `lam` and `bulk_modulus` of the constructor and of
    scene files are those of the solid, λ = E ν / ((1 + ν)(1 - 2 ν)).

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters of the solid, μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli of the solid, μ and κ [Pa], both positive, in place of `young` and
            `poisson`.
    """

    __slots__ = ()
    thin: ClassVar[bool] = True

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        E, nu = parameters["young"], parameters["poisson"]
        return {"mu": E / (2 * (1 + nu)), "lam": E * nu / (1 - nu * nu)}

    @property
    def young(self) -> Any:
        """Young's modulus E = 4μ (λ + μ) / (λ + 2μ) [Pa]."""
        return 4 * self.mu * (self.lam + self.mu) / (self.lam + 2 * self.mu)

    @property
    def poisson(self) -> Any:
        """Poisson's ratio ν = λ / (λ + 2μ)."""
        return self.lam / (self.lam + 2 * self.mu)


class PlaneStressStVK(PlaneStress, StVK):
    """ψ = μ |E|² + λ/2 tr(E)², E = ½ (Fᵀ F - I) in the plane: St. Venant-Kirchhoff with S₃₃ = 0.

    Parameters are uniform, or arrays with one entry per triangle.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters of the solid, μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli of the solid, μ and κ [Pa], both positive, in place of `young` and
            `poisson`.
    """

    __slots__ = ()


class PlaneStressCorotated(PlaneStress, Corotated):
    """ψ = μ |F - R|² + λ/2 (J - 1)² [PBNG eq. 36]: fixed corotated, plane stress where strains are small.

    Parameters are uniform, or arrays with one entry per triangle.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters of the solid, μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli of the solid, μ and κ [Pa], both positive, in place of `young` and
            `poisson`.
    """

    __slots__ = ()


class PlaneStressNeoHookean(PlaneStress):
    """ψ = μ/2 (|F|² - 4 + (1 + 2r - r J²)/(r + J²)), r = 1 - 2ν: neo-Hookean with P₃₃ = 0.

    The minimum of μ/2 (|F|² - 3) + λ̂/2 (J - 1)² - μ (J - 1), λ̂ = μ/r, over the stretch across the sheet,
    attained at J (λ̂ + μ)/(μ + λ̂ J²). For ν → ½ it is the energy of rubber balloons, μ/2 (s² + t² + 1/(s t)²
    - 3).

    Parameters are uniform, or arrays with one entry per triangle.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters of the solid, μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli of the solid, μ and κ [Pa], both positive, in place of `young` and
            `poisson`.
    """

    __slots__ = ()


@device_function
def _slack(material):
    """r = 1 - 2ν."""
    return (2.0 * material.mu - material.lam) / (2.0 * material.mu + material.lam)


@device_function
def _pressure(material, J):
    """q = J (1 + r)²/(r + J²)² and its derivative: P = μ (F - q cof F)."""
    r = _slack(material)
    inverse = 1.0 / (r + J * J)
    factor = (1.0 + r) * (1.0 + r) * inverse * inverse
    return factor * J, factor * inverse * (r - 3.0 * J * J)


@psi.of(PlaneStressNeoHookean)
def _psi(material, F):
    r, J = _slack(material), det(F)
    return 0.5 * material.mu * (contract(F, F) - 4.0 + (1.0 + 2.0 * r - r * J * J) / (r + J * J))


@stress_coefficients.of(PlaneStressNeoHookean)
def _stress_coefficients(material, F):
    q, _ = _pressure(material, det(F))
    return Quadratic(material.mu, -(material.mu * q))


@stress_differential.of(PlaneStressNeoHookean)
def _stress_differential(material, F, dF):
    C = cofactor(F)
    q, slope = _pressure(material, det(F))
    volumetric = combine(slope * contract(C, dF), C, q, cofactor_differential(F, dF))
    return combine(material.mu, dF, -material.mu, volumetric)


@bound_coefficients.of(PlaneStressNeoHookean)
def _bound_coefficients(material, F):
    """μ and μ |q'|: exact for one vertex while q falls with J.

    For rising q a bound of 0 would leave the pressure forces to the stiffness μ.
    """
    _, slope = _pressure(material, det(F))
    return material.mu, material.mu * abs(slope)
