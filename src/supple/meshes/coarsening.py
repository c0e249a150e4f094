"""Surface coarsening to a subset of about a quarter of the vertices.

The retained vertices keep a minimum distance from each other; corners and borders have priority. Every other
vertex is assigned to the closest retained one along edges. Each triangle with corners assigned to three
different vertices becomes a triangle of the coarse surface. This map of the surface is continuous, so the
coarse surface has no holes. Quadric decimation offers no advantage on a flat sheet and moves vertices; here
coarse vertices are surface vertices and keep their Dirichlet conditions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra, reverse_cuthill_mckee

from supple.meshes.measures import area_vectors, areas

MIN_SPACING = 1.9
"""Minimum distance of retained vertices in units of the vertex spacing; on regular grids every second vertex
along both axes remains."""

CORNER_COSINE = 0.7
"""Cosine of the angle between border edges below which a border vertex is a corner."""

MIN_ASPECT = 0.02
"""Ratio of area to squared longest edge below which a coarse triangle is dropped."""

MIN_WEIGHT = -0.5
"""Least barycentric weight for vertices beyond a border."""


REVERSED_PENALTY = 1e3
"""Penalty on the weight of a triangle with opposite orientation."""


class CoarseSurface(NamedTuple):
    """Coarse surface and the interpolation of the remaining vertices.

    Attributes:
        vertices: (k,) retained vertices, sorted.
        triangles: (t, 3) coarse triangles, as indices into `vertices`.
        origin: (t,) surface triangle from which each coarse triangle is derived.
        bound: (b,) surface vertices with an interpolation on the coarse surface.
        corners, weights: (b, 3) coarse vertices and weights of the interpolation, with unit sum.
    """

    vertices: np.ndarray
    triangles: np.ndarray
    origin: np.ndarray
    bound: np.ndarray
    corners: np.ndarray
    weights: np.ndarray


def coarsen_surface(points: np.ndarray, triangles: np.ndarray, first: np.ndarray) -> CoarseSurface:
    """Coarsen a surface.

    Args:
        points: (n, 3) vertex positions [m].
        triangles: (m, 3) triangles.
        first: (n,) mask of vertices retained with priority.
    """
    used, local = np.unique(triangles, return_inverse=True)
    local = local.reshape(-1, 3)
    x = points[used]
    lengths = _lengths(x, local)
    retained = _select_vertices(x, local, lengths, first[used])
    nearest = dijkstra(lengths, indices=retained, min_only=True, return_predecessors=True)[2]
    coarse, origin = _triangles(x, local, nearest)
    vertices, numbers = np.unique(coarse, return_inverse=True)
    numbers = numbers.reshape(-1, 3)
    coarse_index = np.full(len(x), -1)
    coarse_index[vertices] = np.arange(len(vertices))
    normals = np.zeros_like(x)
    np.add.at(normals, local, area_vectors(x, local)[:, None])
    bound, corners, weights = _interpolate(x, normals, coarse_index[nearest], x[vertices], numbers)
    return CoarseSurface(used[vertices], numbers, origin, used[bound], corners, weights)


def _lengths(x: np.ndarray, triangles: np.ndarray) -> csr_array:
    """(n, n) sparse matrix of edge lengths [m]."""
    ends = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    a, b = np.unique(ends, axis=0).T
    length = np.linalg.norm(x[a] - x[b], axis=1)
    both = np.concatenate([a, b]), np.concatenate([b, a])
    return coo_array((np.concatenate([length, length]), both), shape=(len(x), len(x))).tocsr()


def _select_vertices(
    x: np.ndarray, triangles: np.ndarray, lengths: csr_array, first: np.ndarray
) -> np.ndarray:
    """(k,) retained vertices, pairwise separated, in order of priority."""
    neighbors = _neighbors_within(x, triangles, lengths)
    rank = np.empty(len(x), np.int64)
    rank[reverse_cuthill_mckee(lengths, symmetric_mode=True)] = np.arange(len(x))
    border, corner = _border(x, triangles)
    order = np.lexsort([rank, ~border, ~corner, ~first])
    start, others = neighbors.indptr, neighbors.indices
    excluded, retained = np.zeros(len(x), bool), []
    for v in order.tolist():
        if not excluded[v]:
            retained.append(v)
            excluded[others[start[v] : start[v + 1]]] = True
    return np.array(retained, np.int64)


def _neighbors_within(x: np.ndarray, triangles: np.ndarray, lengths: csr_array) -> csr_array:
    """(n, n) sparse matrix of vertices at most two edges apart and closer than the minimum distance."""
    around = np.zeros(len(x))
    counts = np.bincount(triangles.ravel(), minlength=len(x))
    np.add.at(around, triangles, np.repeat(areas(x, triangles)[:, None], 3, axis=1))
    spacing = np.sqrt(2 * around / counts)
    edges = lengths.astype(bool).astype(np.int32)
    two = (edges @ edges + edges).tocoo()
    a, b = two.coords
    near = np.linalg.norm(x[a] - x[b], axis=1) < 0.5 * MIN_SPACING * (spacing[a] + spacing[b])
    return coo_array((np.ones(int(near.sum()), np.int8), (a[near], b[near])), shape=two.shape).tocsr()


def _border(x: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masks (n,) of border vertices, and of border corners."""
    n = len(x)
    start, end = triangles.ravel().astype(np.int64), triangles[:, [1, 2, 0]].ravel().astype(np.int64)
    is_border = ~np.isin(start * n + end, end * n + start)
    start, end = start[is_border], end[is_border]
    along = x[end] - x[start]
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
    before, after = np.zeros((n, 3)), np.zeros((n, 3))
    before[end], after[start] = along, along
    border = np.zeros(n, bool)
    border[start] = border[end] = True
    return border, border & (np.einsum("vi,vi->v", before, after) < CORNER_COSINE)


