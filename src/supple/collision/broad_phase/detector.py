"""Broad phase without a candidate cache, with results in device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.broad_phase.hash_grid import ALL, NO_ORIENTATION, HashGrid, PairFilter, build_grid
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
        self._room: dict[str, int] = {}
        self._wanted: dict[str, PairFilter] = {}

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
        s, facing = self._surfaces, (normal, self._surfaces.free)
        there = self.table(points, runner, facing)
        return self._found("triangles", there, s.triangles, (radius, radius), runner, facing)

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
        s, there = self._surfaces, self.table(points, runner)
        return self._found("vertices", there, s.vertices, (radius, own or radius), runner)

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
        there = build_grid(points, s.edges, s.edge, self._all("edges"), runner) if len(s.edges) else None
        return self._found("edges", there, s.edges, (radius, own or radius), runner)

    def table(self, points: Points, runner: Runner, facing: Orientation = NO_ORIENTATION) -> HashGrid | None:
        """Hash grid of all triangles; reuses the latest grid for the same positions and device.

        Args:
            points: Positions of the vertices.
            runner: Device of the grid.
            facing: Normals and two-sided flags, if queries test the orientation.
        """
        s, (whose, there) = self._surfaces, self._table
        if whose is not runner or there is None or there.x is not points.x:
            size = TRIANGLES * s.edge
            there = build_grid(points, s.triangles, size, self._all("triangles"), runner, facing)
            self._table = runner, there
        return there

    def forget_table(self) -> None:
        """Release the device memory of the latest hash grid."""
        self._table = None, None

    def _all(self, kind: str) -> PairFilter:
        """Filter for pairs of all bodies; the same object for repeated kernel launches."""
        s = self._surfaces
        clear = float(s.clear if self._clear and kind != "triangles" else -1.0)
        if kind not in self._wanted or self._wanted[kind].clear != clear:
            self._wanted[kind] = PairFilter(ALL, s.body, *NO_NEIGHBORS, np.zeros(0, bool), s.rest, clear)
        return self._wanted[kind]

    def _found(
        self,
        kind: str,
        there: HashGrid | None,
        seek: np.ndarray,
        radii: tuple[float, float],
        runner: Runner,
        facing: Orientation = NO_ORIENTATION,
    ) -> Pairs:
        """Query a hash grid, with the pair capacity of twice the previous result."""
        if there is None:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        radius, own = radii
        room, wanted = self._room.get(kind, 0), self._all(kind)
        _, one, two = search(there, seek, radius, runner, wanted, room, facing, own)
        self._room[kind] = 2 * len(one)
        return one, two


TRIANGLES = 1.5
"""Cell size of triangle grids in mean edge lengths; a query then overlaps about ten cells."""

NO_NEIGHBORS = np.zeros((0, 6)), np.zeros(1, np.int64), np.zeros(0, np.int64)
"""Empty body boxes and neighbor lists, for filters without them."""
