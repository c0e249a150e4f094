"""Angle of a plane vector (atan2) from arithmetic and square roots only, which every target supports."""

import math

from supple.kernels import device_function, rounding, where

MIN_DENOMINATOR = 1e-36
"""Offset that avoids 0/0, far below the resolution of single precision for lengths that occur."""


@device_function
def _evaluate_polynomial(z, p):
    """Polynomial p₀ + p₁ z + ... + p₄ z⁴."""
    return p[0] + z * (p[1] + z * (p[2] + z * (p[3] + z * p[4])))


@device_function
def _small_arctangent(t):
    """atan t for |t| ≤ tan(π/8), from Moshier's Cephes; relative error about 1e-7 (float32) or 1e-16
    (float64)."""
    z = t * t
    if rounding(t) > 1e-10:
        z = z * _evaluate_polynomial(
            z, (-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1, 8.05374449538e-2, 0.0)
        )
        return t + t * z
    p = _evaluate_polynomial(
        z,
        (
            -6.485021904942025371773e1,
            -1.228866684490136173410e2,
            -7.500855792314704667340e1,
            -1.615753718733365076637e1,
            -8.750608600031904122785e-1,
        ),
    )
    q = 1.945506571482613964425e2 + z * _evaluate_polynomial(
        z,
        (
            4.853903996359136964868e2,
            4.328810604912902668951e2,
            1.650270098316988542046e2,
            2.485846490142306297962e1,
            1.0,
        ),
    )
    return t + t * (z * p / q)


@device_function
def angle_of(y, x):
    """atan2(y, x) in [-π, π], 0 if both vanish. Computed as four times the arctangent of a quarter angle."""
    size = 1.0 / (max(abs(x), abs(y)) + MIN_DENOMINATOR)
    x, y = size * x, size * y
    half = y / (math.sqrt(x * x + y * y) + abs(x) + MIN_DENOMINATOR)
    near = 4.0 * _small_arctangent(half / (1.0 + math.sqrt(1.0 + half * half)))
    return where(x < 0.0, where(y < 0.0, -math.pi - near, math.pi - near), near)