def _triangles(x: np.ndarray, triangles: np.ndarray, nearest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coarse triangles (t, 3), and the surface triangles (t,) from which they are derived."""
    labels = nearest[triangles]
    a, b, c = labels.T
    distinct = np.flatnonzero((a != b) & (b != c) & (c != a))
    _, first = np.unique(np.sort(labels[distinct], axis=1), axis=0, return_index=True)
    origin = np.sort(distinct[first])
    coarse = labels[origin]
    corners = x[coarse]
    longest = np.max([((corners[:, i] - corners[:, i - 1]) ** 2).sum(axis=1) for i in range(3)], axis=0)
    well_shaped = areas(x, coarse) > MIN_ASPECT * longest
    return coarse[well_shaped], origin[well_shaped]


def _interpolate(
    x: np.ndarray, normals: np.ndarray, nearest: np.ndarray, points: np.ndarray, triangles: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Interpolate points x on the coarse triangles around their assigned vertex.

    The chosen triangle contains the point, or nearly so, and has the same orientation.

    Args:
        x: (n, 3) points [m].
        normals: (n, 3) surface normals.
        nearest: (n,) assigned coarse vertex, or -1.
        points: Coarse vertices [m].
        triangles: Coarse triangles.

    Returns:
        Interpolated points (b,), corners (b, 3) and weights (b, 3).
    """
    bound = np.flatnonzero(nearest >= 0)
    choices = _around(triangles, len(points))[nearest[bound]]
    weights = _weights(x[bound], points[triangles[choices]])
    within = weights.min(axis=2)
    cosine_sign = np.einsum("ni,nci->nc", normals[bound], area_vectors(points, triangles)[choices])
    within[cosine_sign < 0] -= REVERSED_PENALTY
    within[choices < 0] = -np.inf
    best = within.argmax(axis=1)
    chosen = np.arange(len(bound)), best
    inside = np.maximum(weights[chosen], MIN_WEIGHT)
    return bound, triangles[choices[chosen]], inside / inside.sum(axis=1, keepdims=True)


def _around(triangles: np.ndarray, count: int) -> np.ndarray:
    """(count, valence) triangles at each vertex, padded with -1."""
    owner = np.argsort(triangles.ravel(), kind="stable")
    valence = np.bincount(triangles.ravel(), minlength=count)
    rank = np.arange(triangles.size) - np.repeat(np.cumsum(valence) - valence, valence)
    table = np.full((count, int(valence.max(initial=1))), -1)
    table[triangles.ravel()[owner], rank] = owner // 3
    return table


def _weights(x: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n, c, 3) barycentric coordinates of points (n, 3), projected onto triangles (n, c, 3, 3)."""
    a, b, c = np.moveaxis(corners, 2, 0)
    e, f, d = b - a, c - a, x[:, None] - a
    ee, ef, ff = (np.einsum("nci,nci->nc", *pair) for pair in ((e, e), (e, f), (f, f)))
    de, df = np.einsum("nci,nci->nc", d, e), np.einsum("nci,nci->nc", d, f)
    area = np.maximum(ee * ff - ef * ef, 1e-300)
    second, third = (ff * de - ef * df) / area, (ee * df - ef * de) / area
    return np.stack([1 - second - third, second, third], axis=2)
