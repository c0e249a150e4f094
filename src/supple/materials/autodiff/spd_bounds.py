"""Positive definite approximations of second derivatives for materials without a handwritten bound.

PBNG uses the exact vertex block of the Hessian, shifted if it is not positive definite. For methods that need
a I + b cof F ⊗ cof F, coefficients of this form above ∂²ψ/∂F∂F are computed from its eigenvalues or a bound
of them.
"""

from __future__ import annotations

import math

from supple.algebra.matrix3 import add_diagonal, cofactor, combine, contract, dot
from supple.algebra.svd import symmetric_eigen
from supple.kernels import all_lanes, device_function, each, generic, total
from supple.materials.material import shear_modulus
from supple.materials.principal import principal_frame, principal_hessian

MIN_RELATIVE_STIFFNESS = 0.25
"""Smallest vertex stiffness relative to μ |g|², the stiffness at rest."""


@device_function
def shift_to_positive(material, A, g):
    """Shift a vertex block to positive definiteness: A + τ I, a 9-tuple, τ = max(f - a, -2 a, 0).

    a is the least eigenvalue of A (xx yy zz xy xz yz) and f = MIN_RELATIVE_STIFFNESS μ |g|² the smallest
    stiffness. Most blocks need no shift; Sylvester's criterion detects them without a root.
    """
    floor = MIN_RELATIVE_STIFFNESS * shear_modulus(material) * dot(g, g)
    matrix = (A[0], A[3], A[4], A[3], A[1], A[5], A[4], A[5], A[2])
    x, y, z = A[0] - floor, A[1] - floor, A[2] - floor
    xy, xz, yz = y * z - A[5] * A[5], A[4] * A[5] - A[3] * z, A[3] * A[5] - A[4] * y
    definite = (x >= 0.0) & (y >= 0.0) & (z >= 0.0) & (xy >= 0.0)
    if all_lanes(definite & (x * xy + A[3] * xz + A[4] * yz >= 0.0)):
        return matrix
    least = least_eigenvalue(A)
    zero = 0.0 * least
    return add_diagonal(matrix, max(max(floor - least, -2.0 * least), zero))


@device_function
def least_eigenvalue(A):
    """Least eigenvalue of a symmetric 3×3 matrix as xx yy zz xy xz yz, m - 2 p cos(⅓ arccos(-r)).

    m = ⅓ tr A, p² = ⅙ |A - m I|² and r = det(A - m I)/(2 p³); accurate to 5 digits of p. In y = cos(½
    arccos(-r)) the cosine is smooth; its polynomial is exact at both ends. (See `algebra.rotation`.)
    """
    m = (A[0] + A[1] + A[2]) / 3.0
    a, b, c, d, e, f = A[0] - m, A[1] - m, A[2] - m, A[3], A[4], A[5]
    square = (a * a + b * b + c * c + 2.0 * (d * d + e * e + f * f)) / 6.0
    p = math.sqrt(square)
    determinant = a * (b * c - f * f) - d * (d * c - e * f) + e * (d * f - e * b)
    x = -0.5 * determinant / (square * p + 1e-30)
    zero = 0.0 * m
    y = math.sqrt(max(0.5 + 0.5 * min(x, zero + 1.0), zero))
    cosine = 0.5 + 0.5 * y + y * (1.0 - y) * (0.07719368 + y * (0.00909724 * y - 0.03061448))
    return m - 2.0 * p * cosine


@device_function
def isotropic_coefficients(material, F):
    """(a, b) [Pa] from the principal stretches, with the diagonal k of cof F̂.

    a is at least every flip, every twist and the shear modulus. b |k|² is the excess over a of the stiffness
    along k. Finally a is raised to the largest eigenvalue of A - b k kᵀ.
    """
    _, s, _ = principal_frame(material, F)
    A, flip, twist = principal_hessian(material, s)
    k = (s[1] * s[2], s[0] * s[2], s[0] * s[1])
    kk = dot(k, k) + 1e-20
    a = max(max(max(flip[0], flip[1]), flip[2]), max(max(twist[0], twist[1]), twist[2]))
    a = max(a, shear_modulus(material))
    Ak = (
        A[0] * k[0] + A[3] * k[1] + A[4] * k[2],
        A[3] * k[0] + A[1] * k[1] + A[5] * k[2],
        A[4] * k[0] + A[5] * k[1] + A[2] * k[2],
    )
    b = max((dot(k, Ak) / kk - a) / kk, 0.0 * a)
    rest, _ = symmetric_eigen(
        A[0] - b * k[0] * k[0],
        A[1] - b * k[1] * k[1],
        A[2] - b * k[2] * k[2],
        A[3] - b * k[0] * k[1],
        A[4] - b * k[0] * k[2],
        A[5] - b * k[1] * k[2],
    )
    return max(a, max(max(rest[0], rest[1]), rest[2])), b


_product = each("row, columns", "contract(row, columns[i])", contract, over="columns")

_less_outer = each("s, a, columns", "combine(1.0, columns[i], -s * a[i], a)", combine, over="columns")

_square_norms = total("columns", "contract(columns[i], columns[i])", contract, over="columns")


@device_function
def _times(row, columns):
    """Product of a row with a symmetric 9×9 matrix."""
    return _product(row, columns)


_square = each("columns", "_times(columns[i], columns)", _times, over="columns")


@generic
def tangent(material, F):
    """∂²ψ/∂F∂F [Pa], column by column: nine 9-tuples."""


@device_function
def general_coefficients(material, F):
    """(a, b) [Pa] of an anisotropic material: a⁴ = tr M⁴ with M = ∂²ψ/∂F∂F - b cof F ⊗ cof F.

    a is above every eigenvalue of M. b |cof F|² is the stiffness along cof F beyond twice the shear modulus.
    """
    columns, C = tangent(material, F), cofactor(F)
    square = contract(C, C) + 1e-20
    stiffness = shear_modulus(material)
    along = contract(C, _product(C, columns)) / square
    b = max((along - 2.0 * stiffness) / square, 0.0 * along)
    rest = _square(_less_outer(b, C, columns))
    return max(math.sqrt(math.sqrt(_square_norms(rest))), stiffness), b
