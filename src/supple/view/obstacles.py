"""What obstacles look like in pictures: triangles of every shape, where it is at a time."""

from __future__ import annotations

import numpy as np

from supple.contact import Obstacles
from supple.contact import shapes as kinds

ROUND = 32
"""Sides of what is round."""

BEYOND = 1.0
"""How far planes are drawn beyond what is seen, in parts of its size."""


def obstacle_triangles(
    obstacles: Obstacles | None, time: float, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Points (p, 3) [m] and triangles (t, 3) of all obstacles at a time [s]; planes reach a little beyond
    points (k, 3) that are seen. Walls that bodies are inside of are left out where they would hide them."""
    points, triangles, first = [np.empty((0, 3))], [np.empty((0, 3), np.int64)], 0
    for row in () if obstacles is None else obstacles.shapes(time).rows:
        if row[kinds.SIDE] < 0 or (row[kinds.KIND] == kinds.PLANE and row[kinds.POSE + 7] < 0.5):
            continue
        assert obstacles is not None
        local, of_shape = _local(row, obstacles.values, seen)
        axes, origin = row[kinds.POSE : kinds.POSE + 9].reshape(3, 3), row[kinds.POSE + 9 : kinds.POSE + 12]
        points.append(local @ axes + origin)
        triangles.append(of_shape + first)
        first += len(local)
    return np.concatenate(points), np.concatenate(triangles)


def _local(row: np.ndarray, values: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In the frame of a shape."""
    a, b, c = row[kinds.SIZE : kinds.SIZE + 3]
    kind = int(row[kinds.KIND])
    if kind == kinds.PLANE:
        return _sheet(row, seen)
    if kind == kinds.BOX:
        corners = np.array([[x, y, z] for x in (-a, a) for y in (-b, b) for z in (-c, c)])
        sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        return corners, np.array([t for p, q, r, s in sides for t in ((p, q, r), (p, r, s))])
    if kind == kinds.GRID:
        return _contour(row, values)
    angles = np.linspace(0, np.pi, ROUND // 2 + 1)
    if kind == kinds.CYLINDER:
        return _turned(np.array([0, b, b, 0]), np.array([-a, -a, a, a]))
    return _turned(b * np.sin(angles), -b * np.cos(angles) + a * np.sign(angles - np.pi / 2))


def _turned(radius: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A profile turned about the z axis."""
    turn = np.linspace(0, 2 * np.pi, ROUND, endpoint=False)
    ring = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(ROUND)])
    points = np.concatenate([r * ring + (0, 0, z) for r, z in zip(radius, height, strict=True)])
    k, j = np.arange(len(radius) - 1)[:, None] * ROUND, np.arange(ROUND)
    here, there = k + j, k + (j + 1) % ROUND
    lower = np.stack([here, there, here + ROUND], axis=-1).reshape(-1, 3)
    upper = np.stack([there, there + ROUND, here + ROUND], axis=-1).reshape(-1, 3)
    return points, np.concatenate([lower, upper])


def _sheet(row: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The part of a plane that is below what is seen."""
    axes, origin = row[kinds.POSE : kinds.POSE + 9].reshape(3, 3), row[kinds.POSE + 9 : kinds.POSE + 12]
    places = (seen - origin) @ axes.T
    size = BEYOND * float(np.ptp(seen, axis=0).max(initial=0.0) or 1.0) / 2
    (x0, y0), (x1, y1) = places[:, :2].min(axis=0) - size, places[:, :2].max(axis=0) + size
    corners = np.array([[x0, y0, 0], [x1, y0, 0], [x1, y1, 0], [x0, y1, 0]])
    return corners, np.array([[0, 1, 2], [0, 2, 3]])


def _contour(row: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The surface of a grid of distances."""
    from pyvista import ImageData

    numbers = row[kinds.SIZE : kinds.SIZE + 3].astype(int)
    first = int(row[kinds.FIRST])
    grid = ImageData(dimensions=tuple(numbers), spacing=(row[kinds.SPACING],) * 3)
    distances = values[first : first + int(numbers.prod())].reshape(numbers)
    surface = grid.contour([0.0], scalars=distances.ravel(order="F"))
    return np.asarray(surface.points, float), np.asarray(surface.regular_faces, np.int64)
