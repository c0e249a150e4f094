"""The rotation of the polar decomposition in closed form, without an SVD."""

import math

from supple.algebra.matrix3 import cofactor, contract, det, matmul, solve_spd, transpose
from supple.kernels import physics, select

NEWTON_STEPS = 6
"""Enough for float64 from the start used here, unless two singular values nearly cancel."""


@physics
def stretch_trace(I1, II, J):
    """t = tr S = σ₁ + σ₂ + σ₃ (σ₃ signed), the largest root of t⁴ - 2 I₁ t² - 8 J t + I₁² - 4 II = 0.

    I₁ = |F|², II = |cof F|², J = det F. Newton from √(3 I₁) ≥ t descends to the root monotonically. The
    slope is 8 (σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁) at the root, so the guard only acts where R is not unique.
    """
    t = math.sqrt(3.0 * I1)
    constant = I1 * I1 - 4.0 * II
    tiny = 1e-12 * t * I1 + 1e-30
    for _ in range(NEWTON_STEPS):
        value = ((t * t - 2.0 * I1) * t - 8.0 * J) * t + constant
        slope = 4.0 * (t * t - I1) * t - 8.0 * J
        t = t - value / max(slope, tiny)
    return t


@physics
def rotation(F):
    """R of the polar decomposition F = R S, a proper rotation (det R = 1) for inverted F too.

    R = [(t² + I₁) F + 2 t cof F - 2 F Fᵀ F] / (t³ - I₁ t - 2 J), whose denominator is
    2 (σ₁+σ₂)(σ₂+σ₃)(σ₃+σ₁). Where that vanishes R is not unique and a bounded matrix is returned.
    """
    C = cofactor(F)
    I1 = contract(F, F)
    J = det(F)
    t = stretch_trace(I1, contract(C, C), J)
    G = matmul(matmul(F, transpose(F)), F)
    denominator = (t * t - I1) * t - 2.0 * J
    floor = 1e-6 * t * I1 + 1e-30
    s = 1.0 / select(denominator > floor, denominator, floor)
    a = s * (t * t + I1)
    b = s * (t + t)
    c = s * -2.0
    return (
        a * F[0] + b * C[0] + c * G[0],
        a * F[1] + b * C[1] + c * G[1],
        a * F[2] + b * C[2] + c * G[2],
        a * F[3] + b * C[3] + c * G[3],
        a * F[4] + b * C[4] + c * G[4],
        a * F[5] + b * C[5] + c * G[5],
        a * F[6] + b * C[6] + c * G[6],
        a * F[7] + b * C[7] + c * G[7],
        a * F[8] + b * C[8] + c * G[8],
    )


@physics
def rotation_differential(F, R, dF):
    """Directional derivative δR = R [ω]× with (tr(S) I - S) ω = axial(Rᵀ δF - δFᵀ R), S = Rᵀ F."""
    S = matmul(transpose(R), F)
    W = matmul(transpose(R), dF)
    axial = (W[7] - W[5], W[2] - W[6], W[3] - W[1])
    t = S[0] + S[4] + S[8]
    xy, xz, yz = 0.5 * (S[1] + S[3]), 0.5 * (S[2] + S[6]), 0.5 * (S[5] + S[7])
    w = solve_spd((t - S[0], t - S[4], t - S[8], -xy, -xz, -yz), axial)
    zero = 0.0 * w[0]
    return matmul(R, (zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero))
