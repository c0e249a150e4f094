"""Surface of a model for rendering, with vertices duplicated along sharp edges.

Cloth is drawn with its thickness: two separate sides, and a rim along its borders.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from supple.meshes.corners import corner_values, smooth_corners, unit_normals
from supple.meshes.edges import Edges
from supple.meshes.skinning import VisibleSurface
from supple.model.model import Model


class Slab(NamedTuple):
    """Offsets of surface corners from the midsurface of cloth.

    Attributes:
        off: (c,) offset along the normal [m].
        triangles: (t, 3) triangles of points that are cloth.
    """

    off: np.ndarray
    triangles: np.ndarray

    def offset_points(self, points: np.ndarray, source: np.ndarray) -> np.ndarray:
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
    boundary = sides.first[:-1][np.diff(sides.first) == 1]
    owner = sides.triangle[boundary]
    i = (source[above[owner]] == sides.start[boundary][:, None]).argmax(axis=1)
    j = (i + 1) % 3
    around = np.stack([above[owner, i], below[owner, i], below[owner, j], above[owner, j]], axis=1)
    corners = len(source) + np.arange(around.size).reshape(-1, 4)  # with separate normals
    rim = np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]])
    slab = Slab(np.concatenate([off, off[around.ravel()]]), source[above])
    return np.concatenate([triangles, rim]), np.concatenate([source, source[around.ravel()]]), slab


PIN_SPACING = 0.045
"""Smallest rest distance of pin markers, relative to the model's size."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Visible surface of a model, shared by all frames.

    Attributes:
        visible: Visible surface of the bodies.
        source: (c,) point of the visible surface of each corner.
        triangles: (k, 3) triangles of corners.
        pins: (p,) vertices marked as pinned.
        rolling: (p,) True for vertices pinned along some directions only.
        pin_corners: (p,) corners nearest to the pins at rest.
        skinned: True if triangles belong to a detailed surface instead of bodies.
        two_sided: True if there is cloth, with separate triangles per side.
        slab: Offsets of both sides, or None.
    """

    visible: VisibleSurface
    source: np.ndarray
    triangles: np.ndarray
    pins: np.ndarray
    rolling: np.ndarray
    pin_corners: np.ndarray
    skinned: bool
    two_sided: bool
    slab: Slab | None = None

    def corners(self, positions: np.ndarray) -> np.ndarray:
        """(c, 3) corner positions of the model at positions (n, 3) [m]."""
        points = self.visible.points(positions)
        return points[self.source] if self.slab is None else self.slab.offset_points(points, self.source)

    def values(self, values: np.ndarray, separate: bool = False) -> np.ndarray:
        """(c, ...) corner values of vertex values (n, ...).

        Interpolated; if `separate`, taken from the nearest vertex, for integer labels.
        """
        spread = self.visible.pick if separate else self.visible.interpolate
        return spread(values)[self.source]

    def normals(self, corners: np.ndarray) -> np.ndarray:
        """(c, 3) unit outward normals at corners (c, 3), averaged over triangles with area weights."""
        return unit_normals(corners, self.triangles)


@lru_cache(maxsize=2)
def surface_of(model: Model, thickness: float = 0.0) -> Surface:
    """Return a model's visible surface; `thickness` is the factor by which cloth thickness is drawn."""
    visible = VisibleSurface(model.bodies)
    rest = visible.points(model.rest)
    corner = smooth_corners(rest, visible.triangles)
    source = corner_values(corner, visible.triangles.astype(np.int64))
    cloth = np.array([body.mesh.corners == 3 for body in model.bodies])
    front = np.flatnonzero(cloth[visible.body])
    corner, source = _two_sided(corner, source, cloth[visible.body])
    slab = None
    if thickness > 0 and len(front):
        half = np.array([0.5 * thickness * getattr(body, "thickness", 0.0) for body in model.bodies])
        corner, source, slab = slab_of(corner, source, front, half[visible.body[front]])
    outside = np.concatenate([body.mesh.surface_vertices + body.vertices.start for body in model.bodies])
    marked, free = np.intersect1d(outside, model.pinned), model.free
    width = PIN_SPACING * float(np.linalg.norm(np.ptp(model.rest, axis=0)))
    pins = select_spaced(model.rest, marked[np.argsort(free[marked], kind="stable")], width)
    _, nearest = cKDTree(rest[source]).query(model.rest[pins])
    skinned = any(body.skin for body in model.bodies)
    return Surface(
        visible, source, corner, pins, free[pins], np.asarray(nearest), skinned, bool(cloth.any()), slab
    )


def _two_sided(corner: np.ndarray, source: np.ndarray, cloth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add back sides to cloth triangles, with separate corners and reverse normals.

    Args:
        corner: (k, 3) triangles.
        source: (c,) point of each corner.
        cloth: (k,) True for cloth.
    """
    ids, behind = np.unique(corner[cloth], return_inverse=True)
    back = behind.reshape(-1, 3)[:, ::-1] + len(source)
    return np.concatenate([corner, back]), np.concatenate([source, source[ids]])


def select_spaced(points: np.ndarray, chosen: np.ndarray, width: float) -> np.ndarray:
    """Select points at least a width [m] apart, greedily in the given order."""
    near = cKDTree(points[chosen]).query_ball_point(points[chosen], width) if len(chosen) else []
    free, numbers = np.ones(len(chosen), bool), []
    for number, neighbors in enumerate(near):
        if free[number]:
            numbers.append(number)
            free[neighbors] = False
    return chosen[numbers]
