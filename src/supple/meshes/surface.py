"""Boundary of a tetrahedral mesh."""

from __future__ import annotations

import numpy as np

FACES = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
"""Corners of the face opposite each corner of a tet, counter-clockwise seen from outside."""


def boundary(tets: np.ndarray) -> np.ndarray:
    """Triangles (k, 3) that belong to exactly one tet, counter-clockwise seen from outside.

    Args:
        tets: (m, 4) tets with positive volume.

    Returns:
        Triangles in the order of their tets.
    """
    faces = tets[:, FACES].reshape(-1, 3)
    order, same = _sorted_by_vertices(faces)
    inner = np.zeros(len(faces), bool)
    inner[order[1:][same]] = True
    inner[order[:-1][same]] = True
    return faces[~inner]


def _sorted_by_vertices(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort faces by vertex set; also returns a mask of faces equal to their predecessor."""
    low, middle, high = np.sort(faces, axis=1).astype(np.int64).T
    n = int(high.max()) + 1
    pair = low * n + middle
    if n <= 2**21:  # all three indices fit into one 64-bit key, which sorts three times as fast
        key = pair * n + high
        order = np.argsort(key)
        return order, np.diff(key[order]) == 0
    order = np.lexsort((high, pair))
    return order, (np.diff(pair[order]) == 0) & (np.diff(high[order]) == 0)
