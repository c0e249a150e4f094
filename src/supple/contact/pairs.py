"""Contacts between surfaces: who is near to whom, in which direction, and how far inside.

Triangles that face each other meet in what they share (`contact.overlaps`). What is sharp, and surfaces that
are pressed hard, meet when they are a quarter as far apart: a vertex the nearest triangle of each body, and
whether it is outside of it is told by the triangles that are equally near; edges where they cross, seen along
the normal of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from supple.contact.candidates import Candidates, Pairs
from supple.contact.overlaps import overlaps
from supple.contact.ways_out import short
from supple.contact.weights import length, weigh_edges, weigh_triangles, weighted

EQUALLY_NEAR = 1e-6
"""Relative to the nearest."""

SHARP = 0.25
"""Part of the thickness within which vertices and edges meet."""

SIZE = 1.6
"""Mean edge of a right triangle with equal legs, in parts of the root of its area."""

DEEPEST = 10.0
"""How far edges may have passed each other, in thicknesses."""

FACING = 0.5
"""Part of the sum of the normals at an edge along n from which on it wholly faces another edge."""

PARALLEL = 1e-3
"""Sine of the angle between edges below which they have no common normal."""

SQUEEZED = 0.1
"""How far a body may have passed itself, in parts of the distance at rest. Two sides of a part that is
squeezed see each other as if they had passed, by all that is between them."""


@dataclass(frozen=True, eq=False)
class Meetings:
    """vertices (m, 6) and signed weights (m, 6) of the points that meet, positive for the first of them,
    whose vertices come first; unused places repeat the first with weight 0; normal (m, 3): from the second to
    the first outside of it; distance (m,) [m] along it, negative where they have passed each other; thickness
    (m,) [m]: from which distance on they push; strength (m,): how much it counts, 0 to 1 of vertices and
    edges, which fade where edges end, and the area that triangles share, in parts of their own size times the
    mean edge; keys (m, 2) by which contacts are known again."""

    vertices: np.ndarray
    weights: np.ndarray
    normal: np.ndarray
    distance: np.ndarray
    thickness: np.ndarray
    strength: np.ndarray
    keys: np.ndarray

    @staticmethod
    def of(several: list[Meetings]) -> Meetings:
        names = vars(several[0])
        return Meetings(*(np.concatenate([vars(each)[name] for each in several]) for name in names))

    def where(self, chosen: np.ndarray) -> Meetings:
        return Meetings(*(values[chosen] for values in vars(self).values()))


class Surfaces:
    """The surfaces of all bodies: triangles (t, 3) that are counter-clockwise seen from outside, of vertices
    that belong to bodies (n,), and rest positions (n, 3) [m]. What is nearer than `clear` [m] at rest within
    a body never meets. flat (bodies,): those that have no inside, as cloth; nobody knows there who has
    passed."""

    def __init__(
        self, triangles: np.ndarray, body: np.ndarray, rest: np.ndarray, clear: float, flat: np.ndarray
    ) -> None:
        self.flat = flat
        self.triangles, self.body = np.ascontiguousarray(triangles, np.int64), body
        self.rest, self.clear = np.ascontiguousarray(rest, float), clear
        self.vertices = np.unique(self.triangles)[:, None]
        sides = np.concatenate(
            [self.triangles[:, [0, 1]], self.triangles[:, [1, 2]], self.triangles[:, [2, 0]]]
        )
        self.edges, self._of_side = np.unique(np.sort(sides, axis=1), axis=0, return_inverse=True)

    @cached_property
    def edge(self) -> float:
        """Mean length of an edge at rest [m]."""
        return float(length(np.diff(self.rest[self.edges], axis=1)[:, 0]).mean())

    @cached_property
    def free(self) -> np.ndarray:
        """(t,) whether triangles have no outside."""
        return self.flat[self.body[self.triangles[:, 0]]]

    def meetings(
        self, x: np.ndarray, thickness: float, reach: float, threads: int = 1, known: Candidates | None = None
    ) -> Meetings:
        """All that is nearer than the thickness [m], or has passed the surface of another body by less than
        the reach [m], with vertices at x (n, 3); known: candidates that are kept from look to look."""
        x = np.ascontiguousarray(x, float)
        a, b, c = np.moveaxis(x[self.triangles], 1, 0)
        normal = np.cross(b - a, c - a)
        normal /= np.maximum(length(normal), 1e-300)[:, None]
        known, far, sharp = known or Candidates(self), max(thickness, reach), SHARP * thickness
        edges = known.edges(x, max(sharp, min(DEEPEST * sharp, reach)), threads)
        faces = known.triangles(x, far, normal, threads)
        found = [
            self._of_triangles(x, normal, thickness, reach, faces, threads),
            self._of_vertices(x, normal, sharp, reach, known.vertices(x, max(sharp, reach), threads)),
            self._of_edges(x, normal, sharp, reach, edges),
        ]
        return Meetings.of(found)

    def _of_triangles(
        self, x: np.ndarray, normal: np.ndarray, thickness: float, reach: float, pairs: Pairs, threads: int
    ) -> Meetings:
        one, other = pairs
        stencils = np.column_stack([self.triangles[one], self.triangles[other]])
        free = self.flat[self.body[stencils[:, [0, 3]]]]
        found = overlaps(x, stencils, normal[one], normal[other], free)
        keys = np.column_stack([one, other])[found.pairs]
        n, distance = found.normal, (found.normal * weighted(x, found.stencils, found.weights)).sum(axis=1)
        side = np.where(free[found.pairs].all(axis=1) & (distance < 0), -1.0, 1.0)
        rest = length(weighted(self.rest, found.stencils, found.weights))
        first, second = self.body[found.stencils[:, [0, -1]]].T
        deepest = np.minimum(reach, (self._thick[first] + self._thick[second]) / 2)
        kept = (side * distance < thickness) & (side * distance >= -deepest)
        own = first == second
        kept &= ~own | ((rest > self.clear) & (side * distance >= -SQUEEZED * rest))
        size = SIZE * np.sqrt(np.minimum(*(self._areas(x)[keys[:, k]] for k in range(2))))
        thick, strength = np.full(len(distance), thickness), found.area / (self.edge * size)
        columns = found.stencils, found.weights, side[:, None] * n, side * distance, thick
        met = Meetings(*columns, strength, keys).where(kept)
        deep = np.flatnonzero((met.distance < -thickness) & ~own[kept])
        met.strength[deep] *= short(self, x, normal, met.where(deep), threads)
        return met.where(met.strength > 0)

    @cached_property
    def _thick(self) -> np.ndarray:
        """(bodies,) [m] about how thick bodies are at rest: twice their volume over their surface; 0 of flat
        ones. What is deeper inside would rather come out on the other side."""
        a, b, c = np.moveaxis(self.rest[self.triangles], 1, 0)
        body, count = self.body[self.triangles[:, 0]], len(self.flat)
        sums = np.column_stack([np.bincount(body, axis, count) for axis in a.T])
        middle = sums / np.maximum(np.bincount(body, minlength=count), 1)[:, None]
        a, b, c = (corner - middle[body] for corner in (a, b, c))
        volume = np.bincount(body, (a * np.cross(b, c)).sum(axis=1) / 6, count)
        surface = np.maximum(np.bincount(body, self._areas(self.rest), count), 1e-300)
        return np.where(self.flat, 0.0, 2 * np.abs(volume) / surface)

    def _vertex_normals(self, normal: np.ndarray) -> np.ndarray:
        """(n, 3) sums of the normals of the triangles at each vertex."""
        three = np.repeat(normal, 3, axis=0)
        return np.column_stack([np.bincount(self.triangles.ravel(), v, len(self.rest)) for v in three.T])

    def _areas(self, x: np.ndarray) -> np.ndarray:
        """(t,) [m²] of triangles."""
        a, b, c = np.moveaxis(x[self.triangles], 1, 0)
        return np.maximum(0.5 * length(np.cross(b - a, c - a)), 1e-300)

    def _of_vertices(
        self, x: np.ndarray, normal: np.ndarray, thickness: float, reach: float, pairs: Pairs
    ) -> Meetings:
        which, triangle = pairs
        stencils = np.column_stack([self.vertices[which], self.triangles[triangle]])
        weights = np.zeros(stencils.shape)
        weigh_triangles(x, stencils, weights)
        gap = weighted(x, stencils, weights)
        distance = length(gap)
        first, group = _groups(which, self.body[stencils[:, 1]], distance)
        least = distance[first][group]
        height = np.where(distance <= least * (1 + EQUALLY_NEAR), (gap * normal[triangle]).sum(axis=1), 0.0)
        side = np.where(np.bincount(group, height, len(first)) < 0, -1.0, 1.0)
        side[self.flat[self.body[stencils[first, 1]]]] = 1.0
        facing = self._faces(stencils, normal[triangle], normal)
        beyond = np.where(facing, distance, np.where(side[group] < 0, np.inf, distance * (1 + EQUALLY_NEAR)))
        first, _ = _groups(which, self.body[stencils[:, 1]], beyond)
        facing = facing[first]
        gap, distance, stencils, weights = (each[first] for each in (gap, distance, stencils, weights))
        apart = distance > 1e-12 * max(thickness, reach)
        n = np.where(
            apart[:, None],
            side[:, None] * gap / np.maximum(distance, 1e-300)[:, None],
            normal[triangle[first]],
        )
        signed = side * distance
        own = self.body[stencils[:, 0]] == self.body[stencils[:, 1]]
        deepest = np.where(own, thickness, reach)
        of_vertex = np.repeat(stencils[:, :1], 3, axis=1)
        nothing = np.zeros((len(signed), 2))
        keys = np.column_stack([len(self.triangles) + stencils[:, 0], -1 - self.body[stencils[:, 1]]])
        found = Meetings(
            np.column_stack([of_vertex, stencils[:, 1:]]),
            np.column_stack([weights[:, :1], nothing, weights[:, 1:]]),
            n,
            signed,
            np.full(len(signed), thickness),
            np.ones(len(signed)),
            keys,
        )
        return found.where((signed < thickness) & (signed > -deepest) & facing)

    def _of_edges(
        self, x: np.ndarray, normal: np.ndarray, thickness: float, reach: float, pairs: Pairs
    ) -> Meetings:
        one, other = pairs
        deepest = min(DEEPEST * thickness, reach)
        stencils = np.column_stack([self.edges[one], self.edges[other]])
        weights = np.zeros(stencils.shape)
        weigh_edges(x, stencils, weights)
        p, q = x[stencils[:, 1]] - x[stencils[:, 0]], x[stencils[:, 3]] - x[stencils[:, 2]]
        n = np.cross(p, q)
        sine = length(n) / np.maximum(length(p) * length(q), 1e-300)
        crossing = (np.abs(weights) > 1e-9).all(axis=1) & (sine > PARALLEL)
        several = one, other, stencils, weights, n, sine
        one, other, stencils, weights, n, sine = (each[crossing] for each in several)
        n /= np.maximum(length(n), 1e-300)[:, None]
        outward = self._edge_normals(normal)
        n *= np.where((n * (outward[other] - outward[one])).sum(axis=1) < 0, -1.0, 1.0)[:, None]
        gap = (n * weighted(x, stencils, weights)).sum(axis=1)
        flat = self.flat[self.body[stencils[:, 0]]] | self.flat[self.body[stencils[:, 2]]]
        side = np.where(flat & (gap < 0), -1.0, 1.0)
        facing = np.minimum((n * outward[other]).sum(axis=1), -(n * outward[one]).sum(axis=1)) / FACING
        strength = 16 * np.abs(np.prod(weights, axis=1)) * sine**2
        strength *= np.where(flat, 1.0, np.clip(facing, 0.0, 1.0))
        again, nothing = np.repeat(stencils[:, :1], 2, axis=1), np.zeros((len(gap), 2))
        first = len(self.triangles) + len(self.rest)
        found = Meetings(
            np.column_stack([stencils[:, :2], again, stencils[:, 2:]]),
            np.column_stack([weights[:, :2], nothing, weights[:, 2:]]),
            side[:, None] * n,
            side * gap,
            np.full(len(gap), thickness),
            strength,
            first + np.column_stack([one, other]),
        )
        own = self.body[stencils[:, 0]] == self.body[stencils[:, -1]]
        kept = (found.distance < thickness) & (found.distance > -np.where(own, thickness, deepest))
        return found.where(kept & (strength > 0))

    def _edge_normals(self, normal: np.ndarray) -> np.ndarray:
        """(edges, 3) sums of the normals of the triangles at each edge."""
        three = np.concatenate([normal] * 3)
        return np.column_stack([np.bincount(self._of_side, axis, len(self.edges)) for axis in three.T])

    def _faces(self, stencils: np.ndarray, there: np.ndarray, normal: np.ndarray) -> np.ndarray:
        """Whether vertices look towards triangles with normals `there` (m, 3), where both have an outside:
        one that has passed leaves on the side from which it has come."""
        flat = self.flat[self.body[stencils[:, [0, -1]]]].any(axis=1)
        here = self._vertex_normals(normal)[stencils[:, 0]]
        return np.asarray(flat | ((here * there).sum(axis=1) < 0))

    def clear_at_rest(self, stencils: np.ndarray, crossing: bool) -> np.ndarray:
        """Whether pairs (m, 4), of a vertex and a triangle or of two edges, are of different bodies, or far
        enough from each other at rest."""
        body = self.body[stencils]
        kept = body[:, 0] != body[:, -1]
        own = np.flatnonzero(~kept)
        weights = np.zeros((len(own), 4))
        weigh = weigh_edges if crossing else weigh_triangles
        weigh(self.rest, np.ascontiguousarray(stencils[own]), weights)
        kept[own] = length(weighted(self.rest, stencils[own], weights)) > self.clear
        return kept


def _groups(vertex: np.ndarray, body: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs in groups by vertex and body: the first of the nearest of each, and the group of each pair."""
    key = vertex * (int(body.max(initial=0)) + 1) + body
    order = np.lexsort((np.arange(len(key)), distance, key))
    begins = np.flatnonzero(np.diff(key[order], prepend=-1))
    group = np.zeros(len(key), np.int64)
    group[order] = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(key))))
    return order[begins], group
