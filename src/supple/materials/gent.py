"""Gent's model of rubber with limited chain extensibility [Gent 1996]."""

import math
from typing import Any

from supple.materials.material import Material
from supple.materials.parameters import Parameter
from supple.materials.volumetric import BULK, isochoric, modulus, volumetric


class Gent(Material):
    """ψ = -μ Jₘ/2 log(1 - (Ī₁ - 3)/Jₘ) + κ/2 (J - 1)², infinite at Ī₁ - 3 = Jₘ and at J = 0."""

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
