"""Regularization of the dihedral angle for nearly closed folds.

An angle jumps from π to -π if two triangles pass through each other. The energy of a fabric differs on both
sides, so it would jump, too, and cloth that is folded shut by its threads or by external forces would have no
equilibrium. With c = CLOSING and x = (|θ| - c)/(π - c), for |θ| > c

    θ  ←  ± (|θ| + π x³/(1 - x)),

which is twice continuously differentiable and unbounded, like the curvature of a closed fold.
"""

import math

import numpy as np

from supple.kernels import device_function, where

CLOSING = math.radians(170)
"""Angle [rad] up to which θ is unchanged."""

CLOSING_RANGE = math.pi - CLOSING
"""Range of the regularized angles, π - CLOSING [rad]."""

MIN_REMAINDER = 1e-9
"""Lower bound of 1 - x, which keeps closed folds finite."""


@device_function
def regularize_angle(angle):
    """Regularized θ with its first and second derivative with respect to the angle."""
    size = abs(angle)
    zero = 0.0 * size
    x = max(size - CLOSING, zero) * (1.0 / CLOSING_RANGE)
    y = 1.0 / max(1.0 - x, zero + MIN_REMAINDER)
    sign = where(angle < 0.0, zero - 1.0, zero + 1.0)
    return (
        sign * (size + math.pi * x * x * x * y),
        1.0 + (math.pi / CLOSING_RANGE) * x * x * y * y * (3.0 - 2.0 * x),
        sign * (math.pi / (CLOSING_RANGE * CLOSING_RANGE)) * 2.0 * x * y * y * y * (3.0 - 3.0 * x + x * x),
    )


def regularize_angles(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regularized θ (m,) and its derivatives for angles (m,), on the host."""
    size, sign = np.abs(angle), np.where(angle < 0, -1.0, 1.0)
    x = np.maximum(size - CLOSING, 0.0) / CLOSING_RANGE
    y = 1.0 / np.maximum(1.0 - x, MIN_REMAINDER)
    return (
        sign * (size + np.pi * x**3 * y),
        1.0 + np.pi / CLOSING_RANGE * x**2 * y**2 * (3.0 - 2.0 * x),
        sign * np.pi / CLOSING_RANGE**2 * 2.0 * x * y**3 * (3.0 - 3.0 * x + x**2),
    )
