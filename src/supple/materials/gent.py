"""Gent's model of rubber with limited chain extensibility [Gent 1996]."""

import math
from typing import Any

from supple.materials.material import Material
from supple.materials.parameters import Parameter
from supple.materials.volumetric import BULK, isochoric, modulus, volumetric


class Gent(Material):
    """ψ = -μ Jₘ/2 log(1 - (Ī₁ - 3)/Jₘ) + κ/2 (J - 1)², infinite at Ī₁ - 3 = Jₘ and at J = 0.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        shear_modulus: Shear modulus μ at rest [Pa], positive, also called `mu`.
        limit: Largest value Jₘ of Ī₁ - 3, positive.
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
        Parameter("limit", "largest Ī₁ - 3", symbol="Jₘ", above=0, example=30.0, slider=(1.0, 100.0)),
        BULK,
    )

    def psi(self, I1: Any, J: Any) -> Any:
        left = 1.0 - (isochoric(I1, J) - 3.0) / self.limit
        return volumetric(self.bulk_modulus, J) - 0.5 * self.shear_modulus * self.limit * math.log(left)
