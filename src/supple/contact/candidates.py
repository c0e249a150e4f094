"""Pairs of things that may be near to each other, kept while bodies move.

They are found farther off than anybody asks for, and serve until bodies have approached each other by that
margin. Who is near among them is measured anew every time, so that nobody can tell the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.contact.approaching import approaches, beside_others, stretch
from supple.contact.grid import BLOCK, boxes_apart, near, things_apart
from supple.contact.overlaps import OPPOSED
from supple.kernels import do, each_item, kernel, number, physics, run, strides, threads_for

if TYPE_CHECKING:
    from supple.contact.pairs import Surfaces

MARGIN = 0.5
"""In mean edges."""

_BEGIN = OPPOSED[0]

Pairs = tuple[np.ndarray, np.ndarray]
"""Numbers (p,) of the first and of the second of each."""


class Sifting(NamedTuple):
    """kept (p,) gets whether the one[p]-th of things `seek` and the two[p]-th of `other` are nearer than a
    radius; where there are normals (t, 3), of triangles, only such as face each other; free (t,): whether a
    triangle has no outside."""

    x: Any
    seek: Any
    other: Any
    one: Any
    two: Any
    radius: Any
    normal: Any
    free: Any
    kept: Any


@physics
def _face(s, m, o):
    if len(s.normal) == 0:
        return True
    cosine = 0.0
    for axis in range(3):
        cosine -= s.normal[m, axis] * s.normal[o, axis]
    return cosine > _BEGIN or (cosine < -_BEGIN and (s.free[m] or s.free[o]))


@do.of(Sifting)
def _sift(s, place):
    first, step = strides(place)
    start = number(place) * BLOCK
    for p in range(start + first, min(len(s.one), start + BLOCK), step):
        m, o = s.one[p], s.two[p]
        near_by = boxes_apart(s, m, o) < s.radius * s.radius and _face(s, m, o)
        s.kept[p] = near_by and things_apart(s, m, o) < s.radius * s.radius


@kernel
def _sift_all(team, sifting):
    each_item(team, 0, 0, -(-len(sifting.one) // BLOCK), sifting)


class _Known(NamedTuple):
    """Pairs (p,) that were found within a radius [m] with vertices at x (n, 3)."""

    radius: float
    x: np.ndarray
    one: np.ndarray
    two: np.ndarray


class Candidates:
    """Of surfaces: triangles and triangles, vertices and triangles, edges and edges; those within bodies and
    those of two each, which approach each other at different paces. clear: without what is too near at rest
    to meet."""

    def __init__(self, surfaces: Surfaces, clear: bool = True) -> None:
        self._surfaces, self._clear = surfaces, clear
        self._known: dict[tuple[str, bool], _Known] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Candidates, (self._surfaces, self._clear)

    def triangles(self, x: np.ndarray, radius: float, normal: np.ndarray, threads: int = 1) -> Pairs:
        """Numbers (p,) of two triangles each, in order, whose boxes are nearer than a radius [m] with
        vertices at x (n, 3), and that face each other with normals (t, 3)."""
        return self._pairs("triangles", x, radius, normal, threads)

    def vertices(self, x: np.ndarray, radius: float, threads: int = 1) -> Pairs:
        """Numbers (p,) of a vertex and a triangle each, in order, nearer than a radius [m] at x (n, 3)."""
        return self._pairs("vertices", x, radius, _NO_NORMALS, threads)

    def edges(self, x: np.ndarray, radius: float, threads: int = 1) -> Pairs:
        """Numbers (p,) of two edges each, in order, nearer than a radius [m] at x (n, 3)."""
        return self._pairs("edges", x, radius, _NO_NORMALS, threads)

    def _things(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        s = self._surfaces
        return (s.edges, s.edges) if kind == "edges" else (getattr(s, kind), s.triangles)

    def _pairs(self, kind: str, x: np.ndarray, radius: float, normal: np.ndarray, threads: int) -> Pairs:
        seek, other = self._things(kind)
        found = []
        for within in (True, False):
            known = self._near(kind, within, x, radius, threads)
            kept, free = np.zeros(len(known.one), bool), self._surfaces.free
            work = Sifting(x, seek, other, known.one, known.two, float(radius), normal, free, kept)
            run(_sift_all, threads, threads_for(1), work)
            found.append((known.one[kept], known.two[kept]))
        one, two = (np.concatenate(both) for both in zip(*found, strict=True))
        order = np.argsort(one * len(other) + two)
        return one[order], two[order]

    def _near(self, kind: str, within: bool, x: np.ndarray, radius: float, threads: int) -> _Known:
        known, s = self._known.get((kind, within)), self._surfaces
        if known is not None:
            enough = known.radius - radius
            nearer = approaches(s, known.x, x - known.x, known.radius)[0 if within else 1]
            if nearer <= enough or (within and stretch(s, known.x, x) <= enough):
                return known
        wide = radius + MARGIN * s.edge
        one, two = self._found(kind, within, x, wide, threads)
        self._known[kind, within] = known = _Known(wide, x.copy(), one, two)
        return known

    def _found(self, kind: str, within: bool, x: np.ndarray, radius: float, threads: int) -> Pairs:
        seek, other = self._things(kind)
        some, others = np.arange(len(seek)), np.arange(len(other))
        if not within:
            some, others = (beside_others(self._surfaces, x, things, radius) for things in (seek, other))
        start, two = near(x, seek[some], other[others], radius, threads)
        one, two = some[np.repeat(np.arange(len(some)), np.diff(start))], others[two]
        body = self._surfaces.body
        kept = (body[seek[one, 0]] == body[other[two, 0]]) == within
        one, two = one[kept], two[kept]
        if within and self._clear and kind != "triangles":
            apart = self._surfaces.clear_at_rest(np.column_stack([seek[one], other[two]]), kind == "edges")
            one, two = one[apart], two[apart]
        return one, two


_NO_NORMALS = np.zeros((0, 3))
