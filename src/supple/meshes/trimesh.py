"""Surface: points and triangles."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from supple.algebra.triangle_frames import flatten_triangle, pattern_frames
from supple.meshes.checks import MeshError, check_surface, check_uv, format_size, matrix_of, three
from supple.meshes.files.mesh_data import Given, check_data, transform_data
from supple.meshes.measures import area_vectors
from supple.meshes.mesh import Mesh, make_read_only
from supple.support.keywords import suggest_keywords


@suggest_keywords
class TriMesh(Mesh):
    """Immutable triangle surface, counter-clockwise seen from outside.

    The surface may be open and may have vertices without triangles. `refuse_open` checks that it encloses a
    volume; `Scene.add_cloth` checks that it is valid as cloth.

    Args:
        points: (n, 3) rest positions [m], copied as float64.
        triangles: (m, 3) vertex ids, copied as int32.
        uv: (m, 3, 2) texture coordinates of the corners of each triangle, v upwards, or None.
        cell_data: Arrays by name with one row per triangle.
        point_data: Arrays by name with one row per vertex.

    Raises:
        MeshError: Invalid arrays.
    """

    cell: ClassVar[str] = "triangle"
    corners: ClassVar[int] = 3
    dimension: ClassVar[int] = 2

    def __init__(
        self,
        points: ArrayLike,
        triangles: ArrayLike,
        uv: ArrayLike | None = None,
        *,
        cell_data: Given = None,
        point_data: Given = None,
    ) -> None:
        points, triangles = check_surface(points, triangles)
        self._points, self._cells = make_read_only(points), make_read_only(triangles)
        self._uv = None if uv is None else check_uv(uv, len(triangles))
        self._cell_data = check_data("cell_data", cell_data, len(triangles), "triangles")
        self._point_data = check_data("point_data", point_data, len(points), "vertices")

    @property
    def triangles(self) -> np.ndarray:
        """Vertices of the triangles, (m, 3)."""
        return self._cells

    @property
    def uv(self) -> np.ndarray | None:
        """Texture coordinates of the corners of the triangles, (m, 3, 2), or None."""
        return self._uv

    @property
    def n_triangles(self) -> int:
        """Number of triangles."""
        return len(self._cells)

    @property
    def surface(self) -> np.ndarray:
        """All triangles, (m, 3) int32."""
        return self._cells

    @property
    def diagonal(self) -> float:
        """Length of the diagonal of the bounding box [m]."""
        return float(np.linalg.norm(self.size))

    @cached_property
    def area_vectors(self) -> np.ndarray:
        """Normals with the length of the triangle areas, (m, 3) [m²]."""
        return make_read_only(area_vectors(self._points, self._cells))

    @property
    def areas(self) -> np.ndarray:
        """Area of every triangle, (m,) [m²]."""
        return self.measures

    @property
    def area(self) -> float:
        """Total area [m²]."""
        return float(self.measures.sum())

    @property
    def enclosed_volume(self) -> float:
        """∫ x · n dA / 3 [m³]: the volume inside a closed surface, negative for inverted orientation."""
        middle = self._points.mean(axis=0)
        centroids = self._points[self._cells].mean(axis=1) - middle
        return float(np.einsum("ij,ij->", centroids, self.area_vectors)) / 3

    def extract_cells(self, cells: ArrayLike) -> TriMesh:
        """Extract triangles together with their vertices, texture coordinates and data.

        Args:
            cells: Mask (m,) or ids of the triangles, for example `mesh.cell_data["region"] == 2`.

        Returns:
            The extracted mesh.
        """
        from supple.meshes.combine import extract_triangles

        return extract_triangles(self, cells)

    def transformed(self, matrix: ArrayLike, offset: ArrayLike = (0, 0, 0)) -> TriMesh:
        """Apply x → A x + b; a reflection also reverses the triangles.

        Args:
            matrix: A, (3, 3).
            offset: b, (3,) [m].

        Returns:
            The new mesh, with transformed data.
        """
        A, b = matrix_of(matrix), three("offset", offset)
        turn = slice(None, None, -1 if np.linalg.det(A) < 0 else 1)
        uv = None if self._uv is None else self._uv[:, turn]
        data = {
            "cell_data": transform_data(self._cell_data, A),
            "point_data": transform_data(self._point_data, A),
        }
        return TriMesh(self._points @ A.T + b, self._cells[:, turn], uv, **data)

    def field(self, name: str) -> np.ndarray:
        """Data with one row per triangle; vertex data are averaged over the corners.

        Args:
            name: Name of the data. "u" and "v" are the directions (m, 3) of increasing texture coordinates,
                for weft and warp.

        Returns:
            (m, ...) values.

        Raises:
            MeshError: The mesh has no data of this name.
        """
        own = name in self._cell_data or name in self._point_data
        if own or name not in ("u", "v") or self._uv is None:
            return super().field(name)
        corners = np.concatenate([self._uv, np.zeros((self.n_triangles, 3, 1))], axis=2)
        return pattern_frames(self._points[self._cells], flatten_triangle(corners))[:, :, "uv".index(name)]

    def with_data(self, cell_data: Given = None, point_data: Given = None) -> TriMesh:
        """Copy of the mesh with additional or replaced data.

        Args:
            cell_data: Arrays by name with one row per triangle.
            point_data: Arrays by name with one row per vertex.

        Returns:
            The new mesh.
        """
        return TriMesh(
            self._points,
            self._cells,
            self._uv,
            cell_data={**self._cell_data, **(cell_data or {})},
            point_data={**self._point_data, **(point_data or {})},
        )

    def refuse_open(self) -> None:
        """Raise a `MeshError` if an edge belongs to an odd number of triangles.

        Raises:
            MeshError: The surface is not closed.
        """
        start, end = self._cells, np.roll(self._cells, -1, axis=1)
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
        return (
            f"TriMesh({self.n_vertices:,} vertices, {self.n_triangles:,} triangles, {format_size(self.size)})"
        )
