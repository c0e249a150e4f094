"""Base class of isotropic materials: E and ν as parameters, Lamé parameters in kernels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from supple.algebra.isotropic_functions import matrix_of, times
from supple.kernels import generic
from supple.materials.material import Material, bound_coefficients, shear_modulus, stress, traction
from supple.materials.moduli import LAM, MU, POISSON, YOUNG, check_lame, lame_parameters, split_moduli


class Isotropic(Material):
    """An isotropic energy density ψ(F), given by Young's modulus E [Pa] and Poisson's ratio ν.

    Lamé parameters or shear and bulk modulus of the same solid are accepted instead:
    `NeoHookean(young=1e5, poisson=0.4)` or `(E=, nu=)`, `(mu=, lam=)`, `(shear_modulus=, bulk_modulus=)`.

    The Lamé parameters [Pa] are μ = E / (2 (1 + ν)) and λ = E ν / ((1 + ν)(1 - 2 ν)) [PBNG eq. 9]. Every
    subclass re-parametrizes its energy so that its Hessian at F = I equals linear elasticity with these
    moduli.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli μ and κ [Pa], both positive, in place of `young` and `poisson`.
    """

    __slots__ = ()

    parameters = (YOUNG, POISSON)
    stored = (MU, LAM)
    isotropic: ClassVar[bool] = True

    mu: Any
    lam: Any

    def __new__(cls, **given: Any) -> Self:
        pair, _ = split_moduli(cls, given)
        if not pair or cls.thin or cls.stored != Isotropic.stored:
            return super().__new__(cls, **given)
        mu, lam = lame_parameters(pair)  # exact, without rounding by way of E and ν
        return cls.of_stored(mu=mu, lam=lam)

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        E, nu = parameters["young"], parameters["poisson"]
        return {"mu": E / (2 * (1 + nu)), "lam": E * nu / ((1 + nu) * (1 - 2 * nu))}

    @classmethod
    def of_stored(cls, **given: Any) -> Self:
        """Construct from the Lamé parameters of linear elasticity.

        Args:
            **given: μ > 0 as `mu` and λ > -2μ/3 as `lam` [Pa], per body or per element.

        Returns:
            The material.
        """
        values = cls._check_parameters(cls.stored, given)
        mu, lam = np.broadcast_arrays(values["mu"], values["lam"])
        check_lame(mu, lam)
        if mu.ndim:
            values = {"mu": mu.copy(), "lam": lam.copy()}
        return cls._from_values(values)

    @classmethod
    def from_lame(cls, mu: Any, lam: Any) -> Self:
        """Construct from the Lamé parameters of linear elasticity.

        Args:
            mu: μ > 0 [Pa], per body or (m,) per element.
            lam: λ > -2μ/3 [Pa], per body or (m,) per element.

        Returns:
            The material.
        """
        return cls.of_stored(mu=mu, lam=lam)

    @property
    def young(self) -> Any:
        """Young's modulus E = μ (3λ + 2μ) / (λ + μ) [Pa]."""
        return self.mu * (3 * self.lam + 2 * self.mu) / (self.lam + self.mu)

    @property
    def poisson(self) -> Any:
        """Poisson's ratio ν = λ / (2 (λ + μ))."""
        return self.lam / (2 * (self.lam + self.mu))


@generic
def stress_coefficients(material, F):
    """`Quadratic` or `Cubic` coefficients of an isotropic stress P = a F + b cof F + c F Fᵀ F [Pa].

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.

    Returns:
        a, b and, for `Cubic`, c [Pa].
    """


@stress.of(Isotropic)
def _stress(material, F):
    return matrix_of(stress_coefficients(material, F), F)


@traction.of(Isotropic)
def _traction(material, F, g):
    return times(stress_coefficients(material, F), F, g)


@bound_coefficients.of(Isotropic)
def _lame_coefficients(material, F):
    """2μ and λ, exact for every isotropic energy at rest [PBNG section 9]; a negative λ is replaced by 0."""
    return 2.0 * material.mu, max(material.lam, 0.0 * material.lam)


@shear_modulus.of(Isotropic)
def _shear_modulus(material):
    return material.mu
