"""Obstacles in pictures: which of them are to be in sight, and how they look."""

from __future__ import annotations

import numpy as np

from supple.contact import shapes as kinds
from supple.contact.obstacles import Obstacles
from supple.contact.outlines import outlines, placed
from supple.view.camera import Camera
from supple.view.light import shade

LARGEST = 2.0
"""Extent of an obstacle that a camera keeps in sight, in parts of that of the bodies; walls are larger."""

FARTHEST = 0.5
"""How far from the bodies it may be, in parts of their extent; what flies away is not followed."""

CLEAR, RIM, FALL = 0.2, 0.45, 3
"""How opaque obstacles are where one looks straight at them, how much more at their rim, and how fast that
falls from there."""


def near_obstacles(obstacles: Obstacles | None, time: float, seen: np.ndarray) -> np.ndarray:
    """Points (k, 3) [m] of obstacles at a time [s] that belong to a picture of points (n, 3): those that are
    near them and not much larger. Planes never are."""
    found = [np.empty((0, 3))]
    if obstacles is None or not len(seen):
        return found[0]
    low, high = seen.min(axis=0), seen.max(axis=0)
    size = float((high - low).max())
    shown = outlines(obstacles, seen, time)
    for outline, points in zip(shown, placed(shown, obstacles, time), strict=True):
        gap = np.maximum(points.min(axis=0) - high, low - points.max(axis=0)).max()
        small = np.ptp(points, axis=0).max() <= LARGEST * size
        if small and gap <= FARTHEST * size and obstacles.rows[outline.row, kinds.KIND] != kinds.PLANE:
            found.append(points)
    return np.concatenate(found)


def glass(
    points: np.ndarray, triangles: np.ndarray, colour: tuple[float, float, float], camera: Camera
) -> tuple[np.ndarray, np.ndarray]:
    """Corners (t, 3, 3) [m] and colours (t, 4), from 0 to 1, of the triangles that face a camera: clear, lest
    they hide what touches them, but for their rim, by which they look round."""
    corners = points[triangles]
    a, b, c = np.moveaxis(corners, 1, 0)
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    towards = camera.position - corners.mean(axis=1)
    towards /= np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-300)
    facing = np.einsum("ij,ij->i", normals, towards)
    seen = facing > 0
    lit = shade(np.tile(colour, (int(seen.sum()), 1)), normals[seen], camera.axes)
    opacity = CLEAR + RIM * (1 - facing[seen]) ** FALL
    return corners[seen], np.column_stack([lit, opacity])
