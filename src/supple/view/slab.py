"""Cloth drawn with its thickness: two separate sides, and a rim along its borders."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supple.meshes.corners import unit_normals
from supple.meshes.edges import Edges


class Slab(NamedTuple):
    """Offsets of surface corners from the midsurface of cloth.

    Attributes:
        off: (c,) offset along the normal [m].
        triangles: (t, 3) triangles of points that are cloth.
    """

    off: np.ndarray
    triangles: np.ndarray

    def lifted(self, points: np.ndarray, source: np.ndarray) -> np.ndarray:
        """(c, 3) corner positions [m], for corners with sources (c,) among points (k, 3) [m]."""
        return points[source] + self.off[:, None] * unit_normals(points, self.triangles)[source]


def slab_of(
    triangles: np.ndarray, source: np.ndarray, front: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Slab]:
    """Add thickness and rims to cloth triangles.

    Args:
        triangles: (k, 3) triangles of corners.
        source: (c,) point of each corner.
        front: (t,) front sides of cloth among the triangles; the last t triangles are their back sides, with
            corners in reverse order.
        half: (t,) half thickness [m].

    Returns:
        All triangles including rims, the points of all corners, and the offsets.
    """
    above, below = triangles[front], triangles[-len(front) :][:, ::-1]
    off = np.zeros(len(source))
    off[above], off[below] = half[:, None], -half[:, None]
    sides = Edges(source[above]).sides
    alone = sides.first[:-1][np.diff(sides.first) == 1]
    owner = sides.triangle[alone]
    i = (source[above[owner]] == sides.start[alone][:, None]).argmax(axis=1)
    j = (i + 1) % 3
    around = np.stack([above[owner, i], below[owner, i], below[owner, j], above[owner, j]], axis=1)
    corners = len(source) + np.arange(around.size).reshape(-1, 4)  # with separate normals
    rim = np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]])
    slab = Slab(np.concatenate([off, off[around.ravel()]]), source[above])
    return np.concatenate([triangles, rim]), np.concatenate([source, source[around.ravel()]]), slab
