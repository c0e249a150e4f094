"""Recovery of inverted elements of barrier materials, whose forces are infinite, in GPBD."""

from __future__ import annotations

from typing import Any

from supple.algebra.matrix3 import add_diagonal, cofactor, combine, det, matmul, scale_matrix, transpose
from supple.algebra.svd import rotation_svd
from supple.kernels import all_lanes, device_function, each, overload_by_type, where
from supple.solvers.elementwise.gather import compliance_matrix, free_corners, matvec_each, shift_corners
from supple.terms.base.elastic import measure

MIN_STRETCH = 0.05
"""Smallest singular value of unfolded barrier elements; GPBD section 4.1 only negates the smallest."""

INVERSION_DAMPING = 0.2
"""Fraction of its step that an inverted element takes in a Gauss-Seidel sweep.

With full steps, neighbors keep folding each other: of cubes with randomized start at ν = 0.4995, many never
recover. GPBD section 4.1 has no such fraction.
"""


def unfold(rows: Any, material: Any, x: Any, W: Any, g: Any, N: Any) -> Any:
    """Unfold inverted elements of barrier materials; the corners of others stay unchanged."""
    return x


@overload_by_type(unfold)
def _unfold(rows, material, x, W, g, N):
    if not getattr(material.instance_class, "barrier", False):
        return lambda rows, material, x, W, g, N: x
    return lambda rows, material, x, W, g, N: _unfold_inverted(rows, x, W, g, N)


@device_function
def _unfold_inverted(rows, x, W, g, N):
    """Negate the smallest singular value of an inverted F, and raise singular values near zero.

    The corners move by Wᵢ (δF Γ⁻¹) gᵢ, which changes F by δF and conserves the center of mass [GPBD section
    4.1], as far as their constraints permit.
    """
    F = measure(rows, x, g)
    valid = det(F) > MIN_STRETCH * MIN_STRETCH * MIN_STRETCH
    if all_lanes(valid):
        return x
    U, sigma, V = rotation_svd(F)
    floor = 0.0 * sigma[0] + MIN_STRETCH
    s = (max(abs(sigma[0]), floor), max(abs(sigma[1]), floor), max(abs(sigma[2]), floor))
    US = (
        U[0] * s[0], U[1] * s[1], U[2] * s[2],
        U[3] * s[0], U[4] * s[1], U[5] * s[2],
        U[6] * s[0], U[7] * s[1], U[8] * s[2],
    )  # fmt: skip
    dF = combine(1.0, matmul(US, transpose(V)), -1.0, F)
    # tr Γ is scaled to 1 against float32 under- and overflow; pinned corners require the added diagonal.
    G = compliance_matrix(W, g)
    unit = 1.0 / (G[0] + G[4] + G[8] + 1e-30)
    W = _scaled_weights(unit, W)
    G = add_diagonal(scale_matrix(unit, G), 1e-6)
    K = cofactor(G)
    t = 1.0 / (G[0] * K[0] + G[1] * K[1] + G[2] * K[2])
    return shift_corners(x, where(valid, 0.0 * t, t), W, free_corners(N, matvec_each(matmul(dF, K), g)))


_scaled_weights = each("s, W", "s * W[i]", over="W")


def inversion_damping(rows: Any, material: Any, x: Any, g: Any) -> Any:
    """Step fraction of an element in a Gauss-Seidel sweep: `INVERSION_DAMPING` if inverted, otherwise 1."""
    return 1.0


@overload_by_type(inversion_damping)
def _inversion_damping(rows, material, x, g):
    if not getattr(material.instance_class, "barrier", False):
        return lambda rows, material, x, g: 1.0
    return lambda rows, material, x, g: _damping_if_inverted(rows, x, g)


@device_function
def _damping_if_inverted(rows, x, g):
    J = det(measure(rows, x, g))
    return where(J > 0.0, 0.0 * J + 1.0, 0.0 * J + INVERSION_DAMPING)
