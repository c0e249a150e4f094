"""Forces that take a torque away from some points, and have no sum: the least that do, ω × ρ on a point at ρ
from their middle, with I ω = -torque and the inertia I = Σ |ρ|² - ρ ρᵀ of points of equal mass."""

from __future__ import annotations

import numpy as np

from supple.algebra.holding import symmetric_matvec
from supple.algebra.matrix3 import scale
from supple.kernels import physics

TINY = 1e-30
"""Least inertia [m²] that is divided by: points in one place cannot be turned."""

ALONG = 1e-7
"""Points nearly on a line, whose inertia has a smaller determinant than this, in parts of its trace³, keep
some of the torque along it."""


def without_torque(x: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """(m, k, 3) [N] forces on points x (m, k, 3) [m] that take torques (m, 3) [N m] away."""
    rho = x - x.mean(axis=1, keepdims=True)
    inertia = np.einsum("mai,mai->m", rho, rho)[:, None, None] * np.eye(3)
    inertia -= np.einsum("mai,maj->mij", rho, rho)
    size = np.maximum(np.trace(inertia, axis1=1, axis2=2), TINY)
    J = inertia / size[:, None, None]
    a, b, c = J[:, 0], J[:, 1], J[:, 2]
    cofactors = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)
    det = np.maximum((a * cofactors[:, 0]).sum(axis=1), ALONG)
    omega = -np.einsum("mij,mj->mi", cofactors, torque) / (det * size)[:, None]
    return np.asarray(np.cross(omega[:, None], rho))


@physics
def inertia_of(r):
    """|r|² I - r rᵀ, as xx yy zz xy xz yz."""
    x, y, z = r
    return y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z


@physics
def plus_inertia(J, r):
    K = inertia_of(r)
    return J[0] + K[0], J[1] + K[1], J[2] + K[2], J[3] + K[3], J[4] + K[4], J[5] + K[5]


@physics
def turning(J, torque):
    """ω with J ω = -torque."""
    trace = J[0] + J[1] + J[2]
    size = max(trace, 0.0 * trace + TINY)
    xx, yy, zz, xy, xz, yz = J[0] / size, J[1] / size, J[2] / size, J[3] / size, J[4] / size, J[5] / size
    p, q, r = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    det = xx * p + xy * q + xz * r
    K = p, xx * zz - xz * xz, xx * yy - xy * xy, q, r, xy * xz - xx * yz
    return scale(-1.0 / (max(det, 0.0 * det + ALONG) * size), symmetric_matvec(K, torque))
