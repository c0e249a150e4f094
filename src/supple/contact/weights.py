"""Points of things that are closest to each other, as signed weights of their corners."""

from __future__ import annotations

import numpy as np

from supple.contact.closest import on_edges, on_triangle
from supple.contact.things import point
from supple.kernels import kernel


@kernel
def weigh_triangles(x, stencils, weights):
    """weights (m, 4) of a vertex and corners of a triangle, stencils (m, 4), with vertices at x (n, 3)."""
    for m in range(len(stencils)):
        v, a, b, c = stencils[m, 0], stencils[m, 1], stencils[m, 2], stencils[m, 3]
        p, q, r = on_triangle(point(x, v), point(x, a), point(x, b), point(x, c))
        weights[m, 0], weights[m, 1], weights[m, 2], weights[m, 3] = 1.0, -p, -q, -r


@kernel
def weigh_edges(x, stencils, weights):
    """weights (m, 4) of the ends of two edges, stencils (m, 4), with vertices at x (n, 3)."""
    for m in range(len(stencils)):
        a, b, c, d = stencils[m, 0], stencils[m, 1], stencils[m, 2], stencils[m, 3]
        s, t = on_edges(point(x, a), point(x, b), point(x, c), point(x, d))
        weights[m, 0], weights[m, 1], weights[m, 2], weights[m, 3] = 1.0 - s, s, t - 1.0, -t


def weighted(x: np.ndarray, stencils: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(m, 3) Σ w x."""
    return np.einsum("mk,mki->mi", weights, x[stencils])


def length(vectors: np.ndarray) -> np.ndarray:
    """(m,) of vectors (m, 3)."""
    return np.sqrt((vectors * vectors).sum(axis=1))


def areas(x: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(t,) [m²] of triangles (t, 3) with vertices at x (n, 3)."""
    a, b, c = np.moveaxis(x[triangles], 1, 0)
    return np.maximum(0.5 * length(np.cross(b - a, c - a)), 1e-300)
