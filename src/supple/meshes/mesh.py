"""Immutable base class of meshes: volumes or areas, masses, surface, components, quality and data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation

from supple.meshes.checks import MeshError, scaling, three
from supple.meshes.files.mesh_data import Data, field_of
from supple.meshes.measures import measures, qualities
from supple.support.arguments import check_integer, check_number, format_value, to_floats


class Constant:
    """Base class of immutable objects with lazily computed properties.

    Attributes with a leading underscore are input; their arrays, including those in dictionaries, are
    read-only. All other attributes are computed from them. Only the input is pickled and copied.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            for array in value.values() if isinstance(value, dict) else (value,):
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)
        self.__dict__.update(state)


class Movable(Constant, ABC):
    """Immutable object; every transformation returns a new one."""

    @abstractmethod
    def transformed(self, matrix: ArrayLike, offset: ArrayLike = (0, 0, 0)) -> Self:
        """Apply x → A x + b.

        Args:
            matrix: A, (3, 3).
            offset: b, (3,) [m].

        Returns:
            The new mesh.
        """

    def translated(self, offset: ArrayLike) -> Self:
        """Translate the mesh.

        Args:
            offset: Translation [m], (3,).

        Returns:
            The new mesh.
        """
        return self.transformed(np.eye(3), offset)

    def scaled(self, factor: ArrayLike) -> Self:
        """Scale the mesh about the origin.

        Args:
            factor: Scale factor, or one factor per axis, (3,).

        Returns:
            The new mesh.
        """
        return self.transformed(scaling(factor))

    def rotated(self, axis: ArrayLike, angle: float, center: ArrayLike = (0, 0, 0)) -> Self:
        """Rotate about an axis, counter-clockwise seen from its tip.

        Args:
            axis: Direction of the axis, (3,).
            angle: Angle [rad].
            center: Point on the axis, (3,) [m].

        Returns:
            The new mesh.

        Raises:
            MeshError: The axis is zero.
        """
        direction, c = three("axis", axis), three("center", center)
        angle = check_number("angle", angle)
        if not direction.any():
            raise MeshError("axis must not be zero.")
        R = Rotation.from_rotvec(angle * direction / np.linalg.norm(direction)).as_matrix()
        return self.transformed(R, c - R @ c)


class Mesh(Movable):
    """Immutable mesh of tetrahedra or triangles with lazily computed properties."""

    _points: np.ndarray
    _cells: np.ndarray
    _cell_data: dict[str, np.ndarray]
    _point_data: dict[str, np.ndarray]

    cell: ClassVar[str]
    """Name of a cell in messages."""

    corners: ClassVar[int]
    """Number of vertices per cell."""

    dimension: ClassVar[int]
    """3 for cells with a volume [m³], 2 for cells with an area [m²]."""

    @property
    def points(self) -> np.ndarray:
        """Rest positions of the vertices, (n, 3) [m]."""
        return self._points

    @property
    def cells(self) -> np.ndarray:
        """Vertices of the cells, (m, corners)."""
        return self._cells

    @property
    def cell_data(self) -> Data:
        """Read-only arrays by name, one row for each cell."""
        return MappingProxyType(self._cell_data)

    @property
    def point_data(self) -> Data:
        """Read-only arrays by name, one row for each vertex."""
        return MappingProxyType(self._point_data)

    def field(self, name: str) -> np.ndarray:
        """Data with one row per cell; vertex data are averaged over the corners.

        Args:
            name: Name of cell or vertex data.

        Returns:
            (m, ...) values.

        Raises:
            MeshError: The mesh has no data of this name.
        """
        return field_of(name, self._cell_data, self._point_data, self._cells)

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return len(self._points)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self._cells)

    @cached_property
    def bounds(self) -> np.ndarray:
        """Lowest and highest corner of the bounding box, (2, 3) [m]."""
        return make_read_only(np.stack([self._points.min(axis=0), self._points.max(axis=0)]))

    @property
    def size(self) -> np.ndarray:
        """Edge lengths of the bounding box, (3,) [m]."""
        return self.bounds[1] - self.bounds[0]

    @cached_property
    def measures(self) -> np.ndarray:
        """Volume [m³] of every tet, or area [m²] of every triangle, (m,)."""
        return make_read_only(measures(self._points, self._cells))

    def masses(self, density: ArrayLike) -> np.ndarray:
        """Lumped masses mᵢ = Σ ρ V / k over the cells of k corners around vertex i.

        Args:
            density: ρ [kg/m³], or [kg/m²] for triangles: one number, or one per cell.

        Returns:
            (n,) masses [kg].
        """
        return lump_masses(
            self._cells, self.measures, density, self.n_vertices, f"{self.cell}s", self.dimension
        )

    @property
    @abstractmethod
    def surface(self) -> np.ndarray:
        """Surface triangles, (k, 3) int32, counter-clockwise seen from outside."""

    @cached_property
    def surface_vertices(self) -> np.ndarray:
        """Sorted ids of the vertices on the surface."""
        return make_read_only(np.unique(self.surface))

    @property
    def uv(self) -> np.ndarray | None:
        """Texture coordinates of the corners of the surface, (k, 3, 2), or None."""
        return None

    @cached_property
    def components(self) -> np.ndarray:
        """Connected component of every vertex, (n,) int32, numbered from 0."""
        start, end = np.repeat(self._cells[:, 0], self.corners - 1), self._cells[:, 1:].ravel()
        shape = (self.n_vertices, self.n_vertices)
        graph = coo_array((np.ones(len(start), bool), (start, end)), shape=shape)
        return make_read_only(connected_components(graph, directed=False)[1])

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(self.components.max()) + 1

    @cached_property
    def quality(self) -> np.ndarray:
        """Volume over edge length³, or area over edge length², of every cell, (m,): 1 for regular cells, 0
        for flat ones."""
        return make_read_only(qualities(self._points, self._cells))

    def worst(self, count: int = 10) -> np.ndarray:
        """Find the cells with the lowest quality.

        Args:
            count: Largest number of cells.

        Returns:
            Ids of the cells, worst first.
        """
        return np.argsort(self.quality, kind="stable")[: check_integer("count", count, at_least=0)]


def lump_masses(
    cells: np.ndarray, measures: np.ndarray, density: ArrayLike, n: int, what: str, dimension: int
) -> np.ndarray:
    """Lump cell masses to vertices, (n,) [kg]: equal fractions for the corners of each cell (m, k)."""
    rho = to_floats(density)
    if rho.shape not in ((), (len(cells),)):
        raise ValueError(
            f"density must be one number or one for each of the {len(cells)} {what}, "
            f"but has shape {rho.shape}."
        )
    if not np.all(np.isfinite(rho) & (rho > 0)):
        unit = {2: "kg/m²", 3: "kg/m³"}[dimension]
        raise ValueError(f"density must be positive and finite [{unit}], got {format_value(density)}.")
    k = cells.shape[1]
    return np.bincount(cells.ravel(), np.repeat(rho * measures / k, k), minlength=n)


def make_read_only(array: np.ndarray) -> np.ndarray:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array
