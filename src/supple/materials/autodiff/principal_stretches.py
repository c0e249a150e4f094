"""Generated functions for symmetric energies ψ(σ₁, σ₂, σ₃) of the principal stretches.

F = U diag(σ) Wᵀ with rotations U and W, so P = U diag(p) Wᵀ with p = ∂ψ/∂σ, and the second derivatives are
the twelve numbers of `principal`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from supple.algebra.matrix3 import matmul, matvec, transpose
from supple.algebra.svd import rotation_svd
from supple.kernels import device_function, rounding, where
from supple.materials.autodiff.generate import _define, write_second
from supple.materials.autodiff.generate import write_psi as write_density
from supple.materials.autodiff.generate import write_stress as write_slopes
from supple.materials.autodiff.spd_bounds import shift_to_positive
from supple.materials.material import inverse_square_safe_radius
from supple.materials.principal import principal_hessian

EQUAL_STRETCH_TOLERANCE = 0.3
"""Threshold on the difference of two stretches, in units of ε^¼ of the sum of all stretches, below which
difference quotients are replaced by derivatives."""


@device_function
def difference_quotient(p, q, s, t, straight, size):
    """(p - q)/(s - t), or its limit where s and t nearly agree."""
    near = abs(s - t) < size
    return where(near, straight, (p - q) / where(near, size, s - t))


@device_function
def quotients(p, A, s):
    """(flips, twists) at stretches s, for slopes p and second derivatives A."""
    size = (
        EQUAL_STRETCH_TOLERANCE * math.sqrt(math.sqrt(rounding(s[0]))) * (abs(s[0]) + abs(s[1]) + abs(s[2]))
        + 1e-30
    )
    xx, yy, zz, xy, xz, yz = A
    return (
        (
            difference_quotient(p[0], p[1], s[0], s[1], 0.5 * (xx + yy) - xy, size),
            difference_quotient(p[0], p[2], s[0], s[2], 0.5 * (xx + zz) - xz, size),
            difference_quotient(p[1], p[2], s[1], s[2], 0.5 * (yy + zz) - yz, size),
        ),
        (
            difference_quotient(p[0], -p[1], s[0], -s[1], 0.5 * (xx + yy) + xy, size),
            difference_quotient(p[0], -p[2], s[0], -s[2], 0.5 * (xx + zz) + xz, size),
            difference_quotient(p[1], -p[2], s[1], -s[2], 0.5 * (yy + zz) + yz, size),
        ),
    )


@device_function
def rotate_diagonal(U, p, W):
    """U diag(p) Wᵀ."""
    left = (
        U[0] * p[0], U[1] * p[1], U[2] * p[2],
        U[3] * p[0], U[4] * p[1], U[5] * p[2],
        U[6] * p[0], U[7] * p[1], U[8] * p[2],
    )  # fmt: skip
    return matmul(left, transpose(W))


@device_function
def principal_differential(A, flip, twist, D):
    """δP̂ for δF̂ = D."""
    h = 0.5
    xy, yx = h * flip[0] * (D[1] + D[3]), h * twist[0] * (D[1] - D[3])
    xz, zx = h * flip[1] * (D[2] + D[6]), h * twist[1] * (D[2] - D[6])
    yz, zy = h * flip[2] * (D[5] + D[7]), h * twist[2] * (D[5] - D[7])
    return (
        A[0] * D[0] + A[3] * D[4] + A[4] * D[8], xy + yx, xz + zx,
        xy - yx, A[3] * D[0] + A[1] * D[4] + A[5] * D[8], yz + zy,
        xz - zx, yz - zy, A[4] * D[0] + A[5] * D[4] + A[2] * D[8],
    )  # fmt: skip


@device_function
def rotated_block(U, a, A, flip, twist):
    """U Â Uᵀ, as xx yy zz xy xz yz: the block of a vertex whose gradient is a in the frame of W."""
    h = 0.5
    x, y, z = a[0] * a[0], a[1] * a[1], a[2] * a[2]
    same = (h * (flip[0] + twist[0]), h * (flip[1] + twist[1]), h * (flip[2] + twist[2]))
    cross = (h * (flip[0] - twist[0]), h * (flip[1] - twist[1]), h * (flip[2] - twist[2]))
    xy, xz, yz = (
        a[0] * a[1] * (A[3] + cross[0]),
        a[0] * a[2] * (A[4] + cross[1]),
        a[1] * a[2] * (A[5] + cross[2]),
    )
    K = (
        A[0] * x + same[0] * y + same[1] * z, xy, xz,
        xy, same[0] * x + A[1] * y + same[2] * z, yz,
        xz, yz, same[1] * x + same[2] * y + A[2] * z,
    )  # fmt: skip
    B = matmul(matmul(U, K), transpose(U))
    return (B[0], B[4], B[8], B[1], B[2], B[5])


def _slopes(cls: Any) -> Any:
    return device_function(write_slopes(cls))


def write_psi(cls: Any) -> Callable:
    body = "U, s, W = rotation_svd(F)\n    return density(material, s)"
    density = device_function(write_density(cls))
    return _define("psi", "material, F", body, cls, rotation_svd=rotation_svd, density=density)


def write_stress(cls: Any) -> Callable:
    body = "U, s, W = rotation_svd(F)\n    return rotate_diagonal(U, slopes(material, s), W)"
    names = {"rotation_svd": rotation_svd, "rotate_diagonal": rotate_diagonal, "slopes": _slopes(cls)}
    return _define("stress", "material, F", body, cls, **names)


def write_principal_hessian(cls: Any) -> Callable:
    body = (
        "x = second(material, s)\n"
        "    A = (x[0], x[4], x[8], x[1], x[2], x[5])\n"
        "    flip, twist = quotients(slopes(material, s), A, s)\n"
        "    return A, flip, twist"
    )
    names = {"second": device_function(write_second(cls)), "slopes": _slopes(cls), "quotients": quotients}
    return _define("principal_hessian", "material, s", body, cls, **names)


def write_stress_differential(cls: Any) -> Callable:
    body = (
        "U, s, W = rotation_svd(F)\n"
        "    A, flip, twist = principal_hessian(material, s)\n"
        "    D = matmul(matmul(transpose(U), dF), W)\n"
        "    return matmul(matmul(U, principal_differential(A, flip, twist, D)), transpose(W))"
    )
    names = {
        "rotation_svd": rotation_svd,
        "principal_hessian": principal_hessian,
        "principal_differential": principal_differential,
        "matmul": matmul,
        "transpose": transpose,
    }
    return _define("stress_differential", "material, F, dF", body, cls, **names)


def write_vertex_response(cls: Any) -> Callable:
    body = (
        "U, s, W = rotation_svd(F)\n"
        "    A, flip, twist = principal_hessian(material, s)\n"
        "    p, a = slopes(material, s), matvec(transpose(W), g)\n"
        "    f = matvec(U, (p[0] * a[0], p[1] * a[1], p[2] * a[2]))\n"
        "    B = shift_to_positive(material, rotated_block(U, a, A, flip, twist), g)\n"
        "    return f, B, inverse_square_safe_radius(material, F, g)"
    )
    names = {
        "rotation_svd": rotation_svd,
        "principal_hessian": principal_hessian,
        "slopes": _slopes(cls),
        "rotated_block": rotated_block,
        "shift_to_positive": shift_to_positive,
        "inverse_square_safe_radius": inverse_square_safe_radius,
        "matvec": matvec,
        "transpose": transpose,
    }
    return _define("vertex_response", "material, F, g", body, cls, **names)
