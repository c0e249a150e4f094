"""The surface of a model as renderers want it: with vertices doubled along sharp edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from supple.embedding import VisibleSurface
from supple.model import Model

SHARP = np.cos(np.radians(35))
"""Cosine of the angle between the normals of two triangles at rest above which their edge is sharp."""

PIN_SPACING = 0.045
"""Pinned vertices that are marked are at least this part of the model's size apart at rest."""


@dataclass(frozen=True, eq=False)
class Surface:
    """What of a model is seen, the same in all frames: triangles (k, 3) with corners numbered through
    source (c,), the point of the visible surface at each corner; pins (p,), the vertices of the model that
    are marked as pinned, and pin_corners (p,), the corners nearest to them at rest; skinned: whether
    triangles are those of a detailed surface, not of tetrahedra."""

    visible: VisibleSurface
    source: np.ndarray
    triangles: np.ndarray
    pins: np.ndarray
    pin_corners: np.ndarray
    skinned: bool

    def corners(self, positions: np.ndarray) -> np.ndarray:
        """(c, 3) where the corners are when the model is at positions (n, 3) [m]."""
        return self.visible.points(positions)[self.source]

    def values(self, values: np.ndarray) -> np.ndarray:
        """(c, ...) values at the corners from values (n, ...) at the vertices of the model."""
        return self.visible.interpolate(values)[self.source]

    def normals(self, corners: np.ndarray) -> np.ndarray:
        """(c, 3) unit normals at corners (c, 3), outwards; means over triangles weighted by area."""
        a, b, c = np.moveaxis(corners[self.triangles], 1, 0)
        faces, ids = np.cross(b - a, c - a), self.triangles.ravel()
        sums = [np.bincount(ids, np.repeat(axis, 3), len(corners)) for axis in faces.T]
        normals = np.stack(sums, axis=1)
        return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)


@lru_cache(maxsize=2)
def surface_of(model: Model) -> Surface:
    visible = VisibleSurface(model.bodies)
    rest = visible.points(model.rest)
    corner = _corners(rest, visible.triangles)
    source = np.empty(corner.max() + 1, np.int64)
    source[corner] = visible.triangles
    outside = np.concatenate([body.mesh.surface_vertices + body.vertices.start for body in model.bodies])
    pins = _spaced(model.rest, np.intersect1d(outside, model.pinned))
    _, nearest = cKDTree(rest[source]).query(model.rest[pins])
    skinned = any(body.skin for body in model.bodies)
    return Surface(visible, source, corner, pins, np.asarray(nearest), skinned)


def _corners(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(k, 3) numbers of corners: two triangles share one where a chain of edges that are not sharp leads
    from the one to the other around their vertex."""
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    start = np.arange(triangles.size).reshape(-1, 3)
    end = np.roll(start, -1, axis=1)
    ids = triangles.ravel()
    low, high = np.sort(np.stack([ids[start.ravel()], ids[end.ravel()]]), axis=0).astype(np.int64)
    order = np.lexsort((high, low))
    same = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
    one, other = order[:-1][same], order[1:][same]
    smooth = np.einsum("ij,ij->i", normals[one // 3], normals[other // 3]) > SHARP
    one, other = one[smooth], other[smooth]
    first, second = start.ravel(), end.ravel()  # neighbours run along their edge in opposite directions
    joined = np.concatenate([first[one], second[one]]), np.concatenate([second[other], first[other]])
    matching = ids[joined[0]] == ids[joined[1]]
    graph = coo_array(
        (np.ones(matching.sum(), bool), (joined[0][matching], joined[1][matching])), shape=(ids.size,) * 2
    )
    return connected_components(graph, directed=False)[1].reshape(-1, 3).astype(np.int64)


def _spaced(points: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Of the chosen vertices as many as fit with some space between any two, the first ones first."""
    width = PIN_SPACING * float(np.linalg.norm(np.ptp(points, axis=0)))
    near = cKDTree(points[chosen]).query_ball_point(points[chosen], width) if len(chosen) else []
    free, kept = np.ones(len(chosen), bool), []
    for number, neighbours in enumerate(near):
        if free[number]:
            kept.append(number)
            free[neighbours] = False
    return chosen[kept]
