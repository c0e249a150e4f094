"""Cloth drawn as thick as it is: both sides apart, and a rim along its borders."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supple.meshes.corners import unit_normals
from supple.meshes.edges import Edges


class Slab(NamedTuple):
    """How corners of a surface stand off the middle of the cloth: by off (c,) [m] along the normal of the
    triangles (t, 3) of points that are cloth."""

    off: np.ndarray
    triangles: np.ndarray

    def lifted(self, points: np.ndarray, source: np.ndarray) -> np.ndarray:
        """(c, 3) where corners are whose sources (c,) are among points (k, 3) [m]."""
        return points[source] + self.off[:, None] * unit_normals(points, self.triangles)[source]


def slab_of(
    triangles: np.ndarray, source: np.ndarray, front: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Slab]:
    """All triangles with those of rims, the sources of all corners, and how these stand off.

    triangles (k, 3) of corners whose sources are points source (c,); front (t,): which of them are cloth seen
    from the front, the last t of all being the same from behind, with corners in the opposite order; half
    (t,) [m]: half of its thickness.
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
    corners = len(source) + np.arange(around.size).reshape(-1, 4)  # with normals of their own
    rim = np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]])
    slab = Slab(np.concatenate([off, off[around.ravel()]]), source[above])
    return np.concatenate([triangles, rim]), np.concatenate([source, source[around.ravel()]]), slab
