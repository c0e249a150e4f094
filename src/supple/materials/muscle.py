"""Muscle with active fibers [PXPBD eq. 6-8, Blemker et al. 2005]."""

import math
from typing import Any, ClassVar

from supple.algebra.matrix3 import cofactor, contract, det, dot, matvec
from supple.algebra.rotation import stretch_trace
from supple.kernels import where
from supple.materials.material import Material
from supple.materials.moduli import POISSON, YOUNG
from supple.materials.parameters import Parameter
from supple.materials.volumetric import modulus

MIN_SQUARED_STRETCH = 1e-12
"""Added to the squared fiber stretch, so that a collapsed fiber has a finite gradient."""


class Muscle(Material):
    """ψ = ψ_corotated + σ (fₚ + α fₐ), fₚ and fₐ functions of the relative fiber stretch x = |F a|/λₒ.

    a is the fiber direction, α the activation and λₒ the fiber stretch of maximum active stress. Passive
    fibers have the slope fₚ' = 0.05 (exp(6.6 (x - 1)) - 1) for x > 1. Active fibers have the slope fₐ' = 9 (x
    - 0.4)² from x = 0.4 to 0.6, 1 - 4 (x - 1)² to 1.4 and 9 (x - 1.6)² to 1.6. The fiber tension per rest
    area is σ/λₒ (fₚ' + α fₐ'). PXPBD eq. 6 has α at the passive part, and its constants are rounded to four
    digits; here the pieces join continuously.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E of the corotated matrix [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν of the corotated matrix, greater than -1 and less than 0.5, also called
            `nu`.
        strength: Largest active stress σ of the fibers [Pa], positive.
        fiber: Fiber direction, (3,) or (m, 3); normalized.
        optimal: Fiber stretch λₒ of maximum active stress, positive.
        activation: Activation α, from 0 to 1; `Scene.vary` varies it over time.
        mu, lam: Lamé parameters of the matrix [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli of the matrix [Pa], in place of `young` and `poisson`.
    """

    __slots__ = ()
    relaxed: ClassVar[bool] = False
    parameters = (
        YOUNG,
        POISSON,
        modulus("strength", "largest active stress of the fibers", "σ", 3e5),
        Parameter(
            "optimal", "stretch of maximal active stress", symbol="λₒ", above=0, default=1.0,
            slider=(0.5, 2.0),
        ),
        Parameter("fiber", "direction of the fibers", kind="direction", example=(1.0, 0.0, 0.0)),
        Parameter(
            "activation", "active fraction of the fiber strength", symbol="α", at_least=0, at_most=1,
            default=0.0, slider=(0.0, 1.0),
        ),
    )  # fmt: skip

    def psi(self, F: Any) -> Any:
        d = matvec(F, self.fiber)
        x = math.sqrt(dot(d, d) + MIN_SQUARED_STRETCH) / self.optimal
        return self.corotated(F) + self.strength * (passive(x) + self.activation * active(x))

    def corotated(self, F: Any) -> Any:
        """Energy density of the matrix, μ |F - R|² + λ/2 (J - 1)².

        Args:
            F: Deformation gradient, a row-major 9-tuple.

        Returns:
            Energy density [J/m³].
        """
        E, nu = self.young, self.poisson
        C, I1, J = cofactor(F), contract(F, F), det(F)
        shear = E / (2.0 * (1.0 + nu)) * (I1 - 2.0 * stretch_trace(I1, contract(C, C), J) + 3.0)
        return shear + 0.5 * E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)) * (J - 1.0) ** 2


def passive(x: Any) -> Any:
    """∫ 0.05 (exp(6.6 (x - 1)) - 1) over x > 1."""
    beyond = max(x - 1.0, 0.0)
    return 0.05 * ((math.exp(6.6 * beyond) - 1.0) / 6.6 - beyond)


def active(x: Any) -> Any:
    """Integral of the active curve, 0 for x ≤ 0.4."""
    lower, upper = max(x - 0.4, 0.0), min(x - 1.6, 0.0)
    middle = x - 1.0 - 4.0 / 3.0 * (x - 1.0) ** 3 + 0.024 + 0.4 - 4.0 / 3.0 * 0.4**3
    top = 0.024 + 0.8 - 8.0 / 3.0 * 0.4**3 + 0.024
    return where(x < 0.6, 3.0 * lower**3, where(x < 1.4, middle, top + 3.0 * upper**3))
