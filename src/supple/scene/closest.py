"""Closest points of a body at rest: in the tetrahedron that contains a point, else on the surface."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from supple.meshes import TetMesh

_INSIDE = -1e-9
"""Smallest barycentric coordinate that counts as inside: points on a face belong to the body."""


def closest_in_body(points: np.ndarray, mesh: TetMesh) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (k, 4) and weights (k, 4) ≥ 0, Σ_j w_j = 1: Σ_j w_j X_j is the point of the body nearest to
    each of the points (k, 3) [m]. On the surface the fourth weight is 0."""
    vertices, weights, found = _containing(points, mesh)
    outside = np.flatnonzero(~found)
    if len(outside):
        corners, coordinates = _on_surface(points[outside], mesh)
        vertices[outside] = corners[:, [0, 1, 2, 0]]
        weights[outside] = np.pad(coordinates, ((0, 0), (0, 1)))
    return vertices, weights


def _containing(points: np.ndarray, mesh: TetMesh) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Barycentric coordinates in the containing tetrahedron, and whether there is one (k,)."""
    corners = mesh.points[mesh.tets]
    point, tet = _candidates(points, corners, np.zeros(len(points)))
    edges = np.moveaxis(corners[tet, 1:] - corners[tet, :1], 1, 2)
    last = np.linalg.solve(edges, (points[point] - corners[tet, 0])[..., None])[..., 0]
    coordinates = np.column_stack([1 - last.sum(axis=1), last])
    point, tet, coordinates = _best(point, -coordinates.min(axis=1), tet, coordinates)

    vertices, weights = np.zeros((len(points), 4), np.int64), np.zeros((len(points), 4))
    inside = coordinates.min(axis=1) >= _INSIDE
    positive = np.maximum(coordinates[inside], 0)
    vertices[point[inside]] = mesh.tets[tet[inside]]
    weights[point[inside]] = positive / positive.sum(axis=1, keepdims=True)
    return vertices, weights, weights.sum(axis=1) > 0


def _on_surface(points: np.ndarray, mesh: TetMesh) -> tuple[np.ndarray, np.ndarray]:
    """Surface triangles (k, 3) and barycentric coordinates (k, 3) of the nearest surface points."""
    corners = mesh.points[mesh.surface]
    near, _ = KDTree(mesh.points[mesh.surface_vertices]).query(points)
    point, triangle = _candidates(points, corners, np.asarray(near))
    coordinates = _closest_on_triangle(points[point], corners[triangle])
    distance = _distance(points[point], corners[triangle], coordinates)
    _, triangle, coordinates = _best(point, distance, triangle, coordinates)
    return mesh.surface[triangle], coordinates


def _candidates(points: np.ndarray, corners: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (point, simplex) that are within reach (k,) [m] of each other, and some that are not.

    A simplex lies in the ball about its centroid of the radius of its farthest corner, so nearby simplices
    have a centroid within reach + the largest such radius.
    """
    centroids = corners.mean(axis=1)
    radius = np.linalg.norm(corners - centroids[:, None], axis=2).max() * (1 + 1e-9)
    lists = KDTree(centroids).query_ball_point(points, reach + radius)
    counts = [len(found) for found in lists]
    return np.repeat(np.arange(len(points)), counts), np.concatenate(lists).astype(np.int64)


def _best(
    point: np.ndarray, cost: np.ndarray, simplex: np.ndarray, coordinates: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each point that occurs, the pair with the least cost."""
    order = np.lexsort((cost, point))
    point, first = np.unique(point[order], return_index=True)
    return point, simplex[order][first], coordinates[order][first]


def _closest_on_triangle(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Barycentric coordinates (k, 3) of the points of triangles (k, 3, 3) nearest to points (k, 3):
    the projection on the plane where it falls inside, else the nearest point of the three edges."""
    a, b, c = np.moveaxis(corners, 1, 0)
    edges = np.stack([b - a, c - a], axis=2)
    last = np.linalg.solve(
        np.einsum("kij,kil->kjl", edges, edges), np.einsum("kij,ki->kj", edges, points - a)[..., None]
    )[..., 0]
    best = np.column_stack([1 - last.sum(axis=1), last])
    cost = np.where(best.min(axis=1) >= 0, _distance(points, corners, best), np.inf)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        along = corners[:, j] - corners[:, i]
        s = np.einsum("ki,ki->k", points - corners[:, i], along) / np.einsum("ki,ki->k", along, along)
        coordinates = np.zeros_like(best)
        coordinates[:, j] = np.clip(s, 0, 1)
        coordinates[:, i] = 1 - coordinates[:, j]
        distance = _distance(points, corners, coordinates)
        best = np.where((distance < cost)[:, None], coordinates, best)
        cost = np.minimum(distance, cost)
    return best


def _distance(points: np.ndarray, corners: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points - np.einsum("kj,kji->ki", coordinates, corners), axis=1)
