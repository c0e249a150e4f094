"""A surface: points and triangles."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes.arguments import matrix_of, three
from supple.meshes.checks import MeshError, checked_surface, checked_uv, say_size
from supple.meshes.movable import Movable


class TriMesh(Movable):
    """A surface: points (n, 3) float64 [m] and triangles (m, 3) int32, both read-only copies.

    Triangles are counter-clockwise seen from outside. The surface may be open, and may have vertices without
    triangles; `refuse_open` tells whether it encloses a volume. uv (m, 3, 2): texture coordinates of each
    corner of each triangle, v upwards, for exports; None where there are none.
    """

    def __init__(self, points: ArrayLike, triangles: ArrayLike, uv: ArrayLike | None = None) -> None:
        self._points, self._triangles = checked_surface(points, triangles)
        self._uv = None if uv is None else checked_uv(uv, len(self._triangles))
        self._points.setflags(write=False)
        self._triangles.setflags(write=False)

    @property
    def points(self) -> np.ndarray:
        """Positions of the vertices, (n, 3) [m]."""
        return self._points

    @property
    def triangles(self) -> np.ndarray:
        """Vertices of the triangles, (m, 3)."""
        return self._triangles

    @property
    def uv(self) -> np.ndarray | None:
        """Texture coordinates of the corners of the triangles, (m, 3, 2), or None."""
        return self._uv

    @property
    def n_vertices(self) -> int:
        return len(self._points)

    @property
    def n_triangles(self) -> int:
        return len(self._triangles)

    @cached_property
    def size(self) -> np.ndarray:
        """Edge lengths of the bounding box, (3,) [m]."""
        return np.ptp(self._points, axis=0)

    @property
    def diagonal(self) -> float:
        """Length of the diagonal of the bounding box [m]."""
        return float(np.linalg.norm(self.size))

    @cached_property
    def area_vectors(self) -> np.ndarray:
        """Normals of the triangles as long as their areas, (m, 3) [m²]."""
        a, b, c = np.moveaxis(self._points[self._triangles], 1, 0)
        return np.cross(b - a, c - a) / 2

    @property
    def area(self) -> float:
        """Total area [m²]."""
        return float(np.linalg.norm(self.area_vectors, axis=1).sum())

    @property
    def enclosed_volume(self) -> float:
        """∫ x · n dA / 3 [m³]: the volume inside a closed surface, negative where it is inside out."""
        middle = self._points.mean(axis=0)
        centroids = self._points[self._triangles].mean(axis=1) - middle
        return float(np.einsum("ij,ij->", centroids, self.area_vectors)) / 3

    def transformed(self, matrix: ArrayLike, offset: ArrayLike = (0, 0, 0)) -> TriMesh:
        """x → A x + b with matrix A (3, 3) and offset b (3,) [m]; a reflection also turns the triangles."""
        A, b = matrix_of(matrix), three("offset", offset)
        turn = slice(None, None, -1 if np.linalg.det(A) < 0 else 1)
        uv = None if self._uv is None else self._uv[:, turn]
        return TriMesh(self._points @ A.T + b, self._triangles[:, turn], uv)

    def refuse_open(self) -> None:
        """Raise a `MeshError` unless every edge is shared by two triangles (or four, or six, ...)."""
        start, end = self._triangles, np.roll(self._triangles, -1, axis=1)
        low, high = np.minimum(start, end).astype(np.int64).ravel(), np.maximum(start, end).ravel()
        edges, counts = np.unique(low * len(self._points) + high, return_counts=True)
        odd = edges[counts % 2 == 1]
        if len(odd):
            where = ", ".join(f"{x:.4g}" for x in self._points[odd[0] // len(self._points)])
            raise MeshError(
                f"The surface is not closed: {len(odd)} of {len(edges)} edges have a triangle on one side "
                f"only, for example at ({where}). Fill its holes first, for example with MeshLab's "
                "'Close Holes' or Blender's 'Make Manifold'."
            )

    def __repr__(self) -> str:
        return f"TriMesh({self.n_vertices:,} vertices, {self.n_triangles:,} triangles, {say_size(self.size)})"
