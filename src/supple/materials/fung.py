"""Fung's exponential law in its isotropic form [Fung 1967, Demiray 1972], for stiffening soft tissue."""

import math
from typing import Any

from supple.materials.material import Material
from supple.materials.parameters import Parameter
from supple.materials.volumetric import BULK, isochoric, modulus, volumetric


class Fung(Material):
    """ψ = μ/(2 b) (exp(b (Ī₁ - 3)) - 1) + κ/2 (J - 1)². The shear modulus at rest is μ.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        shear_modulus: Shear modulus μ at rest [Pa], positive, also called `mu`.
        stiffening: Exponent b, positive.
        bulk_modulus: Bulk modulus κ [Pa], positive, also called `kappa`; 10 to 1000 times the shear modulus
            for nearly incompressible bodies.
        young, poisson: Young's modulus [Pa] and Poisson's ratio at rest, in place of `shear_modulus` and
            `bulk_modulus`.
        mu, lam: Lamé parameters at rest [Pa], in place of `shear_modulus` and `bulk_modulus`.
    """

    __slots__ = ()
    shear_parameter = "shear_modulus", 1.0
    parameters = (
        modulus("shear_modulus", "shear modulus at rest", "μ", 4e4, aliases=("mu",)),
        Parameter("stiffening", "exponent", symbol="b", above=0, example=1.0, slider=(0.1, 20.0)),
        BULK,
    )

    def psi(self, I1: Any, J: Any) -> Any:
        growth = math.exp(self.stiffening * (isochoric(I1, J) - 3.0)) - 1.0
        return 0.5 * self.shear_modulus / self.stiffening * growth + volumetric(self.bulk_modulus, J)
