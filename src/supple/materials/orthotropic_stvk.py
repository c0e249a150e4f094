"""Orthotropic St. Venant-Kirchhoff elasticity with three perpendicular directions, for example wood."""

from typing import Any

import numpy as np

from supple.algebra.matrix3 import cross, dot, matvec
from supple.materials.material import Material
from supple.materials.parameters import Parameter
from supple.materials.stvk import green_strain
from supple.materials.volumetric import modulus
from supple.support.arguments import MIN_MAGNITUDE


def _ratio(pair: str) -> Parameter:
    meaning = f"Poisson's ratio along direction {pair[1]} of a pull along direction {pair[0]}"
    return Parameter(f"poisson{pair}", meaning, symbol=f"ν{_below(pair)}", example=0.3)


def _below(digits: str) -> str:
    return "".join("₀₁₂₃"[int(digit)] for digit in digits)


class OrthotropicStVK(Material):
    """ψ = ½ Σ Cᵢⱼ Eᵢᵢ Eⱼⱼ + 2 Σ Gᵢⱼ Eᵢⱼ² (i < j), E = ½ (Fᵀ F - I) in the axes p, q and p × q.

    p is the direction `first`, and q the normalized component of `second` perpendicular to p. C is the
    inverse of the compliance matrix with 1/Eᵢ on the diagonal and -νᵢⱼ/Eᵢ off the diagonal.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young1, young2, young3: Young's moduli E₁, E₂, E₃ along the three axes [Pa], positive.
        shear12, shear13, shear23: Shear moduli G₁₂, G₁₃, G₂₃ [Pa], positive.
        poisson12, poisson13, poisson23: Poisson's ratios νᵢⱼ: contraction along axis j of a pull along axis
            i.
        first: Direction p, (3,) or (m, 3); normalized.
        second: Direction that spans a plane with p, (3,) or (m, 3); its component perpendicular to p is q.

    Raises:
        ValueError: The compliance matrix is not positive definite, or the directions are parallel.
    """

    __slots__ = ()
    parameters = (
        modulus("young1", "Young's modulus along the first direction", "E₁", 3e5),
        modulus("young2", "Young's modulus along the second direction", "E₂", 1.5e5),
        modulus("young3", "Young's modulus along the third direction", "E₃", 1e5),
        modulus("shear12", "shear modulus of the first and second direction", "G₁₂", 6e4),
        modulus("shear13", "shear modulus of the first and third direction", "G₁₃", 5e4),
        modulus("shear23", "shear modulus of the second and third direction", "G₂₃", 4e4),
        _ratio("12"),
        _ratio("13"),
        _ratio("23"),
        Parameter("first", "first direction", kind="direction", example=(1.0, 0.0, 0.0)),
        Parameter("second", "second direction", kind="direction", example=(0.0, 1.0, 0.0)),
    )

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        E = [np.asarray(parameters[f"young{k}"]) for k in (1, 2, 3)]
        x, y, z = (parameters[f"poisson{pair}"] / E[int(pair[0]) - 1] for pair in ("12", "13", "23"))
        a, b, c = 1 / E[0], 1 / E[1], 1 / E[2]
        stable = (a * b > x * x) & (a * b * c - 2 * x * y * z - a * z * z - b * y * y - c * x * x > 0)
        if not np.all(stable):
            raise ValueError(
                "poisson12, poisson13 and poisson23 are too large for these moduli, so that the "
                "stiffness matrix is not positive definite (compression would release energy); each "
                "poissonIJ² must be less than youngI/youngJ, and together they must be smaller still"
            )
        return parameters | {"second": _perpendicular(parameters["first"], parameters["second"])}

    def psi(self, F: Any) -> Any:
        E, (p, q) = green_strain(F), (self.first, self.second)
        r = cross(p, q)
        Ep, Eq = matvec(E, p), matvec(E, q)
        u, v, w = dot(p, Ep), dot(q, Eq), E[0] + E[4] + E[8] - dot(p, Ep) - dot(q, Eq)
        xy, xz, yz = dot(q, Ep), dot(r, Ep), dot(r, Eq)
        shear = self.shear12 * xy * xy + self.shear13 * xz * xz + self.shear23 * yz * yz
        return 0.5 * self.strain_quadratic_form(u, v, w) + 2.0 * shear

    def strain_quadratic_form(self, u: Any, v: Any, w: Any) -> Any:
        """Quadratic form Σ Cᵢⱼ eᵢ eⱼ of the normal strains along the axes.

        Args:
            u: Strain along p.
            v: Strain along q.
            w: Strain along p × q.

        Returns:
            Twice the energy density of the normal strains [J/m³].
        """
        a, b, c = 1.0 / self.young1, 1.0 / self.young2, 1.0 / self.young3
        x, y, z = -self.poisson12 * a, -self.poisson13 * a, -self.poisson23 * b
        xx, yy, zz = b * c - z * z, a * c - y * y, a * b - x * x
        xy, xz, yz = y * z - x * c, x * z - y * b, x * y - z * a
        scale = 1.0 / (a * xx + x * xy + y * xz)
        across = 2.0 * (xy * u * v + xz * u * w + yz * v * w)
        return scale * (xx * u * u + yy * v * v + zz * w * w + across)


def _perpendicular(first: Any, second: Any) -> Any:
    """Normalized component of `second` perpendicular to `first`: a tuple, or (m, 3)."""
    p, q = np.asarray(first), np.asarray(second)
    across = q - np.sum(p * q, axis=-1, keepdims=True) * p
    length = np.linalg.norm(across, axis=-1, keepdims=True)
    if np.any(length < max(1e-6, MIN_MAGNITUDE)):
        raise ValueError("second must not be parallel to first, because the two directions span a plane")
    across = across / length
    return tuple(across.tolist()) if across.ndim == 1 else across
