"""The rest geometry of a solid: points and tetrahedra."""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from supple.checks import floats, shown, whole_number
from supple.meshes.arguments import matrix_of, three
from supple.meshes.checks import checked, say_size
from supple.meshes.data import Data, Given, checked_data, field_of, turned
from supple.meshes.measures import qualities, volumes
from supple.meshes.movable import Movable
from supple.meshes.surface import boundary


class TetMesh(Movable):
    """A tetrahedral mesh: points (n, 3) float64 [m] and tets (m, 4) int32, both read-only copies.

    Every tet has a positive volume (x₁ - x₀) × (x₂ - x₀) · (x₃ - x₀) / 6 and every vertex belongs to a tet;
    anything else is a `MeshError`. With `repair=True` two vertices of each inverted tet are swapped, and
    vertices without tets are removed; the rows of the given points that remain are `np.unique(tets)`.
    The mesh may consist of several components. A mesh never changes; `translated`, `scaled`, `rotated`,
    `transformed` and `with_data` return new ones.

    cell_data and point_data: name → one row for each tet or vertex, such as fibres (m, 3), regions (m,) or
    activations. Vectors and tensors turn as the mesh turns; vectors keep their length.
    """

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
        points, tets = checked(points, tets, repair)
        self._points, self._tets = _frozen(points), _frozen(tets)
        of_points = checked_data("point_data", point_data, len(np.asarray(given[0])), "vertices")
        if of_points and len(points) < len(np.asarray(given[0])):
            used = np.unique(given[1])
            of_points = {name: _frozen(values[used]) for name, values in of_points.items()}
        self._cell_data = checked_data("cell_data", cell_data, len(tets), "tets")
        self._point_data = of_points

    @property
    def points(self) -> np.ndarray:
        """Rest positions of the vertices, (n, 3) [m]."""
        return self._points

    @property
    def tets(self) -> np.ndarray:
        """Vertices of the tetrahedra, (m, 4)."""
        return self._tets

    @property
    def cell_data(self) -> Data:
        """Read-only arrays by name, one row for each tet."""
        return MappingProxyType(self._cell_data)

    @property
    def point_data(self) -> Data:
        """Read-only arrays by name, one row for each vertex."""
        return MappingProxyType(self._point_data)

    def field(self, name: str) -> np.ndarray:
        """Data of a name with one row for each tet; of vertices, the mean of the four."""
        return field_of(name, self._cell_data, self._point_data, self._tets)

    def with_data(self, cell_data: Given = None, point_data: Given = None) -> TetMesh:
        """This mesh with further data, or others of the same name."""
        return TetMesh(
            self._points,
            self._tets,
            cell_data={**self._cell_data, **(cell_data or {})},
            point_data={**self._point_data, **(point_data or {})},
        )

    @property
    def n_vertices(self) -> int:
        return len(self._points)

    @property
    def n_tets(self) -> int:
        return len(self._tets)

    @cached_property
    def bounds(self) -> np.ndarray:
        """Lowest and highest corner of the bounding box, (2, 3) [m]."""
        return _frozen(np.stack([self._points.min(axis=0), self._points.max(axis=0)]))

    @property
    def size(self) -> np.ndarray:
        """Edge lengths of the bounding box, (3,) [m]."""
        return self.bounds[1] - self.bounds[0]

    @cached_property
    def volumes(self) -> np.ndarray:
        """Volume of every tet, (m,) [m³], all positive."""
        return _frozen(volumes(self._points, self._tets))

    @property
    def volume(self) -> float:
        """Total volume [m³]."""
        return float(self.volumes.sum())

    def masses(self, density: ArrayLike) -> np.ndarray:
        """Lumped masses mᵢ = Σ ρ V / 4 over the tets around vertex i, (n,) [kg].

        density ρ [kg/m³]: one number, or one for every tet.
        """
        rho = floats(density)
        if rho.shape not in ((), (self.n_tets,)):
            raise ValueError(
                f"density must be one number or one for each of the {self.n_tets} tets, "
                f"but has shape {rho.shape}."
            )
        if not np.all(np.isfinite(rho) & (rho > 0)):
            raise ValueError(f"density must be positive and finite [kg/m³], got {shown(density)}.")
        quarters = np.repeat(rho * self.volumes / 4, 4)
        return np.bincount(self._tets.ravel(), quarters, minlength=self.n_vertices)

    @cached_property
    def surface(self) -> np.ndarray:
        """Boundary triangles, (k, 3) int32, counter-clockwise seen from outside."""
        return _frozen(boundary(self._tets))

    @cached_property
    def surface_vertices(self) -> np.ndarray:
        """Sorted ids of the vertices on the surface."""
        return _frozen(np.unique(self.surface))

    @cached_property
    def components(self) -> np.ndarray:
        """Number, from 0, of the connected component of every vertex, (n,) int32."""
        start, end = np.repeat(self._tets[:, 0], 3), self._tets[:, 1:].ravel()
        shape = (self.n_vertices, self.n_vertices)
        graph = coo_array((np.ones(len(start), bool), (start, end)), shape=shape)
        return _frozen(connected_components(graph, directed=False)[1])

    @property
    def n_components(self) -> int:
        return int(self.components.max()) + 1

    @cached_property
    def quality(self) -> np.ndarray:
        """q = 6√2 V / ℓ³ of every tet, ℓ the root mean square of its edges, (m,): 1 regular, 0 flat."""
        return _frozen(qualities(self._points, self._tets))

    def worst(self, count: int = 10) -> np.ndarray:
        """Ids of the `count` tets of lowest quality, worst first."""
        return np.argsort(self.quality, kind="stable")[: whole_number("count", count, at_least=0)]

    def transformed(self, matrix: ArrayLike, offset: ArrayLike = (0, 0, 0)) -> TetMesh:
        """x → A x + b with matrix A (3, 3) and offset b (3,) [m].

        A reflection also swaps two vertices of every tet, so that volumes stay positive.
        """
        A, b = matrix_of(matrix), three("offset", offset)
        reflection = bool(np.linalg.det(A) < 0)
        data = {"cell_data": turned(self._cell_data, A), "point_data": turned(self._point_data, A)}
        return TetMesh(self._points @ A.T + b, self._tets, repair=reflection, **data)

    def __repr__(self) -> str:
        components = f"{self.n_components} component" + ("s" if self.n_components > 1 else "")
        parts = f"{self.n_vertices:,} vertices, {self.n_tets:,} tets, {components}"
        names = ", ".join(sorted({*self._cell_data, *self._point_data}))
        return f"TetMesh({parts}, {say_size(self.size)}{f', with {names}' if names else ''})"


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
