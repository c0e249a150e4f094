"""The surface of a model as renderers want it: with vertices doubled along sharp edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial import cKDTree

from supple.embedding import VisibleSurface
from supple.meshes.corners import corner_values, smooth_corners, unit_normals
from supple.model import Model
from supple.view.slab import Slab, slab_of

PIN_SPACING = 0.045
"""Pinned vertices that are marked are at least this part of the model's size apart at rest."""


@dataclass(frozen=True, eq=False)
class Surface:
    """What of a model is seen, the same in all frames: triangles (k, 3) with corners numbered through
    source (c,), the point of the visible surface at each corner; pins (p,), the vertices of the model that
    are marked as pinned, rolling (p,), whether they are so along some directions only, and pin_corners (p,),
    the corners nearest to them at rest; skinned: whether triangles are those of a detailed surface, not of
    bodies; two_sided: whether there is cloth, which has a triangle for each side; slab: how its sides stand
    apart, None where they do not."""

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
        """(c, 3) where the corners are when the model is at positions (n, 3) [m]."""
        points = self.visible.points(positions)
        return points[self.source] if self.slab is None else self.slab.lifted(points, self.source)

    def values(self, values: np.ndarray, separate: bool = False) -> np.ndarray:
        """(c, ...) values at the corners from values (n, ...) at the vertices of the model; separate: those
        of the nearest vertex, where values only tell things apart."""
        spread = self.visible.pick if separate else self.visible.interpolate
        return spread(values)[self.source]

    def normals(self, corners: np.ndarray) -> np.ndarray:
        """(c, 3) unit normals at corners (c, 3), outwards; means over triangles weighted by area."""
        return unit_normals(corners, self.triangles)


@lru_cache(maxsize=2)
def surface_of(model: Model, thickness: float = 0.0) -> Surface:
    """What is seen of a model; thickness: how many times as thick as it is cloth is drawn, 0 for a surface
    without any."""
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
    pins = spaced(model.rest, marked[np.argsort(free[marked], kind="stable")], width)
    _, nearest = cKDTree(rest[source]).query(model.rest[pins])
    skinned = any(body.skin for body in model.bodies)
    return Surface(
        visible, source, corner, pins, free[pins], np.asarray(nearest), skinned, bool(cloth.any()), slab
    )


def _two_sided(corner: np.ndarray, source: np.ndarray, cloth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles (k, 3) of corners with their sources (c,), and for those that are cloth (k,) another one each
    that is seen from behind, with corners of its own, whose normals point there."""
    ids, behind = np.unique(corner[cloth], return_inverse=True)
    back = behind.reshape(-1, 3)[:, ::-1] + len(source)
    return np.concatenate([corner, back]), np.concatenate([source, source[ids]])


def spaced(points: np.ndarray, chosen: np.ndarray, width: float) -> np.ndarray:
    """Of the chosen points as many as fit with this width [m] between any two, the first ones first."""
    near = cKDTree(points[chosen]).query_ball_point(points[chosen], width) if len(chosen) else []
    free, kept = np.ones(len(chosen), bool), []
    for number, neighbours in enumerate(near):
        if free[number]:
            kept.append(number)
            free[neighbours] = False
    return chosen[kept]
