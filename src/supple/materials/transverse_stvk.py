"""Transversely isotropic St. Venant-Kirchhoff elasticity with one fiber direction."""

from typing import Any

import numpy as np

from supple.algebra.matrix3 import contract, dot, matvec
from supple.materials.material import Material
from supple.materials.parameters import Parameter
from supple.materials.stvk import green_strain
from supple.materials.volumetric import modulus


class TransverseStVK(Material):
    """ψ = ½ C₁ e² + C₂ e p + ½ C₃ p² + G (|E|² - 2 |E a|² + e²) + 2 Gₐ (|E a|² - e²), E = ½ (Fᵀ F - I).

    e = a·E a is the strain along the fibers a, p = tr E - e the sum of the strains across them. With n =
    E_across/E_along and m = 1 - ν - 2 n νₐ²: C₁ = E_along (1 - ν)/m, C₂ = E_across νₐ/m, C₃ = E_across (ν + n
    νₐ²)/((1 + ν) m) and G = E_across/(2 (1 + ν)). νₐ is the ratio of lateral contraction to elongation along
    a.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young_along: Young's modulus E_along along the fibers [Pa], positive.
        young_across: Young's modulus E_across across the fibers [Pa], positive.
        shear_along: Shear modulus Gₐ along the fibers [Pa], positive.
        poisson_along: Poisson's ratio νₐ of a pull along the fibers.
        poisson_across: Poisson's ratio ν across the fibers, between -1 and 1.
        fiber: Fiber direction a, (3,) or (m, 3); normalized.

    Raises:
        ValueError: The energy is not positive definite, ν + 2 n νₐ² ≥ 1.
    """

    __slots__ = ()
    parameters = (
        modulus("young_along", "Young's modulus along the fibers", "Eₐ", 3e5),
        modulus("young_across", "Young's modulus across the fibers", "E", 1e5),
        modulus("shear_along", "shear modulus along the fibers", "Gₐ", 6e4),
        Parameter("poisson_along", "Poisson's ratio of a pull along the fibers", symbol="νₐ", example=0.3),
        Parameter(
            "poisson_across", "Poisson's ratio across the fibers", symbol="ν", above=-1, below=1, example=0.3
        ),
        Parameter("fiber", "direction of the fibers", kind="direction", example=(1.0, 0.0, 0.0)),
    )

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        ratio = np.divide(parameters["young_across"], parameters["young_along"])
        margin = 1 - parameters["poisson_across"] - 2 * ratio * np.square(parameters["poisson_along"])
        if not np.all(margin > 0):
            raise ValueError(
                "poisson_across + 2 poisson_along² young_across/young_along must be less than 1, "
                "otherwise the stiffness matrix is not positive definite (compression would release "
                f"energy); got {1 - np.min(margin):.4g}"
            )
        return parameters

    def psi(self, F: Any) -> Any:
        E = green_strain(F)
        Ea = matvec(E, self.fiber)
        e, square = dot(self.fiber, Ea), dot(Ea, Ea)
        p = E[0] + E[4] + E[8] - e
        nu, along = self.poisson_across, self.poisson_along * self.poisson_along
        n = self.young_across / self.young_along
        scale = self.young_across / (1.0 - nu - 2.0 * n * along)
        C1, C2, C3 = scale * (1.0 - nu) / n, scale * self.poisson_along, scale * (nu + n * along) / (1.0 + nu)
        shear = 0.5 * self.young_across / (1.0 + nu) * (contract(E, E) - 2.0 * square + e * e)
        stretch = 0.5 * C1 * e * e + C2 * e * p + 0.5 * C3 * p * p
        return stretch + shear + 2.0 * self.shear_along * (square - e * e)
