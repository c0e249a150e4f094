"""Obstacles in pictures: selection and transparency."""

from __future__ import annotations

import numpy as np

from supple.collision.obstacles import signed_distance as shapes_sdf
from supple.collision.obstacles.obstacles import Obstacles
from supple.collision.obstacles.render_meshes import obstacle_meshes, transform_meshes
from supple.view.camera import Camera
from supple.view.renderers.light import shade

MAX_OBSTACLE_SIZE = 2.0
"""Largest extent of an obstacle that is kept in view, relative to the bodies' extent; excludes walls."""

MAX_OBSTACLE_DISTANCE = 0.5
"""Largest distance of such an obstacle from the bodies, relative to their extent."""

CLEAR, RIM, FALL = 0.2, 0.45, 3
"""Opacity of obstacles at normal incidence, added opacity at the silhouette, exponent of its decay."""


def near_obstacles(obstacles: Obstacles | None, time: float, seen: np.ndarray) -> np.ndarray:
    """Obstacle points to be kept in view.

    Args:
        obstacles: Obstacles, or None.
        time: Time [s].
        seen: (n, 3) points of the bodies [m].

    Returns:
        (k, 3) points of obstacles near the bodies and not much larger [m]; planes are excluded.
    """
    near = [np.empty((0, 3))]
    if obstacles is None or not len(seen):
        return near[0]
    low, high = seen.min(axis=0), seen.max(axis=0)
    size = float((high - low).max())
    shapes = obstacle_meshes(obstacles, seen, time)
    for outline, points in zip(shapes, transform_meshes(shapes, obstacles, time), strict=True):
        gap = np.maximum(points.min(axis=0) - high, low - points.max(axis=0)).max()
        small = np.ptp(points, axis=0).max() <= MAX_OBSTACLE_SIZE * size
        if (
            small
            and gap <= MAX_OBSTACLE_DISTANCE * size
            and obstacles.rows[outline.row, shapes_sdf.KIND] != shapes_sdf.PLANE
        ):
            near.append(points)
    return np.concatenate(near)


def transparent_obstacles(
    points: np.ndarray, triangles: np.ndarray, color: tuple[float, float, float], camera: Camera
) -> tuple[np.ndarray, np.ndarray]:
    """Transparent triangles of obstacles that face the camera, less transparent at the silhouette.

    Returns:
        Corners (t, 3, 3) [m] and RGBA colors (t, 4) from 0 to 1.
    """
    corners = points[triangles]
    a, b, c = np.moveaxis(corners, 1, 0)
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    towards = camera.position - corners.mean(axis=1)
    towards /= np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-300)
    cosine = np.einsum("ij,ij->i", normals, towards)
    seen = cosine > 0
    lit = shade(np.tile(color, (int(seen.sum()), 1)), normals[seen], camera.axes)
    opacity = CLEAR + RIM * (1 - cosine[seen]) ** FALL
    return corners[seen], np.column_stack([lit, opacity])
