"""Whether triangles that have passed each other would part the way that they see each other.

Where corners of two blocks overlap, their sides face each other as well as top and bottom do, each seen
through what the other pair has passed. The shortest way out is the right one: what one of two points has to
go to a side of the other body, and the other one to a side of the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from supple.contact.grid import near
from supple.contact.weights import length, weigh_triangles, weighted
from supple.kernels import Runner

if TYPE_CHECKING:
    from supple.contact.pairs import Meetings, Surfaces

SHORT = 0.5, 0.8
"""Distances of both points to the nearest faces of the other body, together and in parts of the depth, from
which on a way out begins to count, and wholly does."""

FAR_SIDE = -0.5
"""Cosine of the angle between a way out and the normals of faces below which these are on the far side of the
body: nothing shall leave there, however thin it is."""


def short(
    surfaces: Surfaces, x: np.ndarray, normal: np.ndarray, passed: Meetings, runner: Runner
) -> np.ndarray:
    """(m,) from 1, where triangles of two bodies part along the shortest way out, to 0, where another face
    is much nearer; with vertices at x (n, 3) and normals (t, 3) of triangles."""
    count, depth = len(passed.distance), -passed.distance
    if count == 0:
        return np.ones(0)
    stencils, weights = passed.vertices, passed.weights
    points = np.concatenate(
        [weighted(x, stencils[:, :3], weights[:, :3]), weighted(x, stencils[:, 3:], -weights[:, 3:])]
    )
    inside = surfaces.body[np.concatenate([stencils[:, -1], stencils[:, 0]])]
    outwards = np.concatenate([passed.normal, -passed.normal])
    some = _around(surfaces, x, points, float(depth.max()))
    all_points = np.concatenate([x, points])
    seek = len(x) + np.arange(2 * count)
    start, found = near(all_points, seek[:, None], surfaces.triangles[some], float(depth.max()), runner)
    one, triangle = np.repeat(np.arange(2 * count), np.diff(start)), some[found]
    ways = surfaces.body[surfaces.triangles[triangle, 0]] == inside[one]
    ways &= (outwards[one] * normal[triangle]).sum(axis=1) > FAR_SIDE
    one, triangle = one[ways], triangle[ways]
    pairs = np.column_stack([seek[one], surfaces.triangles[triangle]])
    closest = np.zeros(pairs.shape)
    weigh_triangles(all_points, pairs, closest)
    least = np.tile(depth, 2)
    np.minimum.at(least, one, length(weighted(all_points, pairs, closest)))
    begin, whole = SHORT
    return np.clip(((least[:count] + least[count:]) / depth - begin) / (whole - begin), 0.0, 1.0)


def _around(surfaces: Surfaces, x: np.ndarray, points: np.ndarray, radius: float) -> np.ndarray:
    """Numbers of the triangles that have an outside, and boxes that are near to that of points (m, 3)."""
    corners = x[surfaces.triangles]
    near_by = (corners.min(axis=1) <= points.max(axis=0) + radius).all(axis=1)
    near_by &= (corners.max(axis=1) >= points.min(axis=0) - radius).all(axis=1)
    return np.flatnonzero(near_by & ~surfaces.free)
