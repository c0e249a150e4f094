"""Viscous branches of the Kelvin-Voigt and Maxwell models, as an incremental potential per step.

A Maxwell branch is a spring in series with a dashpot: S = 2μ s + λ tr(s) I with its elastic strain s, ṡ = Ė -
s/τ. Over a step Δt in which E grows at a constant rate [Taylor et al. 1970],

    s = e^(-Δt/τ) sₙ + g (E - Eₙ) = g (E - A),  g = (1 - e^(-Δt/τ)) τ/Δt,

with the strain A at the start of the step. The work of a step is therefore g (μ |E - A|² + λ/2 tr(E - A)²),
and after the step A becomes E - e^(-Δt/τ) (E - A). With viscosities η = μ τ and τ → 0 the branch is the
Kelvin-Voigt dashpot alone: g μ → η/Δt and A = Eₙ. E is Green's strain, so rigid rotations dissipate nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import combine, matmul
from supple.kernels import device_function
from supple.materials.material import (
    Material,
    bound_coefficients,
    hessian_bound,
    psi,
    shear_modulus,
    stress,
    stress_differential,
)
from supple.materials.parameters import Parameter
from supple.materials.stvk import (
    bound,
    coefficients,
    differential,
    green_strain,
    green_strains,
    second_piola,
    strain_energy,
)


class Moduli(NamedTuple):
    """Lamé parameters of a step [Pa]."""

    mu: Any
    lam: Any


class ViscousBranch(Material):
    """ψ = r (η |E - A|² + η'/2 tr(E - A)²), E = ½ (Fᵀ F - I), r = (1 - e^(-Δt/τ))/Δt.

    η and η' are viscosities [Pa s], A is the strain at the start of a step. r = 0, and so ψ = 0, before the
    first step and in equilibria.
    """

    __slots__ = ()

    parameters = (
        Parameter("shear_viscosity", "shear viscosity", "Pa s", "η", at_least=0, example=10.0),
        Parameter("second_viscosity", "second viscosity", "Pa s", "η'", example=0.0),
        Parameter("time", "relaxation time", "s", "τ", at_least=0, default=0.0),
        Parameter("viscous_rate", "viscosity factor", "1/s", "r", at_least=0, default=0.0, evolves=True),
        Parameter(
            "viscous_strain", "strain at the beginning of a step", symbol="A", kind="symmetric",
            default=np.zeros((3, 3)), evolves=True,
        ),
    )  # fmt: skip
    dissipates: ClassVar[bool] = True

    def evolve(self, F: np.ndarray, dt: float) -> dict[str, np.ndarray]:
        E = green_strains(F)
        time = np.broadcast_to(np.asarray(self.time, float), len(F))
        decay = np.where(time > 0, np.exp(-dt / np.where(time > 0, time, 1.0)), 0.0)
        return {
            "viscous_rate": (1 - decay) / dt,
            "viscous_strain": E - decay[:, None] * (E - self.viscous_strain),
        }


@device_function
def _moduli(material):
    return Moduli(
        material.viscous_rate * material.shear_viscosity, material.viscous_rate * material.second_viscosity
    )


@device_function
def _change(material, F):
    """E - A."""
    E, A = green_strain(F), material.viscous_strain
    return combine(1.0, E, -1.0, (A[0], A[3], A[4], A[3], A[1], A[5], A[4], A[5], A[2]))


@psi.of(ViscousBranch)
def _psi(material, F):
    return strain_energy(_moduli(material), _change(material, F))


@stress.of(ViscousBranch)
def _stress(material, F):
    return matmul(F, second_piola(_moduli(material), _change(material, F)))


@stress_differential.of(ViscousBranch)
def _stress_differential(material, F, dF):
    moduli = _moduli(material)
    return differential(moduli, F, dF, second_piola(moduli, _change(material, F)))


@hessian_bound.of(ViscousBranch)
def _hessian_bound(material, F, g, h):
    moduli = _moduli(material)
    return bound(moduli, F, second_piola(moduli, _change(material, F)), g, h)


@bound_coefficients.of(ViscousBranch)
def _bound_coefficients(material, F):
    moduli = _moduli(material)
    return coefficients(moduli, F, second_piola(moduli, _change(material, F)))


@shear_modulus.of(ViscousBranch)
def _shear_modulus(material):
    """Positive even before the first step, because methods divide by it."""
    return (material.viscous_rate + 1e-3) * (material.shear_viscosity + abs(material.second_viscosity))
