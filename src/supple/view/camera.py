"""Where to look from so that everything is seen."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from supple.scene.tables.showing import CAMERAS as CAMERAS
from supple.scene.tables.showing import Angles as Angles

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

    def turned(self, angle: float, centre: np.ndarray) -> Camera:
        """The camera after a turn by an angle [rad] about the vertical line through a point."""
        turn = turn_about_y(angle)
        return Camera(centre + turn @ (self.position - centre), self.axes @ turn.T, self.aspect)


def parse_camera(text: str) -> Angles:
    """The angles of a named camera, or those given as azimuth,elevation such as 45,30."""
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
    azimuth, elevation = angles
    if not math.isfinite(azimuth):
        raise ValueError(f"a camera's azimuth must be a finite number of degrees, got {azimuth}")
    if not abs(elevation) < 90:
        raise ValueError(f"a camera's elevation must lie between -90 and 90 degrees, got {elevation}")
    return angles


def fitted_camera(points: np.ndarray, aspect: float, angles: Angles = CAMERAS["corner"]) -> Camera:
    """A camera that sees all points, as near as it can be."""
    axes = _axes(*angles)
    points = points[np.isfinite(points).all(axis=1)]
    seen = (points if len(points) else np.zeros((1, 3))) @ axes.T
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


def turntable(points: np.ndarray, aspect: float, angles: Angles, count: int) -> list[Camera]:
    """Cameras once around points (n, 3), all at the same distance and height, each of which sees them all."""
    points = outline([points])
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    turns = 2 * math.pi * np.arange(count) / count
    swept = np.concatenate([(points - centre) @ turn_about_y(-turn).T + centre for turn in turns])
    first = fitted_camera(swept, aspect, angles)
    return [first.turned(turn, centre) for turn in turns]


def outline(shapes: Iterable[np.ndarray]) -> np.ndarray:
    """Points (k, 3) with the same convex hull as all shapes (n, 3) together: a camera that sees the ones sees
    the others. Points that are not finite are left out."""
    kept = [_hull(shape[np.isfinite(shape).all(axis=1)]) for shape in shapes]
    return np.concatenate(kept) if kept else np.zeros((0, 3))


def _hull(points: np.ndarray) -> np.ndarray:
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # flat, or too few
        return points


def turn_about_y(angle: float) -> np.ndarray:
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])


def _axes(azimuth: float, elevation: float) -> np.ndarray:
    a, e = math.radians(azimuth), math.radians(elevation)
    towards = np.array([math.sin(a) * math.cos(e), math.sin(e), math.cos(a) * math.cos(e)])
    right = np.cross([0.0, 1.0, 0.0], towards)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(towards, right), towards])
