"""The rotation of the polar decomposition in closed form, without an SVD."""

import math

from supple.algebra.isotropic import Cubic, matrix_of
from supple.algebra.matrix3 import cofactor, contract, det, matmul, solve_spd, transpose
from supple.kernels import physics, select

NEWTON_STEPS = 4
"""Enough for float64 from the start used here, unless F is inverted and two singular values nearly cancel."""

DEGENERATE = 1e-3
"""(σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁) over |F|³ below which R is taken as not unique; float32 needs this much."""


@physics
def stretch_trace(I1, II, J):
    """t = tr S = σ₁ + σ₂ + σ₃ (σ₃ signed), the largest root of t⁴ - 2 I₁ t² - 8 J t + I₁² - 4 II = 0.

    I₁ = |F|², II = |cof F|², J = det F. Newton descends monotonically from a start above the root. With
    e = σ₁σ₂ + σ₂σ₃ + σ₃σ₁, t² = I₁ + 2 e and e² = II + 2 J t, so t ≤ √(3 I₁) = b for J > 0 and t ≥ b/3 for
    J < 0 bound e and with it t from above; the start is exact for F of rank 1 or 2 and for rotations. The
    slope is 8 (σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁) at the root; where it vanishes, R is not unique and Newton stops early.
    """
    b = math.sqrt(3.0 * I1)
    e = math.sqrt(max(II + 2.0 * J * select(J > 0.0, b, b / 3.0), 0.0 * b))
    t = math.sqrt(I1 + 2.0 * e)
    constant = I1 * I1 - 4.0 * II
    flat = 4.0 * DEGENERATE * t * I1 + 1e-30
    for _ in range(NEWTON_STEPS):
        value = ((t * t - 2.0 * I1) * t - 8.0 * J) * t + constant
        slope = 4.0 * (t * t - I1) * t - 8.0 * J
        t = select(slope > flat, t - value / max(slope, flat), t)
    return t


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
    floor = DEGENERATE * t * I1 + 1e-30
    kept = max(denominator, floor)
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
