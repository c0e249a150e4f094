"""What follows from the points and tetrahedra of a mesh: volumes, masses, surface, components, quality."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from supple.checks import floats, shown, whole_number
from supple.meshes.measures import qualities, volumes
from supple.meshes.surface import boundary


class Measured:
    """Points and tets that never change, and what is asked of them, found when it is first asked for."""

    _points: np.ndarray
    _tets: np.ndarray

    @property
    def n_vertices(self) -> int:
        return len(self._points)

    @property
    def n_tets(self) -> int:
        return len(self._tets)

    @cached_property
    def bounds(self) -> np.ndarray:
        """Lowest and highest corner of the bounding box, (2, 3) [m]."""
        return frozen(np.stack([self._points.min(axis=0), self._points.max(axis=0)]))

    @property
    def size(self) -> np.ndarray:
        """Edge lengths of the bounding box, (3,) [m]."""
        return self.bounds[1] - self.bounds[0]

    @cached_property
    def volumes(self) -> np.ndarray:
        """Volume of every tet, (m,) [m³], all positive."""
        return frozen(volumes(self._points, self._tets))

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
        return frozen(boundary(self._tets))

    @cached_property
    def surface_vertices(self) -> np.ndarray:
        """Sorted ids of the vertices on the surface."""
        return frozen(np.unique(self.surface))

    @cached_property
    def components(self) -> np.ndarray:
        """Number, from 0, of the connected component of every vertex, (n,) int32."""
        start, end = np.repeat(self._tets[:, 0], 3), self._tets[:, 1:].ravel()
        shape = (self.n_vertices, self.n_vertices)
        graph = coo_array((np.ones(len(start), bool), (start, end)), shape=shape)
        return frozen(connected_components(graph, directed=False)[1])

    @property
    def n_components(self) -> int:
        return int(self.components.max()) + 1

    @cached_property
    def quality(self) -> np.ndarray:
        """q = 6√2 V / ℓ³ of every tet, ℓ the root mean square of its edges, (m,): 1 regular, 0 flat."""
        return frozen(qualities(self._points, self._tets))

    def worst(self, count: int = 10) -> np.ndarray:
        """Ids of the `count` tets of lowest quality, worst first."""
        return np.argsort(self.quality, kind="stable")[: whole_number("count", count, at_least=0)]


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, which nobody can write to any more."""
    array.setflags(write=False)
    return array
