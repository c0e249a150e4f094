"""Rotation of the polar decomposition in closed form, without an SVD."""

import math
from typing import Any

from numba import types

from supple.algebra.isotropic_functions import Cubic, matrix_of
from supple.algebra.matrix3 import cofactor, contract, det, matmul, solve_spd, transpose
from supple.kernels import PackType, all_lanes, device_function, overload_by_type, rounding, where

UNIQUE_ROTATION_THRESHOLD = 4.0
"""Threshold of (σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁) over |F|³, in units of √ε, below which R is treated as not unique. I₁,
II and J determine R only up to an error of ε over the square of this ratio."""


@device_function
def stretch_trace(I1, II, J):
    """t = tr S = σ₁ + σ₂ + σ₃ (σ₃ signed), the largest root of t⁴ - 2 I₁ t² - 8 J t + I₁² - 4 II = 0.

    Newton's method, with I₁ = |F|², II = |cof F|² and J = det F. The slope at the root is 8
    (σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁); if it vanishes, R is not unique and t remains unchanged.
    """
    t, steps = start_of_trace(I1, II, J)
    constant = I1 * I1 - 4.0 * II
    flat = 4.0 * _degenerate(I1, t)
    for _ in range(steps):
        value = ((t * t - 2.0 * I1) * t - 8.0 * J) * t + constant
        slope = 4.0 * (t * t - I1) * t - 8.0 * J
        t = where(slope > flat, t - value / max(slope, flat), t)
    return t


def start_of_trace(I1: Any, II: Any, J: Any) -> Any:
    """Initial value and number of steps of Newton's method.

    The CPU starts from an upper bound, except for inverted F, which are rare. A GPU thread avoids the branch,
    which would prevent early loads: it always computes the closed-form start, from which float32 needs one
    step and float64 two.
    """
    return _bounded_start(I1, II, J), 4


@overload_by_type(start_of_trace)
def _start_of_trace(I1, II, J):
    if isinstance(I1, PackType) and I1.lanes == 1:
        steps = 1 if I1.dtype == types.float32 else 2
        return lambda I1, II, J: (_closed_start(I1, II, J), steps)
    return lambda I1, II, J: (_bounded_start(I1, II, J), 4)


@device_function
def _bounded_start(I1, II, J):
    """Upper bound of t for J ≥ 0, closed-form start for J < 0.

    With e = σ₁σ₂ + σ₂σ₃ + σ₃σ₁, t² = I₁ + 2 e and e² = II + 2 J t, so t ≤ √(3 I₁) = b bounds e, and with it t
    from above for J ≥ 0. Newton's method descends monotonically from there; the bound is exact for F of rank
    1 or 2 and for rotations. For J < 0, Newton's method would converge slowly from there, and the closed-form
    start is closer.
    """
    b = math.sqrt(3.0 * I1)
    t = math.sqrt(I1 + 2.0 * math.sqrt(max(II + 2.0 * J * b, 0.0 * b)))
    if not all_lanes(J >= 0.0):
        t = where(J >= 0.0, t, _closed_start(I1, II, J))
    return t


@device_function
def _closed_start(I1, II, J):
    """σ₁ + √(I₁ - σ₁² + 2 J/σ₁), accurate to four digits; the second summand is σ₂ + σ₃.

    The sum does not depend on σ₁ at σ₁ = σ₂, where σ₁ is ill-conditioned.
    """
    largest = _largest_stretch_squared(I1, II, J)
    first = math.sqrt(largest)
    return first + math.sqrt(max(I1 - largest + 2.0 * J / (first + 1e-30), 0.0 * I1))


@device_function
def _largest_stretch_squared(I1, II, J):
    """σ₁² = I₁/3 + 2 √p c, the largest eigenvalue of FᵀF, with p = (I₁/3)² - II/3 and c = cos(⅓ arccos x).

    In y = cos(½ arccos x), c = cos(⅔ arccos y) is smooth; its polynomial is exact at both ends, with an error
    of at most 3e-5.
    """
    third = I1 / 3.0
    p = max(third * third - II / 3.0, 0.0 * I1)
    root = math.sqrt(p)
    x = (third * third * third - 0.5 * third * II + 0.5 * J * J) / (p * root + 1e-36)
    y = math.sqrt(max(0.5 + 0.5 * min(x, 0.0 * I1 + 1.0), 0.0 * I1))  # x may be infinite at p = 0
    c = 0.5 + 0.5 * y + y * (1.0 - y) * (0.07719368 + y * (0.00909724 * y - 0.03061448))
    return third + 2.0 * root * c


@device_function
def _degenerate(I1, t):
    """Threshold of 2 (σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁) below which R is treated as not unique."""
    return UNIQUE_ROTATION_THRESHOLD * math.sqrt(rounding(I1)) * t * I1 + 1e-30


@device_function
def rotation_coefficients(F):
    """R = a F + b cof F + c F Fᵀ F of the polar decomposition F = R S; det R = 1 even for inverted F.

    R = [(t² + I₁) F + 2 t cof F - 2 F Fᵀ F] / (t³ - I₁ t - 2 J), with the denominator 2
    (σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁). If it vanishes, R is not unique and the result is a bounded matrix: F/|F| for F of
    rank 1, and 0 for F = 0.
    """
    C = cofactor(F)
    I1 = contract(F, F)
    J = det(F)
    t = stretch_trace(I1, contract(C, C), J)
    denominator = (t * t - I1) * t - 2.0 * J
    bounded_denominator = max(denominator, _degenerate(I1, t))
    size = t + 1e-6
    w = 1.0 / (bounded_denominator * size)
    s = w * size
    return Cubic(s * (t * t + I1) + w * (bounded_denominator - denominator), s * (t + t), s * -2.0)


@device_function
def rotation(F):
    """Rotation R of the polar decomposition F = R S."""
    return matrix_of(rotation_coefficients(F), F)


@device_function
def rotation_differential(F, R, dF):
    """Directional derivative δR = R [ω]× with (tr(S) I - S) ω = axial(Rᵀ δF - δFᵀ R), S = Rᵀ F.

    The eigenvalues of tr(S) I - S are σᵢ + σⱼ; a tiny shift keeps the result finite if one of them vanishes.
    """
    S = matmul(transpose(R), F)
    W = matmul(transpose(R), dF)
    axial = (W[7] - W[5], W[2] - W[6], W[3] - W[1])
    t = (1.0 + 1e-12) * (S[0] + S[4] + S[8]) + 1e-30
    xy, xz, yz = 0.5 * (S[1] + S[3]), 0.5 * (S[2] + S[6]), 0.5 * (S[5] + S[7])
    w = solve_spd((t - S[0], t - S[4], t - S[8], -xy, -xz, -yz), axial)
    zero = 0.0 * w[0]
    return matmul(R, (zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero))
