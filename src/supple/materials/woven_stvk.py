"""Woven cloth: St. Venant-Kirchhoff elasticity with two thread directions [PBCM section 4.3]."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from supple.algebra.matrix3 import (
    add_diagonal,
    combine,
    contract,
    dot,
    matmul,
    matvec,
    outer,
    scale,
    sub,
    transpose,
)
from supple.kernels import device_function
from supple.materials.material import (
    Material,
    hessian_bound,
    psi,
    shear_modulus,
    stiffest,
    stress,
    stress_differential,
)
from supple.materials.parameters import Parameter
from supple.materials.stvk import green_strain
from supple.support.arguments import check_positive, format_value

MAX_ASYMMETRY = 1e-3
"""Largest relative asymmetry of given Poisson's ratios, an allowance for rounding of measured values."""


def _ratio(name: str, pulled: str, across: str) -> Parameter:
    return Parameter(
        name,
        f"Poisson's ratio: how much narrower along the {across} a sheet gets, pulled along the {pulled}",
        example=0.1,
        slider=(0.0, 0.5),
    )


class WovenStVK(Material):
    """ψ = ½ c₁₁ e₁² + ½ c₂₂ e₂² + c₁₂ e₁ e₂ + 2 G e₁₂², the strains E = ½ (Fᵀ F - I) along weft and warp.

    c₁₁ = E/(1 - ν ν'), c₂₂ = E'/(1 - ν ν'), c₁₂ = ν E'/(1 - ν ν') with Poisson's ratios ν of the weft
    and ν' of the warp [PBCM section 4.3]. Symmetry of the energy requires E ν' = E' ν. The warp is
    perpendicular to the weft, in the plane of the sheet. The thickness is eliminated, as in plane stress.
    `from_membrane` takes stiffnesses in N/m instead of moduli.

    Parameters are uniform, or arrays with one entry per triangle.

    Args:
        young_weft: Young's modulus E along the weft [Pa], positive.
        young_warp: Young's modulus E' along the warp [Pa], positive.
        shear_modulus: Shear modulus G [Pa], positive.
        poisson_weft: Poisson's ratio ν: contraction along the warp of a pull along the weft.
        poisson_warp: Poisson's ratio ν' of the opposite pull, equal to ν E'/E up to rounding.
        direction: Direction of the weft, (3,) or (m, 3); normalized.

    Raises:
        ValueError: Poisson's ratios violate the symmetry E ν' = E' ν, or ν ν' is not less than 1.
    """

    __slots__ = ()
    thin: ClassVar[bool] = True

    parameters = (
        Parameter("young_weft", "Young's modulus along the weft", "Pa", above=0, example=2e5),
        Parameter("young_warp", "Young's modulus along the warp", "Pa", above=0, example=2e5),
        Parameter("shear_modulus", "shear modulus", "Pa", "G", above=0, example=2e4),
        _ratio("poisson_weft", "weft", "warp"),
        _ratio("poisson_warp", "warp", "weft"),
        Parameter("direction", "direction of the weft", kind="direction", default=(1.0, 0.0, 0.0)),
    )
    stored = (
        Parameter("along", "stiffness c₁₁", "Pa", above=0),
        Parameter("across", "stiffness c₂₂", "Pa", above=0),
        Parameter("coupling", "stiffness c₁₂", "Pa"),
        Parameter("shear_modulus", "shear modulus", "Pa", "G", above=0),
        Parameter("direction", "direction of the weft", kind="direction"),
    )
    along: Any
    across: Any
    coupling: Any

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        weft, warp = parameters["young_weft"], parameters["young_warp"]
        nu, other = parameters["poisson_weft"], parameters["poisson_warp"]
        expected = np.asarray(nu * warp / weft)
        off = np.abs(expected - other) > MAX_ASYMMETRY * np.maximum(np.abs(expected), np.abs(other)) + 1e-12
        if off.any():
            raise ValueError(
                "poisson_warp must be poisson_weft × young_warp/young_weft = "
                f"{np.ravel(expected)[0]:.4g}, otherwise the stiffness matrix is not symmetric (a load "
                f"cycle would gain energy); got {format_value(other)}"
            )
        free = 1 - nu * (nu * warp / weft)
        if not np.all(free > 0):
            raise ValueError(
                f"poisson_weft × poisson_warp must be less than 1, got {format_value(nu)} and "
                f"{format_value(other)}"
            )
        return {
            "along": weft / free,
            "across": warp / free,
            "coupling": nu * warp / free,
            "shear_modulus": parameters["shear_modulus"],
            "direction": parameters["direction"],
        }

    @classmethod
    def from_membrane(
        cls,
        *,
        weft: Any,
        warp: Any,
        shear: Any,
        thickness: float,
        poisson_weft: Any = 0.0,
        direction: Any = (1.0, 0.0, 0.0),
    ) -> Self:
        """Construct from membrane stiffnesses [N/m], as tensile and shear tests of cloth measure them.

        A membrane stiffness is a modulus times the thickness. `Scene.add_cloth` multiplies by its thickness
        again, so that the cloth needs the same thickness.

        Args:
            weft: Young's modulus times thickness along the weft [N/m], one number or (m,) per triangle.
            warp: Young's modulus times thickness along the warp [N/m].
            shear: Shear modulus times thickness [N/m].
            thickness: Thickness of the cloth [m], as in `add_cloth(thickness=)`.
            poisson_weft: Poisson's ratio of pulling along the weft. That of the warp follows from symmetry:
                poisson_weft warp/weft.
            direction: Direction of the weft.

        Returns:
            The material.

        Raises:
            ValueError: A value is out of bounds.

        >>> WovenStVK.from_membrane(weft=100.0, warp=50.0, shear=10.0, thickness=5e-4).young_weft
        200000.0
        """
        thickness = check_positive("thickness", thickness, "m")
        stiffness = {
            name: Parameter(name, "membrane stiffness", "N/m", above=0).check(value)
            for name, value in (("weft", weft), ("warp", warp), ("shear", shear))
        }
        return cls(
            young_weft=stiffness["weft"] / thickness,
            young_warp=stiffness["warp"] / thickness,
            shear_modulus=stiffness["shear"] / thickness,
            poisson_weft=poisson_weft,
            poisson_warp=np.multiply(poisson_weft, stiffness["warp"]) / stiffness["weft"],
            direction=direction,
        )

    @property
    def poisson_weft(self) -> Any:
        """Poisson's ratio of a pull along the weft, ν = c₁₂/c₂₂."""
        return self.coupling / self.across

    @property
    def poisson_warp(self) -> Any:
        """Poisson's ratio of a pull along the warp, ν' = c₁₂/c₁₁."""
        return self.coupling / self.along

    @property
    def young_weft(self) -> Any:
        """Young's modulus along the weft [Pa]."""
        return self.along * (1 - self.poisson_weft * self.poisson_warp)

    @property
    def young_warp(self) -> Any:
        """Young's modulus along the warp [Pa]."""
        return self.across * (1 - self.poisson_weft * self.poisson_warp)


