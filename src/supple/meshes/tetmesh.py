"""Tetrahedral mesh: rest geometry of a solid, and its boundary."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes.checks import check_mesh, format_size, matrix_of, three
from supple.meshes.files.mesh_data import Given, check_data, transform_data
from supple.meshes.mesh import Mesh, make_read_only
from supple.support.keywords import suggest_keywords

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


@suggest_keywords
class TetMesh(Mesh):
    """Immutable tetrahedral mesh.

    Every tet has a positive volume (x₁ - x₀) × (x₂ - x₀) · (x₃ - x₀) / 6, and every vertex belongs to a tet.
    The mesh may have several components. `translated`, `scaled`, `rotated`, `transformed` and `with_data`
    return new meshes. Vectors and tensors in the data rotate with the mesh; vectors keep their length.

    Args:
        points: (n, 3) rest positions [m], copied as float64.
        tets: (m, 4) vertex ids, copied as int32.
        repair: Swap two vertices of each inverted tet, and remove vertices without tets; the remaining rows
            of the given points are `np.unique(tets)`.
        cell_data: Arrays by name with one row per tet, such as fibers (m, 3) or regions (m,).
        point_data: Arrays by name with one row per vertex, such as activations.

    Raises:
        MeshError: Invalid mesh; with `repair`, inverted tets and vertices without tets are repaired instead.
    """

    cell: ClassVar[str] = "tet"
    corners: ClassVar[int] = 4
    dimension: ClassVar[int] = 3

    def __init__(
        self,
        points: ArrayLike,
        tets: ArrayLike,
        repair: bool = False,
        *,
        cell_data: Given = None,
        point_data: Given = None,
    ) -> None:
        given = points, tets
        points, tets = check_mesh(points, tets, repair)
        self._points, self._cells = make_read_only(points), make_read_only(tets)
        of_points = check_data("point_data", point_data, len(np.asarray(given[0])), "vertices")
        if of_points and len(points) < len(np.asarray(given[0])):
            used = np.unique(given[1])
            of_points = {name: make_read_only(values[used]) for name, values in of_points.items()}
        self._cell_data = check_data("cell_data", cell_data, len(tets), "tets")
        self._point_data = of_points

    @property
    def tets(self) -> np.ndarray:
        """Vertices of the tetrahedra, (m, 4)."""
        return self._cells

    @property
    def n_tets(self) -> int:
        """Number of tets."""
        return len(self._cells)

    @property
    def volumes(self) -> np.ndarray:
        """Volume of every tet, (m,) [m³], all positive."""
        return self.measures

    @property
    def volume(self) -> float:
        """Total volume [m³]."""
        return float(self.measures.sum())

    @cached_property
    def surface(self) -> np.ndarray:
        """Boundary triangles, (k, 3) int32, counter-clockwise seen from outside."""
        return make_read_only(boundary(self._cells))

    def with_data(self, cell_data: Given = None, point_data: Given = None) -> TetMesh:
        """Copy of the mesh with additional or replaced data.

        Args:
            cell_data: Arrays by name with one row per tet.
            point_data: Arrays by name with one row per vertex.

        Returns:
            The new mesh.
        """
        return TetMesh(
            self._points,
            self._cells,
            cell_data={**self._cell_data, **(cell_data or {})},
            point_data={**self._point_data, **(point_data or {})},
        )

    def extract_cells(self, cells: ArrayLike) -> TetMesh:
        """Extract tets together with their vertices and data.

        Args:
            cells: Mask (m,) or ids of the tets, for example `mesh.cell_data["region"] == 2`.

        Returns:
            The extracted mesh.
        """
        from supple.meshes.combine import extract_tets

        return extract_tets(self, cells)

    def transformed(self, matrix: ArrayLike, offset: ArrayLike = (0, 0, 0)) -> TetMesh:
        """Apply x → A x + b; a reflection also swaps two vertices of every tet, so that volumes stay
        positive.

        Args:
            matrix: A, (3, 3).
            offset: b, (3,) [m].

        Returns:
            The new mesh, with transformed data.
        """
        A, b = matrix_of(matrix), three("offset", offset)
        reflection = bool(np.linalg.det(A) < 0)
        data = {
            "cell_data": transform_data(self._cell_data, A),
            "point_data": transform_data(self._point_data, A),
        }
        return TetMesh(self._points @ A.T + b, self._cells, repair=reflection, **data)

    def __repr__(self) -> str:
        components = f"{self.n_components} component" + ("s" if self.n_components > 1 else "")
        parts = f"{self.n_vertices:,} vertices, {self.n_tets:,} tets, {components}"
        names = ", ".join(sorted({*self._cell_data, *self._point_data}))
        return f"TetMesh({parts}, {format_size(self.size)}{f', with {names}' if names else ''})"
