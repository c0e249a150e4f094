"""Volumes, edge lengths and quality of tetrahedra."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def volumes(points: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Signed volumes V = (x₁ - x₀) × (x₂ - x₀) · (x₃ - x₀) / 6, (m,) [m³]; negative where inverted."""
    origin = points[tets[:, 0]]
    a, b, c = (points[tets[:, corner]] - origin for corner in (1, 2, 3))
    return np.einsum("ij,ij->i", np.cross(a, b), c) / 6


def squared_edges(points: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Squared lengths of the six edges of every tet, (6, m) [m²]."""
    corners = [points[tets[:, corner]] for corner in range(4)]
    edges = (q - p for p, q in combinations(corners, 2))
    return np.stack([np.einsum("ij,ij->i", edge, edge) for edge in edges])


def qualities(points: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Volume over edge length, q = 6√2 V / ℓ³ with ℓ the root mean square of the six edges, (m,).

    1 for a regular tet, 0 for a flat one, negative for an inverted one; independent of size.
    """
    length = np.sqrt(squared_edges(points, tets).mean(axis=0))
    return 6 * np.sqrt(2) * volumes(points, tets) / length**3


def means_at_vertices(values: np.ndarray, tets: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """(count, ...) means over the tets around each vertex, with weights (m,), of values (m, ...); NaN where
    there are none."""
    rows = np.asarray(values, float).reshape(len(tets), -1)
    weight, corners = np.repeat(weights, 4), tets.ravel()
    sums = [np.bincount(corners, weight * np.repeat(column, 4), count) for column in rows.T]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.stack(sums, axis=1) / np.bincount(corners, weight, count)[:, None]
    return means.reshape(count, *np.shape(values)[1:])
