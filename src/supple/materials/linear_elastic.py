"""Linear elasticity [PBNG eq. 38]: the model all others agree with at rest. Not invariant to rotation."""

from typing import ClassVar

from supple.algebra.matrix3 import (
    add_diagonal,
    combine,
    contract,
    dot,
    matvec,
    outer,
    plus9,
    scaled,
    transpose,
)
from supple.kernels import physics
from supple.materials.isotropic import Isotropic
from supple.materials.material import hessian_bound, psi, stress, stress_differential, traction


class LinearElastic(Isotropic):
    """ψ = μ |ε|² + λ/2 tr(ε)², ε = ½ (F + Fᵀ) - I. For small rotations only."""

    __slots__ = ()
    objective: ClassVar[bool] = False
    quadratic: ClassVar[bool] = True


@physics
def _twice_strain(F):
    """2 ε = F + Fᵀ - 2 I."""
    return add_diagonal(plus9(F, transpose(F)), -2.0)


@physics
def _stress_of(material, twice):
    """2μ ε + λ tr(ε) I, of 2 ε."""
    return add_diagonal(scaled(material.mu, twice), 0.5 * material.lam * (twice[0] + twice[4] + twice[8]))


@psi.of(LinearElastic)
def _psi(material, F):
    twice = _twice_strain(F)
    return 0.25 * contract(_stress_of(material, twice), twice)


@stress.of(LinearElastic)
def _stress(material, F):
    """P = 2μ ε + λ tr(ε) I."""
    return _stress_of(material, _twice_strain(F))


@traction.of(LinearElastic)
def _traction(material, F, g):
    return matvec(stress(material, F), g)


@stress_differential.of(LinearElastic)
def _stress_differential(material, F, dF):
    return _stress_of(material, plus9(dF, transpose(dF)))


@hessian_bound.of(LinearElastic)
def _hessian_bound(material, F, g, h):
    """μ (g·h) I + μ h gᵀ + λ g hᵀ: exact."""
    shear = combine(material.mu, outer(h, g), material.lam, outer(g, h))
    return add_diagonal(shear, material.mu * dot(g, h))
