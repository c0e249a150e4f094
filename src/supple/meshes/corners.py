"""Render corners of surfaces: vertices duplicated along sharp edges, so that each side has its own normal."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

SHARP = np.cos(np.radians(35))
"""Cosine of the angle between the rest normals of two triangles below which their common edge is sharp."""


def smooth_corners(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(k, 3) corner numbers of triangles: triangles connected by smooth edges around a vertex share its
    corner."""
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
    first, second = start.ravel(), end.ravel()  # neighbors traverse their common edge in opposite directions
    joined = np.concatenate([first[one], second[one]]), np.concatenate([second[other], first[other]])
    matching = ids[joined[0]] == ids[joined[1]]
    graph = coo_array(
        (np.ones(matching.sum(), bool), (joined[0][matching], joined[1][matching])), shape=(ids.size,) * 2
    )
    return connected_components(graph, directed=False)[1].reshape(-1, 3).astype(np.int64)


def split_corners(corners: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(k, 3) corner numbers, also separated by different values (k, 3, ...) at the corners."""
    rows = np.column_stack([corners.ravel(), values.reshape(corners.size, -1)])
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(corners.shape)


def corner_values(corners: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(c, ...) value of each corner number, from values (k, 3, ...) at triangle corners (k, 3)."""
    corner_data = np.empty((corners.max() + 1, *values.shape[2:]), values.dtype)
    corner_data[corners] = values
    return corner_data


def unit_normals(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(c, 3) area-weighted unit normals at points (c, 3), pointing outwards."""
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    faces, ids = np.cross(b - a, c - a), triangles.ravel()
    sums = [np.bincount(ids, np.repeat(axis, 3), len(points)) for axis in faces.T]
    normals = np.stack(sums, axis=1)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
