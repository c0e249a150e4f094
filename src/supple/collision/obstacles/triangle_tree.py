"""Bounding volume hierarchies of closed triangle meshes, in the layout of `mesh_distance.py`."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from supple.collision.obstacles.mesh_distance import (
    BOX,
    CORNERS,
    COUNT,
    EDGE,
    HEADER,
    LEVELS,
    NORMALS,
    REGION_LENGTH,
    ROUNDING_LENGTH,
)

LEAF_TRIANGLES = 2
"""Smallest number of triangles per leaf; the largest is below twice this number."""

DEGENERATE_HEIGHT = 1e-12
"""Height of a triangle relative to its longest edge below which it is degenerate."""

TINY_PART = 1e-10
"""Distance relative to the mesh size below which the direction to the closest point is rounding error."""


REGION_EDGES, REGION_SIZES = 2.0, 1 / 64
"""Region length for the subdivision of body triangles near a mesh, in mesh edges and relative to the mesh
size; the larger value applies."""

MIN_CREASE_HEIGHT = 1e-6
"""Height of the opposite corner over the plane of a triangle, relative to its distance, above which their
edge is concave."""

MIN_NORMAL_SUM = 1e-12
"""Length of a sum of unit normals below which they cancel."""


class TriangleTree:
    """Bounding volume hierarchy of triangles (t, 3), built from the centroids at points (p, 3) [m].

    Attributes:
        triangles: (t, 3) triangles in leaf order.
        levels: Levels of boxes below the root.
    """

    def __init__(self, points: np.ndarray, triangles: np.ndarray) -> None:
        count = len(triangles)
        self.levels = max(0, (count // LEAF_TRIANGLES).bit_length() - 1)
        self.triangles = np.asarray(triangles)[_leaf_order(points[triangles].mean(axis=1), self.levels)]

    @property
    def size(self) -> int:
        """Length of the array that `numbers_at` returns."""
        return tree_size(len(self.triangles))

    def numbers_at(self, points: np.ndarray) -> np.ndarray:
        """Tree as an array for kernels, with vertices at points (p, 3) [m]."""
        numbers = np.zeros(self.size)
        numbers[COUNT], numbers[LEVELS] = len(self.triangles), self.levels
        corners = points[self.triangles]
        size = float(np.ptp(corners.reshape(-1, 3), axis=0).max())
        edge = float(np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1).mean())
        numbers[ROUNDING_LENGTH], numbers[REGION_LENGTH] = (
            TINY_PART * size,
            max(REGION_EDGES * edge, REGION_SIZES * size),
        )
        numbers[EDGE] = edge
        first_triangle = HEADER + BOX * ((2 << self.levels) - 1)
        boxes = numbers[HEADER:first_triangle].reshape(-1, 2, 3)
        self._bound(corners, boxes)
        first_normal = first_triangle + CORNERS * len(corners)
        normals = numbers[first_normal:].reshape(-1, 7, 3)
        flat = self._face(corners, normals)
        # neighbors cover a degenerate triangle: replace it by one of its corners
        corners[flat] = corners[flat, :1]
        numbers[first_triangle:first_normal] = corners.ravel()
        return numbers

    def _bound(self, corners: np.ndarray, boxes: np.ndarray) -> None:
        """Write the boxes (nodes, 2, 3) of all nodes, from leaves to root; node i is row i - 1."""
        leaves = 1 << self.levels
        starts = (np.arange(leaves) * len(corners)) >> self.levels
        low = np.minimum.reduceat(corners.min(axis=1), starts)
        high = np.maximum.reduceat(corners.max(axis=1), starts)
        for level in range(self.levels, -1, -1):
            first = (1 << level) - 1
            boxes[first : 2 * first + 1, 0], boxes[first : 2 * first + 1, 1] = low, high
            if level:
                low, high = low.reshape(-1, 2, 3).min(axis=1), high.reshape(-1, 2, 3).max(axis=1)

    def _face(self, corners: np.ndarray, normals_out: np.ndarray) -> np.ndarray:
        """Write the pseudonormals of faces, edges and vertices to found (t, 7, 3).

        Returns:
            (t,) True for degenerate triangles.
        """
        sides = np.roll(corners, -1, axis=1) - corners
        lengths = np.linalg.norm(sides, axis=2)
        normals = np.cross(sides[:, 0], sides[:, 1])
        areas = np.linalg.norm(normals, axis=1)
        flat = areas <= DEGENERATE_HEIGHT * lengths.max(axis=1) ** 2
        normals = np.where(flat[:, None], 0.0, normals / np.where(flat, 1.0, areas)[:, None])
        edges = self._edges_beside(flat) if flat.any() else self._edges
        units = sides / np.where(lengths > 0, lengths, 1.0)[:, :, None]
        cosines = -np.einsum("tki,tki->tk", units, np.roll(units, 1, axis=1))
        weighted = np.arccos(np.clip(cosines, -1, 1))[:, :, None] * normals[:, None]
        normals_out[:, 0] = normals
        normals_out[:, 1:4] = _sums(edges.ravel(), np.repeat(normals, 3, axis=0))[edges]
        normals_out[:, 4:] = _sums(self.triangles.ravel(), weighted.reshape(-1, 3))[self.triangles]
        norms = np.linalg.norm(normals_out, axis=2, keepdims=True)
        normals_out /= np.where(norms > MIN_NORMAL_SUM, norms, np.inf)
        return flat

    @cached_property
    def _edges(self) -> np.ndarray:
        """(t, 3) edges ab, bc, ca of each triangle."""
        start = self.triangles.astype(np.int64)
        end = np.roll(start, -1, axis=1)
        keys = np.minimum(start, end) * (start.max() + 1) + np.maximum(start, end)
        return np.unique(keys, return_inverse=True)[1].reshape(-1, 3)

    def _edges_beside(self, flat: np.ndarray) -> np.ndarray:
        """(t, 3) edges of each triangle; the coincident edges of a degenerate triangle are merged."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        edges, own = self._edges, self._edges[flat]
        count = int(edges.max()) + 1
        links = coo_array(
            (np.ones(2 * len(own)), (own[:, [0, 1]].ravel(), own[:, [1, 2]].ravel())), (count,) * 2
        )
        return np.asarray(connected_components(links, directed=False)[1])[edges]


