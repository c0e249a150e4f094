"""Singular value decomposition of a 3×3 matrix with rotations on both sides, branch-free with a fixed step
count."""

import math

from supple.algebra.matrix3 import cross, dot, matmul, matvec, transpose
from supple.kernels import device_function, where

JACOBI_SWEEPS = 4
"""Number of Jacobi sweeps, sufficient for float64: small off-diagonal parts decrease cubically per sweep."""


@device_function
def _jacobi_angle(p, q, r):
    """(c, s, t) of the smaller Jacobi rotation that annihilates r in [[p, r], [r, q]]; identity for
    negligible r."""
    small = abs(r) <= 1e-30 + 1e-18 * (abs(p) + abs(q))
    safe = where(small, 0.0 * r + 1.0, r)
    theta = (q - p) / (2.0 * safe)
    sign = where(theta >= 0.0, 0.0 * theta + 1.0, 0.0 * theta - 1.0)
    t = sign / (abs(theta) + math.sqrt(theta * theta + 1.0))
    t = where(small, 0.0 * t, t)
    c = 1.0 / math.sqrt(t * t + 1.0)
    return c, t * c, t


@device_function
def symmetric_eigen(xx, yy, zz, xy, xz, yz):
    """Eigenvalues (3-tuple, unsorted) and eigenvectors of a symmetric matrix, by cyclic Jacobi.

    The eigenvectors are the columns of a rotation V (9-tuple).
    """
    one, zero = 0.0 * xx + 1.0, 0.0 * xx
    V = (one, zero, zero, zero, one, zero, zero, zero, one)
    for _ in range(JACOBI_SWEEPS):
        c, s, t = _jacobi_angle(xx, yy, xy)
        xx, yy, xy, xz, yz = xx - t * xy, yy + t * xy, zero, c * xz - s * yz, s * xz + c * yz
        V = _rotate_columns(V, 0, c, s)
        c, s, t = _jacobi_angle(xx, zz, xz)
        xx, zz, xz, xy, yz = xx - t * xz, zz + t * xz, zero, c * xy - s * yz, s * xy + c * yz
        V = _rotate_columns(V, 1, c, s)
        c, s, t = _jacobi_angle(yy, zz, yz)
        yy, zz, yz, xy, xz = yy - t * yz, zz + t * yz, zero, c * xy - s * xz, s * xy + c * xz
        V = _rotate_columns(V, 2, c, s)
    return (xx, yy, zz), V


@device_function
def _rotate_columns(V, pair, c, s):
    """Rotate columns (0, 1), (0, 2) or (1, 2) of V for pair 0, 1, 2."""
    if pair == 0:
        return (
            c * V[0] - s * V[1], s * V[0] + c * V[1], V[2],
            c * V[3] - s * V[4], s * V[3] + c * V[4], V[5],
            c * V[6] - s * V[7], s * V[6] + c * V[7], V[8],
        )  # fmt: skip
    if pair == 1:
        return (
            c * V[0] - s * V[2], V[1], s * V[0] + c * V[2],
            c * V[3] - s * V[5], V[4], s * V[3] + c * V[5],
            c * V[6] - s * V[8], V[7], s * V[6] + c * V[8],
        )  # fmt: skip
    return (
        V[0], c * V[1] - s * V[2], s * V[1] + c * V[2],
        V[3], c * V[4] - s * V[5], s * V[4] + c * V[5],
        V[6], c * V[7] - s * V[8], s * V[7] + c * V[8],
    )  # fmt: skip


@device_function
def rotation_svd(F):
    """(U, σ, V) with F = U diag(σ) Vᵀ, U and V rotations, |σ₁| ≥ |σ₂| ≥ |σ₃|, and σ₃ < 0 for inverted F.

    V comes from Fᵀ F; u₁ = F v₁/|F v₁|, u₂ is F v₂ orthogonalized against u₁ and normalized, u₃ = u₁ × u₂.
    """
    C = matmul(transpose(F), F)
    (a, b, c), V = symmetric_eigen(C[0], C[4], C[8], C[1], C[2], C[5])
    v0, v1, v2 = (V[0], V[3], V[6]), (V[1], V[4], V[7]), (V[2], V[5], V[8])
    a, b, v0, v1 = _order(a, b, v0, v1)
    b, c, v1, v2 = _order(b, c, v1, v2)
    a, b, v0, v1 = _order(a, b, v0, v1)
    v2 = cross(v0, v1)
    u0, _ = _unit(matvec(F, v0), v0)
    w = matvec(F, v1)
    along = dot(w, u0)
    u1, _ = _unit((w[0] - along * u0[0], w[1] - along * u0[1], w[2] - along * u0[2]), _perpendicular(u0))
    u2 = cross(u0, u1)
    sigma = (dot(u0, matvec(F, v0)), dot(u1, matvec(F, v1)), dot(u2, matvec(F, v2)))
    U = (u0[0], u1[0], u2[0], u0[1], u1[1], u2[1], u0[2], u1[2], u2[2])
    return U, sigma, (v0[0], v1[0], v2[0], v0[1], v1[1], v2[1], v0[2], v1[2], v2[2])


@device_function
def _order(a, b, v, w):
    """Sort two values in descending order, together with their vectors."""
    keep = a >= b
    return (
        where(keep, a, b),
        where(keep, b, a),
        (where(keep, v[0], w[0]), where(keep, v[1], w[1]), where(keep, v[2], w[2])),
        (where(keep, w[0], v[0]), where(keep, w[1], v[1]), where(keep, w[2], v[2])),
    )


@device_function
def _perpendicular(a):
    """Unit vector perpendicular to the unit vector a."""
    flat = abs(a[0]) < 0.6
    x = where(flat, 0.0 * a[0] + 1.0, 0.0 * a[0])
    y = where(flat, 0.0 * a[0], 0.0 * a[0] + 1.0)
    w = cross(a, (x, y, 0.0 * a[0]))
    s = 1.0 / math.sqrt(dot(w, w))
    return (s * w[0], s * w[1], s * w[2])


@device_function
def _unit(a, otherwise):
    """a/|a| and |a|, or the unit vector `otherwise` for negligible a."""
    length = math.sqrt(dot(a, a))
    is_long = length > 1e-18
    s = 1.0 / where(is_long, length, 0.0 * length + 1.0)
    return (
        where(is_long, s * a[0], otherwise[0]),
        where(is_long, s * a[1], otherwise[1]),
        where(is_long, s * a[2], otherwise[2]),
    ), length
