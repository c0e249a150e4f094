"""Yeoh's model of rubber [Yeoh 1993], which stiffens at large stretches."""

from typing import Any

from supple.materials.material import Material
from supple.materials.volumetric import BULK, isochoric, modulus, volumetric


class Yeoh(Material):
    """ψ = c₁₀ x + c₂₀ x² + c₃₀ x³ + κ/2 (J - 1)², x = Ī₁ - 3. The shear modulus at rest is 2 c₁₀.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        c10: Coefficient c₁₀ of x [Pa], positive.
        c20: Coefficient c₂₀ of x² [Pa], often negative.
        c30: Coefficient c₃₀ of x³ [Pa], not negative.
        bulk_modulus: Bulk modulus κ [Pa], positive, also called `kappa`; 10 to 1000 times the shear modulus
            for nearly incompressible bodies.
        young, poisson: Young's modulus [Pa] and Poisson's ratio at rest, in place of `c10` and
            `bulk_modulus`.
        mu, lam: Lamé parameters at rest [Pa], in place of `c10` and `bulk_modulus`.
    """

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
