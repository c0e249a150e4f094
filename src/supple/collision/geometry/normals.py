"""Unit normals, areas and incidence of triangles."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import cross, dot, scale, sub
from supple.collision.broad_phase.hash_grid import ITEM_SIZE, thread_range
from supple.collision.geometry.primitives import point
from supple.kernels import Runner, do, kernel, parallel_for


class ComputeNormals(NamedTuple):
    """Work: unit normals of triangles, 0 for degenerate triangles.

    Attributes:
        x: (n, 3) positions [m].
        triangles: (t, 3) vertices.
        normal: (t, 3) output.
    """

    x: Any
    triangles: Any
    normal: Any


@do.of(ComputeNormals)
def _compute_normals(work, item):
    x, t = work.x, work.triangles
    first, last, step = thread_range(len(t), item)
    for m in range(first, last, step):
        a = point(x, t[m, 0])
        n = cross(sub(point(x, t[m, 1]), a), sub(point(x, t[m, 2]), a))
        n = scale(1.0 / max(math.sqrt(dot(n, n)), 1e-300), n)
        work.normal[m, 0], work.normal[m, 1], work.normal[m, 2] = n


@kernel
def compute_normals(team, work):
    """Compute all normals."""
    parallel_for(team, 0, 0, -(-len(work.triangles) // ITEM_SIZE), work)


def normals_of(x: np.ndarray, triangles: np.ndarray, runner: Runner) -> np.ndarray:
    """Unit normals (t, 3) of triangles (t, 3) with vertices at x (n, 3), in device memory."""
    normal = runner.empty((len(triangles), 3), np.float64)
    runner.run(compute_normals, 1, ComputeNormals(x, triangles, normal))
    return normal


class TriangleIncidence(NamedTuple):
    """Incidence in CSR layout.

    Attributes:
        start: Row offsets of the primitives.
        triangle: Incident triangles.
    """

    start: np.ndarray
    triangle: np.ndarray

    @staticmethod
    def of(primitives: np.ndarray, count: int) -> TriangleIncidence:
        """List the triangles that contain each vertex or edge.

        Args:
            primitives: (3, t) ids of the vertices, or edges, of each triangle.
            count: Number of vertices or edges.
        """
        order = np.argsort(primitives.ravel(), kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(primitives.ravel(), minlength=count))])
        return TriangleIncidence(start, order % primitives.shape[1])


def length(vectors: np.ndarray) -> np.ndarray:
    """(m,) lengths of vectors (m, 3)."""
    return np.sqrt((vectors * vectors).sum(axis=1))


def areas(x: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(t,) areas [m²], at least 1e-300, of triangles (t, 3) with vertices at x (n, 3)."""
    a, b, c = np.moveaxis(x[triangles], 1, 0)
    return np.maximum(0.5 * length(np.cross(b - a, c - a)), 1e-300)
