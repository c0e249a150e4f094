"""Mooney-Rivlin rubber [Mooney 1940, Rivlin 1948]."""

from typing import Any

from supple.materials.material import Material
from supple.materials.volumetric import BULK, isochoric, modulus, volumetric


class MooneyRivlin(Material):
    """ψ = c₁₀ (Ī₁ - 3) + c₀₁ (Ī₂ - 3) + κ/2 (J - 1)², Ī₁ = J^(-2/3) I₁, Ī₂ = J^(-4/3) I₂.

    The shear modulus at rest is 2 (c₁₀ + c₀₁). Infinite at J = 0.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        c10: Coefficient c₁₀ of the first invariant [Pa], positive.
        c01: Coefficient c₀₁ of the second invariant [Pa], not negative.
        bulk_modulus: Bulk modulus κ [Pa], positive, also called `kappa`; 10 to 1000 times the shear modulus
            for nearly incompressible bodies.
    """

    __slots__ = ()
    shear_at_rest = "2 (c10 + c01)"
    parameters = (
        modulus("c10", "coefficient of the first invariant", "c₁₀", 3e4),
        modulus("c01", "coefficient of the second invariant", "c₀₁", 1e4, at_least=0),
        BULK,
    )

    def psi(self, I1: Any, I2: Any, J: Any) -> Any:
        second = self.c01 * (I2 * J ** (-4.0 / 3.0) - 3.0)
        return self.c10 * (isochoric(I1, J) - 3.0) + second + volumetric(self.bulk_modulus, J)
