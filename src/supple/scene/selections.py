"""Predicates for `Body.where`: box, sphere and side, functions of rest points X (n, 3) [m]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from supple.scene.errors import SceneError

Mask = Callable[[np.ndarray], np.ndarray]
SIDES = ("x-", "x+", "y-", "y+", "z-", "z+")
_SLACK = 1e-6
"""Tolerance of selections relative to the size of the body, since mesh files round coordinates."""


def box(min: ArrayLike, max: ArrayLike) -> Mask:
    """Select the points of an axis-aligned box.

    Args:
        min: Lowest corner (3,) [m]; -inf leaves a side open.
        max: Highest corner (3,) [m]; inf leaves a side open.

    Returns:
        Function of points (n, 3) [m] that returns a mask (n,).
    """
    low, high = np.asarray(min, float), np.asarray(max, float)
    return lambda X: np.all((low <= X + _slack(X)) & (X - _slack(X) <= high), axis=1)


def sphere(center: ArrayLike, radius: float) -> Mask:
    """Select the points of the ball |X - center| ≤ radius.

    Args:
        center: Center (3,) [m].
        radius: Radius [m].

    Returns:
        Function of points (n, 3) [m] that returns a mask (n,).
    """
    middle = np.asarray(center, float)
    return lambda X: np.linalg.norm(X - middle, axis=1) <= radius + _slack(X)


def side(name: str) -> Mask:
    """Select points with extreme coordinates along an axis.

    Args:
        name: Axis and sign: "x-" for the lowest x coordinate, "x+" for the highest.

    Returns:
        Function of points (n, 3) [m] that returns a mask (n,).

    Raises:
        SceneError: There is no side of this name.
    """
    if name not in SIDES:
        raise SceneError(f"side must be one of {', '.join(SIDES)}, got {name!r}.")
    axis, sign = "xyz".index(name[0]), -1.0 if name[1] == "-" else 1.0
    return lambda X: sign * X[:, axis] >= np.max(sign * X[:, axis]) - _slack(X)


def _slack(X: np.ndarray) -> float:
    return _SLACK * float(np.ptp(X, axis=0).max())
