"""Second derivatives of isotropic energies in the frame of the principal stretches.

With F = U diag(σ) Wᵀ, U and W rotations, δF̂ = Uᵀ δF W and δP̂ = Uᵀ δP W, isotropy reduces ∂²ψ/∂F∂F to twelve
numbers. On the diagonal, δP̂ᵢᵢ = Σⱼ Aᵢⱼ δF̂ⱼⱼ with Aᵢⱼ = ∂²ψ/∂σᵢ∂σⱼ. For i ≠ j, the sum of δF̂ᵢⱼ and δF̂ⱼᵢ is
multiplied by a `flip`, (pᵢ - pⱼ)/(σᵢ - σⱼ), and their difference by a `twist`, (pᵢ + pⱼ)/(σᵢ + σⱼ), with pᵢ =
∂ψ/∂σᵢ. The eigenvalues are therefore the flips, the twists and those of A [Stomakhin et al. 2012, Smith et
al. 2019].
"""

from __future__ import annotations

from supple.algebra.svd import rotation_svd, symmetric_eigen
from supple.kernels import device_function, generic
from supple.materials.linear_elastic import LinearElastic
from supple.materials.material import Material, stress_differential


@generic
def principal_frame(material, F):
    """(U, σ, W): two rotations, 9-tuples, and three stretches; σ₃ < 0 for inverted F."""


@principal_frame.of(Material)
def _principal_frame(material, F):
    return rotation_svd(F)


@principal_frame.of(LinearElastic)
def _fixed_frame(material, F):
    """Identity frame: linear elasticity is not rotation-invariant, its second derivatives are constant."""
    one, zero = 0.0 * F[0] + 1.0, 0.0 * F[0]
    identity = (one, zero, zero, zero, one, zero, zero, zero, one)
    return identity, (F[0], F[4], F[8]), identity


@generic
def principal_hessian(material, s):
    """(A, flips, twists) [Pa] at the stretches s: A as xx yy zz xy xz yz, the others of xy, xz, yz."""


@principal_hessian.of(Material)
def _principal_hessian(material, s):
    zero = 0.0 * s[0]
    one = zero + 1.0
    F = (s[0], zero, zero, zero, s[1], zero, zero, zero, s[2])
    x = stress_differential(material, F, (one, zero, zero, zero, zero, zero, zero, zero, zero))
    y = stress_differential(material, F, (zero, zero, zero, zero, one, zero, zero, zero, zero))
    z = stress_differential(material, F, (zero, zero, zero, zero, zero, zero, zero, zero, one))
    xy = stress_differential(material, F, (zero, one, zero, zero, zero, zero, zero, zero, zero))
    xz = stress_differential(material, F, (zero, zero, one, zero, zero, zero, zero, zero, zero))
    yz = stress_differential(material, F, (zero, zero, zero, zero, zero, one, zero, zero, zero))
    return (
        (x[0], y[4], z[8], y[0], z[0], z[4]),
        (xy[1] + xy[3], xz[2] + xz[6], yz[5] + yz[7]),
        (xy[1] - xy[3], xz[2] - xz[6], yz[5] - yz[7]),
    )


@device_function
def positive(values):
    """max(x, 0) for each of three numbers."""
    zero = 0.0 * values[0]
    return (max(values[0], zero), max(values[1], zero), max(values[2], zero))


@device_function
def positive_symmetric(A):
    """Positive semi-definite projection of a symmetric matrix, as xx yy zz xy xz yz."""
    values, V = symmetric_eigen(A[0], A[1], A[2], A[3], A[4], A[5])
    a, b, c = positive(values)
    return (
        a * V[0] * V[0] + b * V[1] * V[1] + c * V[2] * V[2],
        a * V[3] * V[3] + b * V[4] * V[4] + c * V[5] * V[5],
        a * V[6] * V[6] + b * V[7] * V[7] + c * V[8] * V[8],
        a * V[0] * V[3] + b * V[1] * V[4] + c * V[2] * V[5],
        a * V[0] * V[6] + b * V[1] * V[7] + c * V[2] * V[8],
        a * V[3] * V[6] + b * V[4] * V[7] + c * V[5] * V[8],
    )
