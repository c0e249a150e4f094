"""Ogden's model of rubber in principal stretches [Ogden 1972], with up to three terms."""

from typing import Any

import numpy as np

from supple.materials.material import Material
from supple.materials.parameters import Parameter
from supple.materials.volumetric import BULK, modulus, volumetric


def _term(k: int, mu: float, alpha: float, **given: Any) -> tuple[Parameter, Parameter]:
    sub = "₁₂₃"[k - 1]
    return (
        modulus(f"mu{k}", f"modulus of term {k}", f"μ{sub}", mu, signed=True, **given),
        Parameter(
            f"alpha{k}",
            f"exponent of term {k}, not 0",
            symbol=f"α{sub}",
            example=alpha,
            default=alpha if given else None,
            slider=(-10.0, 10.0),
        ),
    )


class Ogden(Material):
    """ψ = Σ μₚ/αₚ (λ̄₁^αₚ + λ̄₂^αₚ + λ̄₃^αₚ - 3) + κ/2 (J - 1)², λ̄ = J^(-1/3) λ, for p = 1, 2, 3.

    The shear modulus at rest is ½ Σ μₚ αₚ, which must be positive. Infinite at J = 0.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        mu1, mu2, mu3: Moduli μₚ of the terms [Pa], of any sign; 0 by default for the second and third term.
        alpha1, alpha2, alpha3: Exponents αₚ of the terms, not 0.
        bulk_modulus: Bulk modulus κ [Pa], positive, also called `kappa`; 10 to 1000 times the shear modulus
            for nearly incompressible bodies.

    Raises:
        ValueError: An exponent is 0, or the shear modulus at rest is not positive.
    """

    __slots__ = ()
    shear_at_rest = "half of mu1 alpha1 + mu2 alpha2 + mu3 alpha3"
    parameters = (
        *_term(1, 4e4, 1.3),
        *_term(2, 4e2, 5.0, default=0.0),
        *_term(3, -1e3, -2.0, default=0.0),
        BULK,
    )

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        moduli = [parameters[f"mu{k}"] for k in (1, 2, 3)]
        exponents = [parameters[f"alpha{k}"] for k in (1, 2, 3)]
        if any(np.any(np.asarray(alpha) == 0) for alpha in exponents):
            raise ValueError("exponents alpha of an Ogden material must not be 0; use mu = 0 to omit a term")
        if not np.all(sum(np.multiply(mu, alpha) for mu, alpha in zip(moduli, exponents, strict=True)) > 0):
            raise ValueError(
                "the shear modulus at rest of an Ogden material, half of mu1 alpha1 + mu2 alpha2 + mu3 "
                "alpha3, must be positive"
            )
        return parameters

    def psi(self, stretches: Any) -> Any:
        J = stretches[0] * stretches[1] * stretches[2]
        shrunk = J ** (-1.0 / 3.0)
        total = volumetric(self.bulk_modulus, J)
        for mu, alpha in ((self.mu1, self.alpha1), (self.mu2, self.alpha2), (self.mu3, self.alpha3)):
            for stretch in stretches:
                total = total + mu / alpha * ((shrunk * stretch) ** alpha - 1.0)
        return total
