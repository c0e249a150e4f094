"""Candidate pairs of contact, cached while bodies move.

The broad phase searches with an extra margin, so its pairs remain complete until bodies have approached each
other by that margin. Each query measures the distances of the cached candidates again, so results do not
depend on the cache. A GPU finds pairs faster than the host bounds the approach of bodies, so GPUs skip the
cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.contact.approaching import approaches, crowd, stretch
from supple.contact.cells import BETWEEN, ROUNDING, WITHIN, Wanted
from supple.contact.grid import find
from supple.contact.looking import NOBODY_NEAR, Looking, Pairs
from supple.contact.points import Points
from supple.contact.sifting import merged, sift
from supple.kernels import HOST, Runner

if TYPE_CHECKING:
    from supple.contact.pairs import Surfaces

MARGINS = 0.25, 0.5, 1.0
"""Smallest, initial and largest search margin in mean edge lengths."""

FEW, MANY = 3, 12
"""Queries served by one search below which the next margin is doubled, and above which it is halved."""


class _Known(NamedTuple):
    """Cached candidates: pairs (p,) within a radius [m] at positions x (n, 3)."""

    radius: float
    x: np.ndarray
    one: np.ndarray
    two: np.ndarray


class Candidates:
    """Cached broad phase for vertex-triangle and edge-edge pairs.

    Pairs within bodies and pairs between bodies have separate caches, since their distances change at
    different rates.

    Args:
        surfaces: Surfaces of all bodies.
    """

    def __init__(self, surfaces: Surfaces) -> None:
        self._surfaces, self._anew = surfaces, Looking(surfaces, clear=False)
        self._known: dict[tuple[str, bool], _Known] = {}
        self._served: dict[tuple[str, bool], int] = {}
        self._margin: dict[tuple[str, bool], float] = {}
        self._both: dict[str, tuple[_Known, _Known, Pairs]] = {}
        self._now, self._moved = np.zeros((0, 3)), dict[int, tuple[np.ndarray, np.ndarray, float]]()
        self._then: dict[tuple[int, bytes], tuple[np.ndarray, np.ndarray]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Candidates, (self._surfaces,)

    def vertices(self, points: Points, radius: float, runner: Runner = HOST) -> Pairs:
        """Vertex-triangle pairs within a radius.

        Args:
            points: Positions of the vertices.
            radius: Largest distance [m].
            runner: Device of the search.

        Returns:
            Sorted indices (p,) of vertices and of triangles.
        """
        if runner.far:
            return self._anew.vertices(points, radius, runner)
        return self._pairs("vertices", points.x, radius, runner)

    def edges(self, points: Points, radius: float, runner: Runner = HOST) -> Pairs:
        """Edge-edge pairs within a radius.

        Args:
            points: Positions of the vertices.
            radius: Largest distance [m].
            runner: Device of the search.

        Returns:
            Sorted indices (p,) of both edges.
        """
        if runner.far:
            return self._anew.edges(points, radius, runner)
        return self._pairs("edges", points.x, radius, runner)

    def _things(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Query and target primitives of a kind of pairs."""
        s = self._surfaces
        return (s.edges, s.edges) if kind == "edges" else (s.vertices, s.triangles)

    def _pairs(self, kind: str, x: np.ndarray, radius: float, runner: Runner) -> Pairs:
        """Narrow phase over cached candidates: pairs of one kind within a radius [m]."""
        seek, other = self._things(kind)
        inside, between = (self._near(kind, within, x, radius, runner) for within in (True, False))
        both = self._both.get(kind)
        if both is None or both[0] is not inside or both[1] is not between:
            pairs = merged((inside.one, inside.two), (between.one, between.two))
            both = self._both[kind] = inside, between, pairs
        return sift((x, seek, other, *both[2]), radius, runner)

    def _near(self, kind: str, within: bool, x: np.ndarray, radius: float, runner: Runner) -> _Known:
        """Return the cached candidates within or between bodies; update them if they are outdated.

        Only outdated bodies are searched again, unless all are outdated or the cached radius is too large.
        """
        known, s, which = self._known.get((kind, within)), self._surfaces, (kind, within)
        late = self._late(known, within, x, radius)
        if known is not None and not late.any():
            self._served[which] += 1
            return known
        seek, other = self._things(kind)
        room = 0 if known is None else 2 * len(known.one)
        some = known is not None and not late.all() and known.radius < radius + 2 * MARGINS[1] * s.edge
        wide = known.radius if known and some else radius + self._next_margin(which) * s.edge
        found = find(x, seek, other, wide, runner, self._wanted(within, x, wide, late), s.edge, room)
        pairs, then = (found.one, found.two), x
        if known and some:
            stay = ~late[s.body[seek[known.one, 0]]]
            pairs = merged((known.one[stay], known.two[stay]), pairs)
            then = self._renewed(known.x, late, x)
        self._known[which] = known = _Known(wide, then, *pairs)
        self._served[which] = 1
        return known

    def _late(self, known: _Known | None, within: bool, x: np.ndarray, radius: float) -> np.ndarray:
        """(b,) True for bodies whose cached pairs may be incomplete within a radius [m].

        Pairs between bodies are outdated for all bodies or for none.
        """
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
        """Reference positions of the cache: x for outdated bodies; one array for all kinds of pairs."""
        which = id(then), late.tobytes()
        if which not in self._then:
            self._then[which] = then, np.where(late[self._surfaces.body][:, None], x, then)
        return self._then[which][1]

    def _next_margin(self, which: tuple[str, bool]) -> float:
        """Next search margin: doubled after few queries, halved after many; constant within bodies."""
        least, margin, most = MARGINS
        if which in self._margin and not which[1]:
            served, margin = self._served[which], self._margin[which]
            margin = min(most, 2 * margin) if served < FEW else margin
            margin = max(least, margin / 2) if served > MANY else margin
        self._margin[which] = margin
        return margin

    def _wanted(self, within: bool, x: np.ndarray, radius: float, late: np.ndarray) -> Wanted:
        """Filter of the search: pairs within outdated bodies, or pairs between neighboring bodies."""
        s = self._surfaces
        box, start, others = crowd(s, x, radius) if not within else NOBODY_NEAR
        box = box + (1 + ROUNDING) * radius * np.repeat([-1, 1], 3)
        which = WITHIN if within else BETWEEN
        return Wanted(which, s.body, box, start, others, late, s.rest, -1.0)
