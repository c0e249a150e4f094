"""Where to look from so that everything is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

DIRECTION = (0.62, 0.42, 1.0)
"""From the middle of the picture to the camera; y is up."""

OPENING = math.radians(24)
"""Vertical opening angle."""

FILLED = 0.92
"""The part of the picture's width or height that the body may fill."""


@dataclass(frozen=True, eq=False)
class Camera:
    """axes (3, 3): rows to the right, up and towards the camera; aspect: width over height."""

    position: np.ndarray
    axes: np.ndarray
    aspect: float

    @property
    def focus(self) -> np.ndarray:
        return self.position - self.axes[2]

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places (n, 2) in the picture, from -1 to 1 across and up, and distances (n,) from the camera."""
        seen = (points - self.position) @ self.axes.T
        distance = -seen[:, 2]
        half = math.tan(OPENING / 2) * distance[:, None]
        return seen[:, :2] / (half * [self.aspect, 1.0]), distance


def fitted_camera(points: np.ndarray, aspect: float) -> Camera:
    """A camera that sees all points, as near as it can be."""
    axes = _axes(np.array(DIRECTION))
    seen = points[np.isfinite(points).all(axis=1)] @ axes.T
    centre = (seen.min(axis=0) + seen.max(axis=0)) / 2
    seen = seen - centre
    slope = FILLED * math.tan(OPENING / 2) * np.array([aspect, 1.0])
    middle = np.zeros(2)
    for _ in range(5):  # perspective moves the middle of what is seen; the last round only fits
        depth = (seen[:, 2:] + np.abs(seen[:, :2] - middle) / slope).max()
        depth = depth if depth > 0 else 1.0
        reached = (seen[:, :2] - middle) / (depth - seen[:, 2:])
        last = middle
        middle = middle + depth * (reached.min(axis=0) + reached.max(axis=0)) / 2
    return Camera((centre + np.append(last, depth)) @ axes, axes, aspect)


def _axes(towards: np.ndarray) -> np.ndarray:
    towards = towards / np.linalg.norm(towards)
    right = np.cross([0.0, 1.0, 0.0], towards)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(towards, right), towards])
