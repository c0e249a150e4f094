"""The rotation of the polar decomposition in closed form, without an SVD."""

import math

from supple.algebra.isotropic import Cubic, matrix_of
from supple.algebra.matrix3 import cofactor, contract, det, matmul, solve_spd, transpose
from supple.kernels import perhaps, physics, rounding, select

NEWTON_STEPS = 4
"""Enough for float64 from the starts used here."""

DEGENERATE = 4.0
"""(σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁) over |F|³, in units of √ε, below which R is taken as not unique. I₁, II and J carry
R only up to an error of ε over the square of this ratio."""


@physics
def stretch_trace(I1, II, J):
    """t = tr S = σ₁ + σ₂ + σ₃ (σ₃ signed), the largest root of t⁴ - 2 I₁ t² - 8 J t + I₁² - 4 II = 0.

    I₁ = |F|², II = |cof F|², J = det F. Newton descends monotonically from a start above the root. With
    e = σ₁σ₂ + σ₂σ₃ + σ₃σ₁, t² = I₁ + 2 e and e² = II + 2 J t, so t ≤ √(3 I₁) = b bounds e and with it t from
    above; the start is exact for F of rank 1 or 2 and for rotations. The slope is 8 (σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁) at
    the root; where it vanishes, R is not unique and Newton stops early. It can vanish for inverted F only,
    where Newton would be slow; they have a start of their own.
    """
    b = math.sqrt(3.0 * I1)
    t = math.sqrt(I1 + 2.0 * math.sqrt(max(II + 2.0 * J * b, 0.0 * b)))
    if perhaps(J < 0.0):
        t = select(J < 0.0, _inverted_trace(I1, II, J), t)
    constant = I1 * I1 - 4.0 * II
    flat = 4.0 * _degenerate(I1, t)
    for _ in range(NEWTON_STEPS):
        value = ((t * t - 2.0 * I1) * t - 8.0 * J) * t + constant
        slope = 4.0 * (t * t - I1) * t - 8.0 * J
        t = select(slope > flat, t - value / max(slope, flat), t)
    return t


@physics
def _inverted_trace(I1, II, J):
    """t of an inverted F to four digits: σ₁ + √(I₁ - σ₁² + 2 J/σ₁), whose second part is σ₂ + σ₃.

    σ₁² = (I₁ + 2 √(I₁² - 3 II) c)/3 is the largest eigenvalue of FᵀF; c = cos(⅓ arccos x) is the largest root
    of 4 c³ - 3 c = x, here by one Newton step from a start that is exact for x = ±1. Where σ₁ is ill
    determined, at σ₁ = σ₂, t does not depend on it.
    """
    third = I1 / 3.0
    p = max(third * third - II / 3.0, 0.0 * I1)
    root = math.sqrt(p)
    x = (third * third * third - 0.5 * third * II + 0.5 * J * J) / (p * root + 1e-30)
    x = min(max(x, 0.0 * x - 1.0), 0.0 * x + 1.0)
    c = 0.5 + math.sqrt(0.125 * (1.0 + x))
    c = c - ((4.0 * c * c - 3.0) * c - x) / (12.0 * c * c - 3.0 + 1e-4)
    largest = third + 2.0 * root * c
    s1 = math.sqrt(largest)
    return s1 + math.sqrt(max(I1 - largest + 2.0 * J / (s1 + 1e-30), 0.0 * I1))


@physics
def _degenerate(I1, t):
    """(σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁), times 2, below which R is taken as not unique."""
    return DEGENERATE * math.sqrt(rounding(I1)) * t * I1 + 1e-30


@physics
def rotation_coefficients(F):
    """R = a F + b cof F + c F Fᵀ F, R of the polar decomposition F = R S, a proper rotation
    (det R = 1) for inverted F too.

    R = [(t² + I₁) F + 2 t cof F - 2 F Fᵀ F] / (t³ - I₁ t - 2 J), whose denominator is
    2 (σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁). Where that vanishes R is not unique and a bounded matrix is returned, which for
    F of rank 1 is F/|F| and for F = 0 is 0.
    """
    C = cofactor(F)
    I1 = contract(F, F)
    J = det(F)
    t = stretch_trace(I1, contract(C, C), J)
    denominator = (t * t - I1) * t - 2.0 * J
    kept = max(denominator, _degenerate(I1, t))
    size = t + 1e-6
    w = 1.0 / (kept * size)
    s = w * size
    return Cubic(s * (t * t + I1) + w * (kept - denominator), s * (t + t), s * -2.0)


@physics
def rotation(F):
    """R of the polar decomposition F = R S."""
    return matrix_of(rotation_coefficients(F), F)


@physics
def rotation_differential(F, R, dF):
    """Directional derivative δR = R [ω]× with (tr(S) I - S) ω = axial(Rᵀ δF - δFᵀ R), S = Rᵀ F.

    The eigenvalues of tr(S) I - S are σᵢ + σⱼ; a tiny shift keeps the result finite where one vanishes.
    """
    S = matmul(transpose(R), F)
    W = matmul(transpose(R), dF)
    axial = (W[7] - W[5], W[2] - W[6], W[3] - W[1])
    t = (1.0 + 1e-12) * (S[0] + S[4] + S[8]) + 1e-30
    xy, xz, yz = 0.5 * (S[1] + S[3]), 0.5 * (S[2] + S[6]), 0.5 * (S[5] + S[7])
    w = solve_spd((t - S[0], t - S[4], t - S[8], -xy, -xz, -yz), axial)
    zero = 0.0 * w[0]
    return matmul(R, (zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero))
