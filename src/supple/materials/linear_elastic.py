"""Linear elasticity [PBNG eq. 38], the small-strain limit of isotropic materials; not rotation-invariant."""

from typing import ClassVar

from supple.algebra.matrix3 import (
    add_diagonal,
    combine,
    contract,
    dot,
    matvec,
    outer,
    scale_matrix,
    transpose,
)
from supple.kernels import device_function
from supple.materials.isotropic import Isotropic
from supple.materials.material import hessian_bound, psi, stress, stress_differential, traction


class LinearElastic(Isotropic):
    """ψ = μ |ε|² + λ/2 tr(ε)², ε = ½ (F + Fᵀ) - I. For small rotations only.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli μ and κ [Pa], both positive, in place of `young` and `poisson`.
    """

    __slots__ = ()
    objective: ClassVar[bool] = False
    quadratic: ClassVar[bool] = True


@device_function
def _stress_of(material, strain):
    """2μ ε + λ tr(ε) I."""
    return add_diagonal(
        scale_matrix(2.0 * material.mu, strain), material.lam * (strain[0] + strain[4] + strain[8])
    )


@device_function
def _symmetric(A):
    return combine(0.5, A, 0.5, transpose(A))  # compiles to faster code than ½ (A + Aᵀ)


@psi.of(LinearElastic)
def _psi(material, F):
    strain = add_diagonal(_symmetric(F), -1.0)
    return 0.5 * contract(_stress_of(material, strain), strain)


@stress.of(LinearElastic)
def _stress(material, F):
    """P = 2μ ε + λ tr(ε) I."""
    return _stress_of(material, add_diagonal(_symmetric(F), -1.0))


@traction.of(LinearElastic)
def _traction(material, F, g):
    return matvec(stress(material, F), g)


@stress_differential.of(LinearElastic)
def _stress_differential(material, F, dF):
    return _stress_of(material, _symmetric(dF))


@hessian_bound.of(LinearElastic)
def _hessian_bound(material, F, g, h):
    """μ (g·h) I + μ h gᵀ + λ g hᵀ: exact."""
    shear = combine(material.mu, outer(h, g), material.lam, outer(g, h))
    return add_diagonal(shear, material.mu * dot(g, h))
