"""Closest points of bodies at rest, found by a bounding box tree, exact in float64.

Closest points lie inside a tetrahedron or otherwise on the surface; for cloth on the surface.

Cells are sorted along a Morton curve through their centers; recursive halves of that order are the nodes of a
complete binary tree. All points descend together, level by level, as pairs of point and node.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial import cKDTree

from supple.meshes.mesh import Mesh

MAX_LEAF_CELLS = 4
"""Largest number of cells per leaf, up to rounding. Larger leaves: fewer levels, more candidate cells."""

MORTON_BITS = 20
"""Bits per coordinate in a Morton code."""

POINTS_PER_BATCH = 8192
"""Number of points that descend the tree together."""

MAX_PAIRS = 1_000_000
"""Number of point-node pairs above which fewer points descend together: the center of a sphere is close to
all of its cells."""

RELATIVE_MARGIN = 1e-9
"""Relative margin of search distances and of cell sizes."""


class BoxTree:
    """Bounding box tree over cells with corners (m, k, 3) [m]."""

    def __init__(self, corners: np.ndarray) -> None:
        low, high = corners.min(axis=1), corners.max(axis=1)
        margin = RELATIVE_MARGIN * np.linalg.norm(high - low, axis=1)[:, None]
        self._order = np.argsort(_morton_codes(low + (high - low) / 2), kind="stable")
        self._low, self._high = (low - margin)[self._order], (high + margin)[self._order]
        self._levels = max(0, (len(corners) // MAX_LEAF_CELLS).bit_length() - 1)
        self._starts = (np.arange((1 << self._levels) + 1) * len(corners)) >> self._levels
        least = np.minimum.reduceat(self._low, self._starts[:-1])
        most = np.maximum.reduceat(self._high, self._starts[:-1])
        self._boxes = [(least, most)]
        for _ in range(self._levels):
            least, most = least.reshape(-1, 2, 3).min(axis=1), most.reshape(-1, 2, 3).max(axis=1)
            self._boxes.insert(0, (least, most))

    def near(self, points: np.ndarray, reach: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs of points and cells whose boxes are within the search distance.

        All pairs of a point are in the same item.

        Args:
            points: (k, 3) points [m].
            reach: (k,) search distances [m].

        Yields:
            Point indices (p,) and cell indices (p,).
        """
        squares = (reach * (1 + RELATIVE_MARGIN)) ** 2
        ranges = [
            (k, min(k + POINTS_PER_BATCH, len(points))) for k in range(0, len(points), POINTS_PER_BATCH)
        ]
        while ranges:
            first, last = ranges.pop()
            overlaps = self._pairs(np.arange(first, last), points, squares)
            if overlaps is None:
                middle = (first + last) // 2
                ranges += [(first, middle), (middle, last)]
            else:
                yield overlaps

    def _pairs(
        self, chosen: np.ndarray, points: np.ndarray, squares: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Pairs of points and nearby cells; None if they exceed the memory limit."""
        is_single, node = len(chosen) == 1, np.zeros(len(chosen), np.int64)
        for least, most in self._boxes[1:]:
            if len(chosen) > MAX_PAIRS and not is_single:
                return None
            chosen, node = np.repeat(chosen, 2), np.stack([2 * node, 2 * node + 1], axis=1).ravel()
            near = _squared_distances(points[chosen], least[node], most[node]) <= squares[chosen]
            chosen, node = chosen[near], node[near]
        counts = self._starts[node + 1] - self._starts[node]
        before = np.cumsum(counts) - counts
        cells = np.arange(counts.sum()) + np.repeat(self._starts[node] - before, counts)
        chosen = np.repeat(chosen, counts)
        near = _squared_distances(points[chosen], self._low[cells], self._high[cells]) <= squares[chosen]
        return chosen[near], self._order[cells[near]]


def _squared_distances(points: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Squared distances (p,) [m²] of points (p, 3) from boxes; 0 inside."""
    excess = np.maximum(np.maximum(low - points, points - high), 0)
    return np.einsum("pi,pi->p", excess, excess)


def _morton_codes(points: np.ndarray) -> np.ndarray:
    """Morton codes (m,) of points (m, 3): interleaved bits of their coordinates."""
    low, size = points.min(axis=0), np.ptp(points, axis=0).max()
    scaled = (points - low) * ((2**MORTON_BITS - 1) / size if size > 0 else 0.0)
    codes = np.zeros(len(points), np.int64)
    for axis, column in enumerate(scaled.astype(np.int64).T):
        for bit in range(MORTON_BITS):
            codes |= ((column >> bit) & 1) << (3 * bit + axis)
    return codes


_INSIDE = -1e-9
"""Smallest barycentric coordinate of interior points: points on a face belong to the body."""


def closest_in_body(points: np.ndarray, mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Find the point of a body closest to each point.

    Args:
        points: (k, 3) points [m].
        mesh: Mesh of the body.

    Returns:
        Vertices (k, 4) and weights (k, 4) ≥ 0 with Σ_j w_j = 1: Σ_j w_j X_j is the closest point. The fourth
        weight is 0 on the surface. Cloth has three vertices and weights.
    """
    if mesh.corners == 3:
        triangle, weights = closest_on_triangles(points, mesh.points, mesh.surface)
        return mesh.surface[triangle].astype(np.int64), _normalize_weights(weights)
    tet, weights = containing_tets(points, mesh.points, mesh.cells)
    vertices = mesh.cells[tet].astype(np.int64)
    outside = np.flatnonzero(tet < 0)
    if len(outside):
        triangle, coordinates = closest_on_triangles(points[outside], mesh.points, mesh.surface)
        vertices[outside] = mesh.surface[triangle][:, [0, 1, 2, 0]]
        weights[outside] = np.pad(coordinates, ((0, 0), (0, 1)))
    return vertices, _normalize_weights(weights)


def _normalize_weights(weights: np.ndarray) -> np.ndarray:
    weights = np.maximum(weights, 0)
    return weights / weights.sum(axis=1, keepdims=True)


def containing_tets(
    points: np.ndarray, vertices: np.ndarray, tets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the tetrahedron that contains each point.

    Args:
        points: Points (k, 3) [m].
        vertices: Vertices (n, 3) [m] of the mesh.
        tets: Tetrahedra (m, 4).

    Returns:
        Tetrahedron (k,) of each point, -1 for none, and barycentric coordinates (k, 4). Of several
        tetrahedra, the one with the largest minimum coordinate is chosen.
    """
    containing, coordinates = np.full(len(points), -1), np.zeros((len(points), 4))
    corners = vertices[tets]
    for point, tet in BoxTree(corners).near(points, np.zeros(len(points))):
        inside = _barycentric(points[point], corners[tet])
        depth = inside.min(axis=1)
        valid = np.flatnonzero(depth >= _INSIDE)
        best = valid[_first_of_each(point[valid], -depth[valid], tet[valid])]
        containing[point[best]], coordinates[point[best]] = tet[best], inside[best]
    return containing, coordinates


def closest_on_triangles(
    points: np.ndarray, vertices: np.ndarray, triangles: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the closest point of a triangle surface to each point.

    Args:
        points: Points (k, 3) [m].
        vertices: Vertices (n, 3) [m] of the surface, which may be open.
        triangles: Triangles (m, 3).

    Returns:
        Triangle (k,) of each point, the first of several equally close ones, and weights (k, 3) ≥ 0 of its
        corners at the closest point.
    """
    closest, weights = np.zeros(len(points), np.int64), np.zeros((len(points), 3))
    corners = vertices[triangles]
    reach, _ = cKDTree(vertices[np.unique(triangles)]).query(points)
    for point, triangle in BoxTree(corners).near(points, np.asarray(reach)):
        triangle_corners = corners[triangle]
        own = _closest_weights(points[point], triangle_corners)
        offset = np.einsum("pk,pki->pi", own, triangle_corners) - points[point]
        best = _first_of_each(point, np.einsum("pi,pi->p", offset, offset), triangle)
        closest[point[best]], weights[point[best]] = triangle[best], own[best]
    return closest, weights


def _first_of_each(point: np.ndarray, value: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Index of each point's pair with the least value; the first cell among ties."""
    order = np.lexsort((cell, value, point))
    return order[np.diff(point[order], prepend=-1) > 0]


def _barycentric(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Barycentric coordinates (p, 4) of points (p, 3) in tetrahedra (p, 4, 3); -∞ for flat tetrahedra."""
    a, b, c = np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 0)
    r = points - corners[:, 0]
    bc, ca, ab = np.cross(b, c), np.cross(c, a), np.cross(a, b)
    volume = np.einsum("pi,pi->p", a, bc)
    flat = volume == 0
    parts = [np.einsum("pi,pi->p", r, n) / np.where(flat, 1.0, volume) for n in (bc, ca, ab)]
    coordinates = np.column_stack([1 - sum(parts), *parts])
    coordinates[flat] = -np.inf
    return coordinates


def _closest_weights(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Corner weights (p, 3) at the closest points of triangles (p, 3, 3) [Ericson 2005, section 5.1.5].

    For a triangle without area, the closest point of its edges.
    """
    a, b, c = np.moveaxis(corners, 1, 0)
    n = np.cross(b - a, c - a)
    square = np.einsum("pi,pi->p", n, n)
    r = points - a
    w = _ratio(np.einsum("pi,pi->p", np.cross(b - a, r), n), square)
    v = _ratio(np.einsum("pi,pi->p", np.cross(r, c - a), n), square)
    inner = np.column_stack([1 - v - w, v, w])
    edges = [_on_edge(points, corners, *pair) for pair in ((0, 1), (1, 2), (2, 0))]
    inner = np.where(((square > 0) & (inner.min(axis=1) >= 0))[:, None], inner, edges[0])
    candidates = [inner, *edges]  # rounding may make the edges of slivers closer
    offsets = [points - np.einsum("pk,pki->pi", weights, corners) for weights in candidates]
    nearest = np.argmin([np.einsum("pi,pi->p", d, d) for d in offsets], axis=0)
    return np.choose(nearest[:, None], candidates)


def _on_edge(points: np.ndarray, corners: np.ndarray, start: int, end: int) -> np.ndarray:
    """Corner weights (p, 3) at the closest point of an edge between two corners."""
    p, q = corners[:, start], corners[:, end]
    along = q - p
    t = _ratio(np.einsum("pi,pi->p", points - p, along), np.einsum("pi,pi->p", along, along)).clip(0, 1)
    weights = np.zeros((len(points), 3))
    weights[:, start], weights[:, end] = 1 - t, t
    return weights


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a/b, or 0 if b is 0."""
    return a / np.where(b == 0, np.inf, b)
