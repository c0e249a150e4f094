"""Arruda and Boyce's eight-chain model of rubber [Arruda and Boyce 1993], as a series of five terms."""

from typing import Any

from supple.materials.material import Material
from supple.materials.parameters import Parameter
from supple.materials.volumetric import BULK, isochoric, modulus, volumetric

SERIES = (1 / 2, 1 / 20, 11 / 1050, 19 / 7000, 519 / 673750)
"""Coefficients of the inverse Langevin function."""


class ArrudaBoyce(Material):
    """ψ = μ Σ Cₖ λₘ^(2 - 2k) (Ī₁ᵏ - 3ᵏ) + κ/2 (J - 1)², k = 1 ... 5.

    C = 1/2, 1/20, 11/1050, 19/7000, 519/673750. μ is the shear modulus of the chains; the shear modulus at
    rest is 2 μ Σ k Cₖ (3/λₘ²)^(k - 1).

    Parameters are uniform, or arrays with one entry per element.

    Args:
        shear_modulus: Shear modulus μ of the chains [Pa], positive, also called `mu`.
        locking: Stretch λₘ at which chains lock, greater than 1.
        bulk_modulus: Bulk modulus κ [Pa], positive, also called `kappa`; 10 to 1000 times the shear modulus
            for nearly incompressible bodies.
    """

    __slots__ = ()
    shear_at_rest = "shear_modulus times a series in 3/locking², about shear_modulus (1 + 3/(5 locking²))"
    parameters = (
        modulus("shear_modulus", "shear modulus of the chains", "μ", 4e4, aliases=("mu",)),
        Parameter(
            "locking", "stretch at which chains lock", symbol="λₘ", above=1, example=3.0, slider=(1.5, 10.0)
        ),
        BULK,
    )

    def psi(self, I1: Any, J: Any) -> Any:
        x, scale = isochoric(I1, J), 1.0 / (self.locking * self.locking)
        total, power, rest, weight = 0.0, 1.0, 1.0, 1.0
        for coefficient in SERIES:
            power, rest = power * x, 3.0 * rest
            total = total + coefficient * weight * (power - rest)
            weight = weight * scale
        return self.shear_modulus * total + volumetric(self.bulk_modulus, J)
