"""Camera placement and projection."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from supple.scene.tables.output import CAMERAS as CAMERAS
from supple.scene.tables.output import Angles as Angles

OPENING_ANGLE = math.radians(24)
"""Vertical opening angle [rad]."""

MAX_FILL = 0.92
"""Largest fraction of the picture's width or height that the body fills."""


@dataclass(frozen=True, eq=False)
class Camera:
    """Perspective camera.

    Attributes:
        position: (3,) position [m].
        axes: (3, 3) rows to the right, up and toward the camera.
        aspect: Width over height.
    """

    position: np.ndarray
    axes: np.ndarray
    aspect: float

    @property
    def focus(self) -> np.ndarray:
        """A point in front of the camera, at unit distance."""
        return self.position - self.axes[2]

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Project points.

        Args:
            points: (n, 3) points [m].

        Returns:
            (n, 2) picture coordinates, from -1 to 1 across and up, and (n,) distances from the camera [m].
        """
        seen = (points - self.position) @ self.axes.T
        distance = -seen[:, 2]
        half = math.tan(OPENING_ANGLE / 2) * distance[:, None]
        return seen[:, :2] / (half * [self.aspect, 1.0]), distance

    def rotate_about_y(self, angle: float, center: np.ndarray) -> Camera:
        """Rotate the camera by an angle [rad] about the vertical line through a point."""
        turn = rotation_about_y(angle)
        return Camera(center + turn @ (self.position - center), self.axes @ turn.T, self.aspect)


def parse_camera(text: str) -> Angles:
    """Return the angles of a named camera, or of a text azimuth,elevation such as 45,30 [degrees]."""
    if text in CAMERAS:
        return CAMERAS[text]
    numbers = re.fullmatch(r"\s*(-?[0-9.]+)\s*,\s*(-?[0-9.]+)\s*", text)
    try:
        if numbers:
            return check_angles((float(numbers[1]), float(numbers[2])))
    except ValueError:
        pass
    raise ValueError(
        f"camera must be one of {', '.join(CAMERAS)}, or azimuth,elevation in degrees such as 45,30 with an "
        f"elevation between -90 and 90; got {text!r}"
    )


def check_angles(angles: Angles) -> Angles:
    """Validate azimuth and elevation [degrees]."""
    azimuth, elevation = angles
    if not math.isfinite(azimuth):
        raise ValueError(f"the azimuth of a camera must be a finite number of degrees, got {azimuth}")
    if not abs(elevation) < 90:
        raise ValueError(f"the elevation of a camera must lie between -90 and 90 degrees, got {elevation}")
    return angles


def fit_camera(points: np.ndarray, aspect: float, angles: Angles = CAMERAS["corner"]) -> Camera:
    """Return the closest camera with all points in view.

    Args:
        points: (n, 3) points [m]; non-finite points are ignored.
        aspect: Width over height.
        angles: Azimuth and elevation [degrees].
    """
    axes = _axes(*angles)
    points = points[np.isfinite(points).all(axis=1)]
    seen = (points if len(points) else np.zeros((1, 3))) @ axes.T
    center = (seen.min(axis=0) + seen.max(axis=0)) / 2
    seen = seen - center
    slope = MAX_FILL * math.tan(OPENING_ANGLE / 2) * np.array([aspect, 1.0])
    middle = np.zeros(2)
    for _ in range(5):  # perspective shifts the center of the view; the last round only fits
        depth = (seen[:, 2:] + np.abs(seen[:, :2] - middle) / slope).max()
        depth = depth if depth > 0 else 1.0
        reached = (seen[:, :2] - middle) / (depth - seen[:, 2:])
        last = middle
        middle = middle + depth * (reached.min(axis=0) + reached.max(axis=0)) / 2
    return Camera((center + np.append(last, depth)) @ axes, axes, aspect)


def turntable_cameras(points: np.ndarray, aspect: float, angles: Angles, count: int) -> list[Camera]:
    """Return cameras on a full circle around points (n, 3), all with every point in view.

    They have equal distance and height.
    """
    points = outline([points])
    center = (points.min(axis=0) + points.max(axis=0)) / 2
    turns = 2 * math.pi * np.arange(count) / count
    swept = np.concatenate([(points - center) @ rotation_about_y(-turn).T + center for turn in turns])
    first = fit_camera(swept, aspect, angles)
    return [first.rotate_about_y(turn, center) for turn in turns]


def outline(shapes: Iterable[np.ndarray]) -> np.ndarray:
    """Points (k, 3) with the same convex hull as all shapes (n, 3) together.

    A camera that has these points in view has all shapes in view. Non-finite points are omitted.
    """
    hulls = [_hull(shape[np.isfinite(shape).all(axis=1)]) for shape in shapes]
    return np.concatenate(hulls) if hulls else np.zeros((0, 3))


def _hull(points: np.ndarray) -> np.ndarray:
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # coplanar, or too few
        return points


def rotation_about_y(angle: float) -> np.ndarray:
    """Rotation matrix (3, 3) about the y axis by an angle [rad]."""
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])


def _axes(azimuth: float, elevation: float) -> np.ndarray:
    a, e = math.radians(azimuth), math.radians(elevation)
    towards = np.array([math.sin(a) * math.cos(e), math.sin(e), math.cos(a) * math.cos(e)])
    right = np.cross([0.0, 1.0, 0.0], towards)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(towards, right), towards])
