"""Triangle meshes of obstacles at a time, for pictures and export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from supple.collision.obstacles import signed_distance as kinds
from supple.collision.obstacles.obstacles import Obstacles

ROUND = 32
"""Segments of a circle."""

BEYOND = 1.0
"""Extent of planes beyond the visible points, relative to the size of these."""


class ObstacleMesh(NamedTuple):
    """Triangle mesh of one shape in its frame.

    Attributes:
        row: Row of the shape.
        points: (p, 3) points [m].
        triangles: (t, 3) triangles, counterclockwise seen from outside.
    """

    row: int
    points: np.ndarray
    triangles: np.ndarray


def transform_meshes(shown: Sequence[ObstacleMesh], obstacles: Obstacles, time: float) -> list[np.ndarray]:
    """Transform outlines to world coordinates.

    Args:
        shown: Outlines.
        obstacles: Obstacles of the model.
        time: Time [s]; deforming surfaces are interpolated.

    Returns:
        Points (p, 3) [m] of each outline.
    """
    poses, surfaces = obstacles.poses(time), obstacles.surfaces(time)
    places = []
    for outline in shown:
        points = surfaces[outline.row][0] if outline.row in surfaces else outline.points
        pose = poses[outline.row]
        places.append(points @ pose[:9].reshape(3, 3) + pose[9:])
    return places


def obstacle_meshes(obstacles: Obstacles, seen: np.ndarray, time: float = 0.0) -> list[ObstacleMesh]:
    """Meshes of all visible shapes.

    Inverted shapes, and planes whose normal has a y component below 0.5, are omitted: they are walls that
    would hide the bodies.

    Args:
        obstacles: Obstacles of the model.
        seen: (k, 3) visible points [m]; planes extend a little beyond these.
        time: Time [s].
    """
    found = []
    rows, surfaces = obstacles.rows.copy(), obstacles.surfaces(time)
    rows[:, kinds.POSE : kinds.POSE + 12] = obstacles.poses(time)
    for k, row in enumerate(rows):
        if row[kinds.SIDE] < 0 or (row[kinds.KIND] == kinds.PLANE and row[kinds.POSE + 7] < 0.5):
            continue
        if k in surfaces:
            found.append(ObstacleMesh(k, *surfaces[k]))
            continue
        points, triangles = _local(row, seen)
        a, b, c = np.moveaxis(points[triangles], 1, 0)
        area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
        found.append(ObstacleMesh(k, points, triangles[area > 1e-12 * area.max(initial=0.0)]))
    return found


def obstacle_triangles(
    obstacles: Obstacles | None, time: float, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Points (p, 3) [m] and triangles (t, 3) of all visible obstacles at a time [s], see `obstacle_meshes`."""
    points, triangles, first = [np.empty((0, 3))], [np.empty((0, 3), np.int64)], 0
    if obstacles is not None:
        shown = obstacle_meshes(obstacles, seen, time)
        points += transform_meshes(shown, obstacles, time)
        for outline in shown:
            triangles.append(outline.triangles + first)
            first += len(outline.points)
    return np.concatenate(points), np.concatenate(triangles)


def _local(row: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points [m] and triangles of a shape in its own frame."""
    a, b, c = row[kinds.SIZE : kinds.SIZE + 3]
    kind = int(row[kinds.KIND])
    if kind == kinds.PLANE:
        return _sheet(row, seen)
    if kind == kinds.BOX:
        corners = np.array([[x, y, z] for x in (-a, a) for y in (-b, b) for z in (-c, c)])
        sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        return corners, np.array([t for p, q, r, s in sides for t in ((p, q, r), (p, r, s))])
    angles = np.linspace(0, np.pi, ROUND // 2 + 1)
    if kind == kinds.CYLINDER:
        return _turned(np.array([0, b, b, 0]), np.array([-a, -a, a, a]))
    return _turned(b * np.sin(angles), -b * np.cos(angles) + a * np.sign(angles - np.pi / 2))


def _turned(radius: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Surface of revolution of a profile about the z axis."""
    turn = np.linspace(0, 2 * np.pi, ROUND, endpoint=False)
    ring = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(ROUND)])
    points = np.concatenate([r * ring + (0, 0, z) for r, z in zip(radius, height, strict=True)])
    k, j = np.arange(len(radius) - 1)[:, None] * ROUND, np.arange(ROUND)
    here, there = k + j, k + (j + 1) % ROUND
    lower = np.stack([here, there, here + ROUND], axis=-1).reshape(-1, 3)
    upper = np.stack([there, there + ROUND, here + ROUND], axis=-1).reshape(-1, 3)
    return points, np.concatenate([lower, upper])


def _sheet(row: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Section of a plane below the visible points."""
    axes, origin = row[kinds.POSE : kinds.POSE + 9].reshape(3, 3), row[kinds.POSE + 9 : kinds.POSE + 12]
    places = (seen - origin) @ axes.T
    size = BEYOND * float(np.ptp(seen, axis=0).max(initial=0.0) or 1.0) / 2
    (x0, y0), (x1, y1) = places[:, :2].min(axis=0) - size, places[:, :2].max(axis=0) + size
    corners = np.array([[x0, y0, 0], [x1, y0, 0], [x1, y1, 0], [x0, y1, 0]])
    return corners, np.array([[0, 1, 2], [0, 2, 3]])
