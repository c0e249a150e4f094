"""Pairs of things that may be near to each other, kept while bodies move.

They are found farther off than anybody asks for, and serve until bodies have approached each other by that
margin. Who is near among them is measured anew every time, so that nobody can tell the difference. On a
device, which finds pairs sooner than the host could tell how far bodies have moved, they are found anew every
time, and stay there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.contact.approaching import approaches, crowd, stretch
from supple.contact.cells import ALL, BETWEEN, ROUNDING, WITHIN, Entered, Wanted, entered
from supple.contact.grid import NOTHING_FACES, find, search
from supple.contact.points import Points
from supple.contact.sifting import merged, sift
from supple.kernels import HOST, Runner

if TYPE_CHECKING:
    from supple.contact.pairs import Surfaces

MARGINS = 0.25, 0.5, 1.0
"""How much farther off than asked for pairs are found, in mean edges: least, at first, most."""

FEW, MANY = 3, 12
"""Looks for which pairs should serve, before a margin is doubled or halved."""

Pairs = tuple[np.ndarray, np.ndarray]
"""Numbers (p,) of the first and of the second of each, where kernels see them."""


class _Known(NamedTuple):
    """Pairs (p,) that were found within a radius [m] with vertices at x (n, 3)."""

    radius: float
    x: np.ndarray
    one: np.ndarray
    two: np.ndarray


class Candidates:
    """Of surfaces: triangles and triangles, vertices and triangles, edges and edges; those within bodies and
    those of two each, which approach each other at different paces. clear: without what is too near at rest
    to meet. last: what somebody has found by them last, and where, for whoever asks again."""

    def __init__(self, surfaces: Surfaces, clear: bool = True) -> None:
        self._surfaces, self._clear = surfaces, clear
        self.last: Any = None
        self._known: dict[tuple[str, bool], _Known] = {}
        self._served: dict[tuple[str, bool], int] = {}
        self._margin: dict[tuple[str, bool], float] = {}
        self._table: tuple[Runner | None, Entered | None] = None, None
        self._room: dict[str, int] = {}
        self._every: dict[str, Wanted] = {}
        self._both: dict[str, tuple[_Known, _Known, Pairs]] = {}
        self._now, self._moved = np.zeros((0, 3)), dict[int, tuple[np.ndarray, np.ndarray, float]]()
        self._then: dict[tuple[int, bytes], tuple[np.ndarray, np.ndarray]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Candidates, (self._surfaces, self._clear)

    def triangles(self, points: Points, radius: float, normal: np.ndarray, runner: Runner = HOST) -> Pairs:
        """Numbers (p,) of two triangles each, in order, whose boxes are nearer than a radius [m] with
        vertices at points, and that face each other with normals (t, 3)."""
        return self._pairs("triangles", points, radius, (normal, self._surfaces.free), runner)

    def vertices(self, points: Points, radius: float, runner: Runner = HOST) -> Pairs:
        """Numbers (p,) of a vertex and a triangle each, in order, that are nearer than a radius [m] with
        vertices at points."""
        return self._pairs("vertices", points, radius, NOTHING_FACES, runner)

    def edges(self, points: Points, radius: float, runner: Runner = HOST) -> Pairs:
        """Numbers (p,) of two edges each, in order, that are nearer than a radius [m] with vertices at
        points."""
        return self._pairs("edges", points, radius, NOTHING_FACES, runner)

    def _things(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        s = self._surfaces
        return (s.edges, s.edges) if kind == "edges" else (getattr(s, kind), s.triangles)

    def table(self, points: Points, runner: Runner) -> Entered | None:
        """Triangles with vertices at points, for those who look for some; the last one that was made where it
        serves."""
        s = self._surfaces
        whose, there = self._table
        if whose is not runner or there is None or there.x is not points.x:
            there = entered(points, s.triangles, s.edge, self._all("triangles"), runner)
            self._table = runner, there
        return there

    def forget_table(self) -> None:
        """Let go of what the last look has left with a device."""
        self._table = None, None

    def _all(self, kind: str) -> Wanted:
        """Pairs of all bodies, at once; the same object again, which launches know."""
        s = self._surfaces
        clear = float(s.clear if self._clear and kind != "triangles" else -1.0)
        if kind not in self._every or self._every[kind].clear != clear:
            self._every[kind] = Wanted(ALL, s.body, *_NOBODY, np.zeros(0, bool), s.rest, clear)
        return self._every[kind]

    def _found(self, kind: str, points: Points, radius: float, facing: Any, runner: Runner) -> Pairs:
        """Anew, by a device."""
        s, (seek, _) = self._surfaces, self._things(kind)
        wanted = self._all(kind)
        if kind == "edges":
            there = entered(points, s.edges, s.edge, wanted, runner) if len(seek) else None
        else:
            there = self.table(points, runner)
        if there is None:
            return _NO_PAIRS
        _, one, two = search(there, seek, radius, runner, wanted, self._room.get(kind, 0), facing)
        self._room[kind] = 2 * len(one)
        return one, two

    def _pairs(self, kind: str, points: Points, radius: float, facing: Any, runner: Runner) -> Pairs:
        if runner.far:
            return self._found(kind, points, radius, facing, runner)
        x, (seek, other) = points.x, self._things(kind)
        inside, between = (self._near(kind, within, x, radius, runner) for within in (True, False))
        both = self._both.get(kind)
        if both is None or both[0] is not inside or both[1] is not between:
            pairs = merged((inside.one, inside.two), (between.one, between.two))
            both = self._both[kind] = inside, between, pairs
        return sift((x, seek, other, *both[2]), radius, facing, runner)

    def _near(self, kind: str, within: bool, x: np.ndarray, radius: float, runner: Runner) -> _Known:
        known, s, which = self._known.get((kind, within)), self._surfaces, (kind, within)
        late = self._late(known, within, x, radius)
        if known is not None and not late.any():
            self._served[which] += 1
            return known
        seek, other = self._things(kind)
        room = 0 if known is None else 2 * len(known.one)
        some = known is not None and not late.all() and known.radius < radius + 2 * MARGINS[1] * s.edge
        wide = known.radius if known and some else radius + self._next_margin(which) * s.edge
        found = find(x, seek, other, wide, runner, self._wanted(kind, within, x, wide, late), s.edge, room)
        pairs, then = (found.one, found.two), x
        if known and some:
            stay = ~late[s.body[seek[known.one, 0]]]
            pairs = merged((known.one[stay], known.two[stay]), pairs)
            then = self._renewed(known.x, late, x)
        self._known[which] = known = _Known(wide, then, *pairs)
        self._served[which] = 1
        return known

    def _late(self, known: _Known | None, within: bool, x: np.ndarray, radius: float) -> np.ndarray:
        """(b,) in which bodies, or between all of them, others can have come within a radius [m] of each
        other."""
        s = self._surfaces
        nobody = np.zeros(len(s.flat), bool)
        if known is None or known.radius < radius:
            return ~nobody
        if known.x is x:
            return nobody
        enough, then = known.radius - radius, id(known.x)
        if self._now is not x:
            self._now, self._moved, self._then = x, {}, {}
        if then not in self._moved:
            widest = max(each.radius for each in self._known.values())
            self._moved[then] = known.x, *approaches(s, known.x, x - known.x, widest)
        _, inside, between = self._moved[then]
        if not within:
            return nobody | (between > enough)
        if (inside > enough).any():
            inside = np.minimum(inside, stretch(s, known.x, x))
            self._moved[then] = known.x, inside, between
        return np.asarray(inside > enough)

    def _renewed(self, then: np.ndarray, late: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Where bodies were when their pairs were found, now of those that were late; one array for all
        kinds of pairs."""
        which = id(then), late.tobytes()
        if which not in self._then:
            self._then[which] = then, np.where(late[self._surfaces.body][:, None], x, then)
        return self._then[which][1]

    def _next_margin(self, which: tuple[str, bool]) -> float:
        """Twice as much where the last one did not serve for long, half as much where it did."""
        least, margin, most = MARGINS
        if which in self._margin and not which[1]:
            served, margin = self._served[which], self._margin[which]
            margin = min(most, 2 * margin) if served < FEW else margin
            margin = max(least, margin / 2) if served > MANY else margin
        self._margin[which] = margin
        return margin

    def _wanted(self, kind: str, within: bool, x: np.ndarray, radius: float, late: np.ndarray) -> Wanted:
        s = self._surfaces
        clear = s.clear if within and self._clear and kind != "triangles" else -1.0
        box, start, others = crowd(s, x, radius) if not within else _NOBODY
        box = box + (1 + ROUNDING) * radius * np.repeat([-1, 1], 3)
        which = WITHIN if within else BETWEEN
        return Wanted(which, s.body, box, start, others, late, s.rest, float(clear))


_NO_PAIRS = np.zeros(0, np.int32), np.zeros(0, np.int32)
_NOBODY = np.zeros((0, 6)), np.zeros(1, np.int64), np.zeros(0, np.int64)
