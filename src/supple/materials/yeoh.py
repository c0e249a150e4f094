"""Yeoh's model of rubber [Yeoh 1993], which stiffens at large stretches."""

from typing import Any

from supple.materials.material import Material
from supple.materials.volumetric import BULK, isochoric, modulus, volumetric


class Yeoh(Material):
    """ψ = c₁₀ x + c₂₀ x² + c₃₀ x³ + κ/2 (J - 1)², x = Ī₁ - 3. The shear modulus at rest is 2 c₁₀."""

    __slots__ = ()
    shear_parameter = "c10", 0.5
    parameters = (
        modulus("c10", "coefficient of x = Ī₁ - 3", "c₁₀", 4e4),
        modulus("c20", "coefficient of x², often negative", "c₂₀", -1e2, signed=True),
        modulus("c30", "coefficient of x³", "c₃₀", 5e1, at_least=0),
        BULK,
    )

    def psi(self, I1: Any, J: Any) -> Any:
        x = isochoric(I1, J) - 3.0
        return ((self.c30 * x + self.c20) * x + self.c10) * x + volumetric(self.bulk_modulus, J)
