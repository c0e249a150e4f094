"""Predicates for `Body.where`: box, sphere and side. Each gives a function of rest points X (n, 3) [m]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from supple.scene.errors import SceneError

Mask = Callable[[np.ndarray], np.ndarray]
SIDES = ("x-", "x+", "y-", "y+", "z-", "z+")
_SLACK = 1e-6
"""Points this fraction of the body's size outside a shape still count: mesh files round coordinates."""


def box(min: ArrayLike, max: ArrayLike) -> Mask:
    """Points of the axis-aligned box; ±inf leaves a side open."""
    low, high = np.asarray(min, float), np.asarray(max, float)
    return lambda X: np.all((low <= X + _slack(X)) & (X - _slack(X) <= high), axis=1)


def sphere(centre: ArrayLike, radius: float) -> Mask:
    """Points of the ball |X - centre| ≤ radius."""
    middle = np.asarray(centre, float)
    return lambda X: np.linalg.norm(X - middle, axis=1) <= radius + _slack(X)


def side(name: str) -> Mask:
    """Points at the lowest ("x-") or highest ("x+") coordinate along an axis."""
    if name not in SIDES:
        raise SceneError(f"side must be one of {', '.join(SIDES)}, got {name!r}.")
    axis, sign = "xyz".index(name[0]), -1.0 if name[1] == "-" else 1.0
    return lambda X: sign * X[:, axis] >= np.max(sign * X[:, axis]) - _slack(X)


def _slack(X: np.ndarray) -> float:
    return _SLACK * float(np.ptp(X, axis=0).max())
