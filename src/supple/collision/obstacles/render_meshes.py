"""Triangle meshes of obstacles at a time, for pictures and export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from supple.collision.obstacles import signed_distance as sdf
from supple.collision.obstacles.obstacles import Obstacles

CIRCLE_SEGMENTS = 32
"""Segments of a circle."""

PLANE_MARGIN = 1.0
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


def transform_meshes(meshes: Sequence[ObstacleMesh], obstacles: Obstacles, time: float) -> list[np.ndarray]:
    """Transform meshes to world coordinates.

    Args:
        meshes: Meshes of shapes.
        obstacles: Obstacles of the model.
        time: Time [s]; deforming surfaces are interpolated.

    Returns:
        Points (p, 3) [m] of each mesh.
    """
    poses, surfaces = obstacles.poses(time), obstacles.surfaces(time)
    positions = []
    for mesh in meshes:
        points = surfaces[mesh.row][0] if mesh.row in surfaces else mesh.points
        pose = poses[mesh.row]
        positions.append(points @ pose[:9].reshape(3, 3) + pose[9:])
    return positions


def obstacle_meshes(obstacles: Obstacles, seen: np.ndarray, time: float = 0.0) -> list[ObstacleMesh]:
    """Meshes of all visible shapes.

    Inverted shapes, and planes whose normal has a y component below 0.5, are omitted: they are walls that
    would hide the bodies.

    Args:
        obstacles: Obstacles of the model.
        seen: (k, 3) visible points [m]; planes extend a little beyond these.
        time: Time [s].
    """
    meshes = []
    rows, surfaces = obstacles.rows.copy(), obstacles.surfaces(time)
    rows[:, sdf.POSE : sdf.POSE + 12] = obstacles.poses(time)
    for k, row in enumerate(rows):
        if row[sdf.SIDE] < 0 or (row[sdf.KIND] == sdf.PLANE and row[sdf.POSE + 7] < 0.5):
            continue
        if k in surfaces:
            meshes.append(ObstacleMesh(k, *surfaces[k]))
            continue
        points, triangles = _local_mesh(row, seen)
        a, b, c = np.moveaxis(points[triangles], 1, 0)
        area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
        meshes.append(ObstacleMesh(k, points, triangles[area > 1e-12 * area.max(initial=0.0)]))
    return meshes


def obstacle_triangles(
    obstacles: Obstacles | None, time: float, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Points (p, 3) [m] and triangles (t, 3) of visible obstacles at a time [s]; see `obstacle_meshes`."""
    points, triangles, first = [np.empty((0, 3))], [np.empty((0, 3), np.int64)], 0
    if obstacles is not None:
        meshes = obstacle_meshes(obstacles, seen, time)
        points += transform_meshes(meshes, obstacles, time)
        for mesh in meshes:
            triangles.append(mesh.triangles + first)
            first += len(mesh.points)
    return np.concatenate(points), np.concatenate(triangles)


def _local_mesh(row: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points [m] and triangles of a shape in its own frame."""
    a, b, c = row[sdf.SIZE : sdf.SIZE + 3]
    kind = int(row[sdf.KIND])
    if kind == sdf.PLANE:
        return _sheet(row, seen)
    if kind == sdf.BOX:
        corners = np.array([[x, y, z] for x in (-a, a) for y in (-b, b) for z in (-c, c)])
        sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        return corners, np.array([t for p, q, r, s in sides for t in ((p, q, r), (p, r, s))])
    angles = np.linspace(0, np.pi, CIRCLE_SEGMENTS // 2 + 1)
    if kind == sdf.CYLINDER:
        return _revolve(np.array([0, b, b, 0]), np.array([-a, -a, a, a]))
    return _revolve(b * np.sin(angles), -b * np.cos(angles) + a * np.sign(angles - np.pi / 2))


def _revolve(radius: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Surface of revolution of a profile about the z axis."""
    turn = np.linspace(0, 2 * np.pi, CIRCLE_SEGMENTS, endpoint=False)
    ring = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(CIRCLE_SEGMENTS)])
    points = np.concatenate([r * ring + (0, 0, z) for r, z in zip(radius, height, strict=True)])
    k, j = np.arange(len(radius) - 1)[:, None] * CIRCLE_SEGMENTS, np.arange(CIRCLE_SEGMENTS)
    first, second = k + j, k + (j + 1) % CIRCLE_SEGMENTS
    lower = np.stack([first, second, first + CIRCLE_SEGMENTS], axis=-1).reshape(-1, 3)
    upper = np.stack([second, second + CIRCLE_SEGMENTS, first + CIRCLE_SEGMENTS], axis=-1).reshape(-1, 3)
    return points, np.concatenate([lower, upper])


def _sheet(row: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Section of a plane below the visible points."""
    axes, origin = row[sdf.POSE : sdf.POSE + 9].reshape(3, 3), row[sdf.POSE + 9 : sdf.POSE + 12]
    local = (seen - origin) @ axes.T
    size = PLANE_MARGIN * float(np.ptp(seen, axis=0).max(initial=0.0) or 1.0) / 2
    (x0, y0), (x1, y1) = local[:, :2].min(axis=0) - size, local[:, :2].max(axis=0) + size
    corners = np.array([[x0, y0, 0], [x1, y0, 0], [x1, y1, 0], [x0, y1, 0]])
    return corners, np.array([[0, 1, 2], [0, 2, 3]])