def has_creases(points: np.ndarray, triangles: np.ndarray) -> bool:
    """True if a closed surface has a concave edge, or an edge of more than two triangles.

    Args:
        points: (p, 3) vertices [m].
        triangles: (t, 3) triangles, counterclockwise seen from outside.
    """
    start = triangles.astype(np.int64)
    end, opposite = np.roll(start, -1, axis=1).ravel(), np.roll(start, -2, axis=1).ravel()
    start = start.ravel()
    keys = np.minimum(start, end) * len(points) + np.maximum(start, end)
    order = np.argsort(keys, kind="stable")
    if len(order) % 2 or (keys[order[::2]] != keys[order[1::2]]).any():
        return True
    one, other = order[::2], order[1::2]
    if (keys[one][1:] == keys[one][:-1]).any():
        return True
    corners = points[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    beyond = points[opposite[other]] - points[start[one]]
    heights = np.einsum("ki,ki->k", beyond, normals[one // 3])
    return bool((heights > MIN_CREASE_HEIGHT * np.linalg.norm(beyond, axis=1)).any())


def tree_size(count: int) -> int:
    """Array length of a tree of `count` triangles."""
    levels = max(0, (count // LEAF_TRIANGLES).bit_length() - 1)
    return HEADER + BOX * ((2 << levels) - 1) + (CORNERS + NORMALS) * count


def _leaf_order(centroids: np.ndarray, levels: int) -> np.ndarray:
    """(t,) triangles in leaf order: nodes are halved along the longest side of their centroid box."""
    count, order = len(centroids), np.arange(len(centroids))
    for level in range(levels):
        starts = ((np.arange(1 << level) << (levels - level)) * count) >> levels
        own = np.repeat(np.arange(1 << level), np.diff(np.append(starts, count)))
        ordered_centroids = centroids[order]
        sides = np.maximum.reduceat(ordered_centroids, starts) - np.minimum.reduceat(
            ordered_centroids, starts
        )
        along = ordered_centroids[np.arange(count), sides.argmax(axis=1)[own]]
        order = order[np.lexsort((along, own))]
    return order


def _sums(owners: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Sums (owners, 3) of vectors (k, 3) by owner."""
    return np.stack([np.bincount(owners, component) for component in vectors.T], axis=1)
