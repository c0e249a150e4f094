"""Lengths of vectors and areas of triangles."""

from __future__ import annotations

import numpy as np


def length(vectors: np.ndarray) -> np.ndarray:
    """(m,) lengths of vectors (m, 3)."""
    return np.sqrt((vectors * vectors).sum(axis=1))


def areas(x: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(t,) areas [m²], at least 1e-300, of triangles (t, 3) with vertices at x (n, 3)."""
    a, b, c = np.moveaxis(x[triangles], 1, 0)
    return np.maximum(0.5 * length(np.cross(b - a, c - a)), 1e-300)
