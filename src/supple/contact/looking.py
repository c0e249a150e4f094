"""Pairs of things that are near to each other, found anew wherever kernels run, and where they stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from supple.contact.cells import ALL, NOTHING_FACES, Wanted
from supple.contact.grid import search
from supple.contact.points import Points
from supple.contact.table import Entered, entered
from supple.kernels import HOST, Runner

if TYPE_CHECKING:
    from supple.contact.pairs import Surfaces

Pairs = tuple[np.ndarray, np.ndarray]
"""Numbers (p,) of the first and of the second of each, where kernels see them."""

Facing = tuple[np.ndarray, np.ndarray]
"""Normals (t, 3) of triangles, and whether they have no outside (t,)."""


class Looking:
    """At surfaces: triangles and triangles, vertices and triangles, edges and edges. clear: without what is
    too near at rest to meet. last: what somebody has found last, and where, for whoever asks again."""

    def __init__(self, surfaces: Surfaces, clear: bool = True) -> None:
        self._surfaces, self._clear = surfaces, clear
        self.last: Any = None
        self._table: tuple[Runner | None, Entered | None] = None, None
        self._room: dict[str, int] = {}
        self._wanted: dict[str, Wanted] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Looking, (self._surfaces, self._clear)

    def triangles(self, points: Points, radius: float, normal: np.ndarray, runner: Runner = HOST) -> Pairs:
        """Numbers (p,) of two triangles each, in order, whose boxes are nearer than a radius [m] with
        vertices at points, and that face each other with normals (t, 3)."""
        s, facing = self._surfaces, (normal, self._surfaces.free)
        there = self.table(points, runner, facing)
        return self._found("triangles", there, s.triangles, (radius, radius), runner, facing)

    def vertices(
        self, points: Points, radius: float, runner: Runner = HOST, own: float | None = None
    ) -> Pairs:
        """Numbers (p,) of a vertex and a triangle each, in order, that are nearer than a radius [m] with
        vertices at points; within a body nobody asks for those beyond a radius of its `own` [m]."""
        s, there = self._surfaces, self.table(points, runner)
        return self._found("vertices", there, s.vertices, (radius, own or radius), runner)

    def edges(self, points: Points, radius: float, runner: Runner = HOST, own: float | None = None) -> Pairs:
        """Numbers (p,) of two edges each, in order, that are nearer than a radius [m] with vertices at
        points; own: as of vertices."""
        s = self._surfaces
        there = entered(points, s.edges, s.edge, self._all("edges"), runner) if len(s.edges) else None
        return self._found("edges", there, s.edges, (radius, own or radius), runner)

    def table(self, points: Points, runner: Runner, facing: Facing = NOTHING_FACES) -> Entered | None:
        """Triangles with vertices at points, for those who look for some, who may have to face them; the last
        one that was made where it serves."""
        s, (whose, there) = self._surfaces, self._table
        if whose is not runner or there is None or there.x is not points.x:
            size = TRIANGLES * s.edge
            there = entered(points, s.triangles, size, self._all("triangles"), runner, facing)
            self._table = runner, there
        return there

    def forget_table(self) -> None:
        """Let go of what the last look has left where kernels see it."""
        self._table = None, None

    def _all(self, kind: str) -> Wanted:
        """Pairs of all bodies, at once; the same object again, which launches know."""
        s = self._surfaces
        clear = float(s.clear if self._clear and kind != "triangles" else -1.0)
        if kind not in self._wanted or self._wanted[kind].clear != clear:
            self._wanted[kind] = Wanted(ALL, s.body, *NOBODY_NEAR, np.zeros(0, bool), s.rest, clear)
        return self._wanted[kind]

    def _found(
        self,
        kind: str,
        there: Entered | None,
        seek: np.ndarray,
        radii: tuple[float, float],
        runner: Runner,
        facing: Facing = NOTHING_FACES,
    ) -> Pairs:
        if there is None:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        radius, own = radii
        room, wanted = self._room.get(kind, 0), self._all(kind)
        _, one, two = search(there, seek, radius, runner, wanted, room, facing, own)
        self._room[kind] = 2 * len(one)
        return one, two


TRIANGLES = 1.5
"""Size of the cells that triangles are in, in mean edges: those who look for some touch ten of them."""

NOBODY_NEAR = np.zeros((0, 6)), np.zeros(1, np.int64), np.zeros(0, np.int64)
"""Boxes of bodies and who is near to whom, where nobody asks."""
