"""Volumes, areas, edge lengths and quality of cells: tetrahedra (m, 4) or triangles (m, 3)."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def volumes(points: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Signed volumes V = (x₁ - x₀) × (x₂ - x₀) · (x₃ - x₀) / 6, (m,) [m³]; negative for inverted tets."""
    origin = points[tets[:, 0]]
    a, b, c = (points[tets[:, corner]] - origin for corner in (1, 2, 3))
    return np.einsum("ij,ij->i", np.cross(a, b), c) / 6


def area_vectors(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Normals with the length of the area, (m, 3) [m²]."""
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    return np.cross(b - a, c - a) / 2


def areas(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Triangle areas, (m,) [m²]."""
    return np.linalg.norm(area_vectors(points, triangles), axis=1)


def measures(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Signed volumes of tetrahedra [m³], or areas of triangles [m²], (m,)."""
    return (volumes if cells.shape[1] == 4 else areas)(points, cells)


def squared_edges(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Squared edge lengths of every cell, (edges, m) [m²]: six per tet, three per triangle."""
    corners = [points[cells[:, corner]] for corner in range(cells.shape[1])]
    edges = (q - p for p, q in combinations(corners, 2))
    return np.stack([np.einsum("ij,ij->i", edge, edge) for edge in edges])


def qualities(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Quality (m,) of cells: q = 6√2 V / ℓ³ for tets, q = 4/√3 A / ℓ² for triangles, ℓ the RMS edge length.

    1 for a regular cell, 0 for a flat one, negative for an inverted one; independent of size.
    """
    length = np.sqrt(squared_edges(points, cells).mean(axis=0))
    factor, power = (6 * np.sqrt(2), 3) if cells.shape[1] == 4 else (4 / np.sqrt(3), 2)
    return factor * measures(points, cells) / length**power


def means_at_vertices(values: np.ndarray, cells: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """Weighted means of cell values over the cells around each vertex.

    Args:
        values: (m, ...) cell values; NaN values are ignored.
        cells: (m, k) vertex ids; -1 for unused corners.
        weights: (m,) weights.
        count: Number of vertices.

    Returns:
        (count, ...) means; NaN at vertices without cells.
    """
    rows = np.asarray(values, float).reshape(len(cells), -1)
    known = ~np.isnan(rows).any(axis=1)
    real = (cells >= 0) & known[:, None]
    corners, owner = cells[real], np.nonzero(real)[0]
    weight = weights[owner]
    sums = [np.bincount(corners, weight * column[owner], count) for column in rows.T]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.stack(sums, axis=1) / np.bincount(corners, weight, count)[:, None]
    return means.reshape(count, *np.shape(values)[1:])
