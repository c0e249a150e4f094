"""A material from outside the package: neo-Hookean with contractile fibers, for tests of declared
parameters."""

import math

from supple.algebra.matrix3 import (
    add_diagonal,
    cofactor,
    cofactor_differential,
    combine,
    contract,
    det,
    dot,
    matvec,
    outer,
    scale_matrix,
)
from supple.materials import Material, Parameter, hessian_bound, psi, stress, stress_differential

MIN_SQUARED_LENGTH = 1e-12
"""Added to the squared length of a fiber, since a fiber of length 0 has no direction."""


class Fibers(Material):
    """ψ = μ/2 (|F|² - 3) - μ (J - 1) + κ/2 (J - 1)² + k/2 (|F a| - 1 + α)² with fibers a and activation α."""

    __slots__ = ()
    parameters = (
        Parameter("shear", "shear modulus", "Pa", "μ_m", above=0, example=1e3),
        Parameter("bulk", "bulk modulus", "Pa", "κ_m", above=0, default=4e3),
        Parameter("stiffness", "stiffness of the fibers", "Pa", "k", at_least=0, example=2e3),
        Parameter("fiber", "direction of the fibers", kind="direction", example=(1.0, 0.0, 0.0)),
        Parameter(
            "activation", "relative shortening of the fibers", symbol="α_f", at_least=0, below=1, default=0.0,
            slider=(0.0, 0.9),
        ),
    )  # fmt: skip


@psi.of(Fibers)
def _psi(material, F):
    d = matvec(F, material.fiber)
    longer = math.sqrt(dot(d, d) + MIN_SQUARED_LENGTH) - 1.0 + material.activation
    volume = det(F) - 1.0
    shape = 0.5 * material.shear * (contract(F, F) - 3.0) - material.shear * volume
    return shape + 0.5 * material.bulk * volume * volume + 0.5 * material.stiffness * longer * longer


@stress.of(Fibers)
def _stress(material, F):
    d = matvec(F, material.fiber)
    fiber_stress = material.stiffness * (
        1.0 - (1.0 - material.activation) / math.sqrt(dot(d, d) + MIN_SQUARED_LENGTH)
    )
    pressure = material.bulk * (det(F) - 1.0) - material.shear
    solid = combine(material.shear, F, pressure, cofactor(F))
    return combine(1.0, solid, fiber_stress, outer(d, material.fiber))


@stress_differential.of(Fibers)
def _stress_differential(material, F, dF):
    a, C = material.fiber, cofactor(F)
    d, change = matvec(F, a), matvec(dF, a)
    square = dot(d, d) + MIN_SQUARED_LENGTH
    slack = (1.0 - material.activation) / math.sqrt(square)
    solid = combine(material.bulk * contract(C, dF), C, 0.0, C)
    pressure = material.bulk * (det(F) - 1.0) - material.shear
    solid = combine(1.0, solid, pressure, cofactor_differential(F, dF))
    fibers = combine(1.0 - slack, outer(change, a), slack * dot(d, change) / square, outer(d, a))
    return combine(1.0, combine(material.shear, dF, 1.0, solid), material.stiffness, fibers)


@hessian_bound.of(Fibers)
def _hessian_bound(material, F, g, h):
    """For the solid as in neo-Hookean; for fibers k (a·g)(a·h) I, an upper bound at any length."""
    C, a = cofactor(F), material.fiber
    solid = scale_matrix(material.bulk, outer(matvec(C, g), matvec(C, h)))
    return add_diagonal(solid, material.shear * dot(g, h) + material.stiffness * dot(a, g) * dot(a, h))
