"""Arterial walls with two fiber families [Holzapfel, Gasser, Ogden 2000; Gasser et al. 2006]."""

import math
from typing import Any

from supple.algebra.matrix3 import contract, det, dot, matvec
from supple.materials.material import Material
from supple.materials.parameters import Parameter
from supple.materials.volumetric import BULK, isochoric, modulus, volumetric


class HolzapfelGasserOgden(Material):
    """ψ = μ/2 (Ī₁ - 3) + k₁/(2 k₂) Σ (exp(k₂ ⟨Eₐ⟩²) - 1) + κ/2 (J - 1)² over two fiber families a.

    Eₐ = d (Ī₁ - 3) + (1 - 3 d) (Ī₄ - 1), Ī₄ = J^(-2/3) |F a|². The Macaulay bracket ⟨x⟩ = max(x, 0) removes
    fiber compression. d is the dispersion of the fiber directions: 0 for aligned fibers, 1/3 for an isotropic
    distribution.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        shear_modulus: Shear modulus μ between the fibers [Pa], positive, also called `mu`.
        fiber_modulus: Stiffness k₁ of the fibers [Pa], not negative.
        fiber_exponent: Exponent k₂ of the fibers, positive.
        fiber: Direction of the first fiber family, (3,) or (m, 3); normalized.
        second_fiber: Direction of the second fiber family, (3,) or (m, 3); normalized.
        dispersion: Dispersion d of the fiber directions, from 0 to 1/3.
        bulk_modulus: Bulk modulus κ [Pa], positive, also called `kappa`; 10 to 1000 times the shear modulus
            for nearly incompressible bodies.
    """

    __slots__ = ()
    parameters = (
        modulus("shear_modulus", "shear modulus between the fibers", "μ", 4e4, aliases=("mu",)),
        modulus("fiber_modulus", "stiffness of the fibers", "k₁", 8e4, at_least=0),
        Parameter(
            "fiber_exponent", "exponent of the fibers", symbol="k₂", above=0, example=0.8, slider=(0.1, 100.0)
        ),
        Parameter(
            "dispersion", "dispersion of the fibers", symbol="d", at_least=0, at_most=1 / 3, default=0.0,
            slider=(0.0, 1 / 3),
        ),
        Parameter("fiber", "direction of one family of fibers", kind="direction", example=(0.8, 0.6, 0.0)),
        Parameter(
            "second_fiber", "direction of the other family", kind="direction", example=(0.8, -0.6, 0.0)
        ),
        BULK,
    )  # fmt: skip

    def psi(self, F: Any) -> Any:
        J = det(F)
        I1 = isochoric(contract(F, F), J)
        matrix = 0.5 * self.shear_modulus * (I1 - 3.0) + volumetric(self.bulk_modulus, J)
        return matrix + self.family(F, J, I1, self.fiber) + self.family(F, J, I1, self.second_fiber)

    def family(self, F: Any, J: Any, I1: Any, fiber: Any) -> Any:
        """Energy density of one fiber family, k₁/(2 k₂) (exp(k₂ ⟨Eₐ⟩²) - 1).

        Args:
            F: Deformation gradient, a row-major 9-tuple.
            J: det F.
            I1: Isochoric invariant Ī₁.
            fiber: Unit fiber direction a, (3,).

        Returns:
            Energy density [J/m³].
        """
        d = matvec(F, fiber)
        longer = isochoric(dot(d, d), J) - 1.0
        E = max(self.dispersion * (I1 - 3.0) + (1.0 - 3.0 * self.dispersion) * longer, 0.0)
        return 0.5 * self.fiber_modulus / self.fiber_exponent * (math.exp(self.fiber_exponent * E * E) - 1.0)
