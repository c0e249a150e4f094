"""Broad phase without a candidate cache, with results in device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.broad_phase.hash_grid import NO_ORIENTATION, HashGrid, build_grid
from supple.collision.broad_phase.pair_filter import ALL, PairFilter
from supple.collision.broad_phase.positions import Points
from supple.collision.broad_phase.search import search
from supple.kernels import HOST, Runner

if TYPE_CHECKING:
    from supple.collision.narrow_phase.contact_pairs import Surfaces

Pairs = tuple[np.ndarray, np.ndarray]
"""Indices (p,) of the first and second primitives of pairs, in device memory."""

Orientation = tuple[np.ndarray, np.ndarray]
"""Normals (t, 3) of triangles and two-sided flags (t,)."""


class BroadPhase:
    """Broad phase of surfaces: triangle-triangle, vertex-triangle and edge-edge pairs.

    Attributes:
        last: Latest contacts and their positions, reused for identical queries.

    Args:
        surfaces: Surfaces of all bodies.
        clear: Exclude pairs of one body within its rest distance `Surfaces.clear`.
    """

    def __init__(self, surfaces: Surfaces, clear: bool = True) -> None:
        self._surfaces, self._clear = surfaces, clear
        self.last: Any = None
        self._table: tuple[Runner | None, HashGrid | None] = None, None
        self._capacity: dict[str, int] = {}
        self._filters: dict[str, PairFilter] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return BroadPhase, (self._surfaces, self._clear)

    def triangles(self, points: Points, radius: float, normal: np.ndarray, runner: Runner = HOST) -> Pairs:
        """Opposing triangle pairs whose boxes are within a radius.

        Args:
            points: Positions of the vertices.
            radius: Largest distance of the boxes [m].
            normal: (t, 3) unit normals.
            runner: Device of the search.

        Returns:
            Sorted indices (p,) of both triangles.
        """
        s, orientation = self._surfaces, (normal, self._surfaces.free)
        grid = self.table(points, runner, orientation)
        return self._query("triangles", grid, s.triangles, (radius, radius), runner, orientation)

    def vertices(
        self, points: Points, radius: float, runner: Runner = HOST, own: float | None = None
    ) -> Pairs:
        """Vertex-triangle pairs within a radius.

        Args:
            points: Positions of the vertices.
            radius: Largest distance [m].
            runner: Device of the search.
            own: Radius beyond which pairs of one body are optional [m], default `radius`.

        Returns:
            Sorted indices (p,) of vertices and of triangles.
        """
        s, grid = self._surfaces, self.table(points, runner)
        return self._query("vertices", grid, s.vertices, (radius, own or radius), runner)

    def edges(self, points: Points, radius: float, runner: Runner = HOST, own: float | None = None) -> Pairs:
        """Edge-edge pairs within a radius.

        Args:
            points: Positions of the vertices.
            radius: Largest distance [m].
            runner: Device of the search.
            own: Radius beyond which pairs of one body are optional [m], default `radius`.

        Returns:
            Sorted indices (p,) of both edges.
        """
        s = self._surfaces
        grid = build_grid(points, s.edges, s.edge, self._filter_of("edges"), runner) if len(s.edges) else None
        return self._query("edges", grid, s.edges, (radius, own or radius), runner)

    def table(
        self, points: Points, runner: Runner, orientation: Orientation = NO_ORIENTATION
    ) -> HashGrid | None:
        """Hash grid of all triangles; reuses the latest grid for the same positions and device.

        Args:
            points: Positions of the vertices.
            runner: Device of the grid.
            orientation: Normals and two-sided flags, if queries test the orientation.
        """
        s, (device, grid) = self._surfaces, self._table
        if device is not runner or grid is None or grid.x is not points.x:
            size = TRIANGLE_CELL_SIZE * s.edge
            grid = build_grid(points, s.triangles, size, self._filter_of("triangles"), runner, orientation)
            self._table = runner, grid
        return grid

    def release_grid(self) -> None:
        """Release the device memory of the latest hash grid."""
        self._table = None, None

    def _filter_of(self, kind: str) -> PairFilter:
        """Filter for pairs of all bodies; the same object for repeated kernel launches."""
        s = self._surfaces
        clear = float(s.clear if self._clear and kind != "triangles" else -1.0)
        if kind not in self._filters or self._filters[kind].clear != clear:
            self._filters[kind] = PairFilter(ALL, s.body, *NO_NEIGHBORS, np.zeros(0, bool), s.rest, clear)
        return self._filters[kind]

    def _query(
        self,
        kind: str,
        grid: HashGrid | None,
        query: np.ndarray,
        radii: tuple[float, float],
        runner: Runner,
        orientation: Orientation = NO_ORIENTATION,
    ) -> Pairs:
        """Query a hash grid, with the pair capacity of twice the previous result."""
        if grid is None:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        radius, own = radii
        capacity, pair_filter = self._capacity.get(kind, 0), self._filter_of(kind)
        _, one, two = search(grid, query, radius, runner, pair_filter, capacity, orientation, own)
        self._capacity[kind] = 2 * len(one)
        return one, two


TRIANGLE_CELL_SIZE = 1.5
"""Cell size of triangle grids in mean edge lengths; a query then overlaps about ten cells."""

NO_NEIGHBORS = np.zeros((0, 6)), np.zeros(1, np.int64), np.zeros(0, np.int64)
"""Empty body boxes and neighbor lists, for filters without them."""