@device_function
def _second_piola(material, E):
    """S(E) = (c₁₁ e₁ + c₁₂ e₂) a aᵀ + (c₂₂ e₂ + c₁₂ e₁)(I - a aᵀ) + 2G (a (E a)ᵀ + (E a) aᵀ - 2 e₁ a aᵀ).

    The in-plane direction perpendicular to a is the warp, so e₂ = tr E - e₁.
    """
    a = material.direction
    Ea = matvec(E, a)
    first = dot(a, Ea)
    second = E[0] + E[4] + E[8] - first
    across = material.across * second + material.coupling * first
    along = (
        material.along * first + material.coupling * second - across - 4.0 * material.shear_modulus * first
    )
    mixed = outer(a, Ea)
    S = combine(along, outer(a, a), 2.0 * material.shear_modulus, combine(1.0, mixed, 1.0, transpose(mixed)))
    return add_diagonal(S, across)


@psi.of(WovenStVK)
def _psi(material, F):
    E = green_strain(F)
    return 0.5 * contract(_second_piola(material, E), E)


@stress.of(WovenStVK)
def _stress(material, F):
    return matmul(F, _second_piola(material, green_strain(F)))


@stress_differential.of(WovenStVK)
def _stress_differential(material, F, dF):
    FtdF = matmul(transpose(F), dF)
    dE = combine(0.5, FtdF, 0.5, transpose(FtdF))
    S = _second_piola(material, green_strain(F))
    return combine(1.0, matmul(dF, S), 1.0, matmul(F, _second_piola(material, dE)))


@hessian_bound.of(WovenStVK)
def _hessian_bound(material, F, g, h):
    """(|S| + G/20)(g·h) I + F B Fᵀ, with g₁ = g·a, ĝ = g - g₁ a and

        B = (c₁₁ g₁ a + c₁₂ ĝ)(h₁ a)ᵀ + (c₁₂ g₁ a + c₂₂ ĝ) ĥᵀ
            + G (a (h₁ g + (g·h) a)ᵀ + g₁ (h₁ I + h aᵀ) - 4 g₁ h₁ a aᵀ).

    The exact block has g·S h instead of |S| (g·h), its bound.
    """
    a, gh = material.direction, dot(g, h)
    ga, ha = dot(g, a), dot(h, a)
    g2, h2 = sub(g, scale(ga, a)), sub(h, scale(ha, a))
    B = combine(
        1.0,
        combine(material.along * ga * ha, outer(a, a), material.coupling * ha, outer(g2, a)),
        1.0,
        combine(material.coupling * ga, outer(a, h2), material.across, outer(g2, h2)),
    )
    shear = combine(ha, outer(a, g), ga, outer(h, a))
    shear = combine(1.0, shear, gh - 4.0 * ga * ha, outer(a, a))
    B = combine(1.0, B, material.shear_modulus, add_diagonal(shear, ga * ha))
    S = _second_piola(material, green_strain(F))
    bound = matmul(matmul(F, B), transpose(F))
    return add_diagonal(bound, (math.sqrt(contract(S, S)) + 0.05 * material.shear_modulus) * gh)


@shear_modulus.of(WovenStVK)
def _shear_modulus(material):
    return material.shear_modulus


@stiffest.of(WovenStVK)
def _stiffest(material, F):
    """|S| + (|F|² - 1) max(c₁₁ + |c₁₂|, c₂₂ + |c₁₂|, 2G), without the unit stretch along the normal."""
    S = _second_piola(material, green_strain(F))
    elasticity = max(
        max(material.along, material.across) + abs(material.coupling), 2.0 * material.shear_modulus
    )
    return math.sqrt(contract(S, S)) + (contract(F, F) - 1.0) * elasticity
