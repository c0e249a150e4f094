"""Contacts between surfaces: who is near to whom, in which direction, and how far inside.

Triangles that face each other meet in what they share (`contact.facing`). What is sharp, and surfaces that
are pressed hard, meet when they are a quarter as far apart, in vertices and edges (`contact.meeting`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from supple.contact.choosing import chosen
from supple.contact.facing import OfTriangles, meet_triangles, polygons
from supple.contact.looking import Looking
from supple.contact.meeting import (
    NUMBERS,
    Given,
    Met,
    Nearing,
    OfEdges,
    OfVertices,
    meet_edges,
    meet_vertices,
)
from supple.contact.normals import Around, normals_of
from supple.contact.points import Points
from supple.contact.sizes import areas, length
from supple.contact.ways_out import short
from supple.kernels import HOST, Runner

SHARP = 0.25
"""Part of the thickness within which vertices and edges meet."""

DEEPEST = 10.0
"""How far edges may have passed each other, in thicknesses."""


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

    @staticmethod
    def that(met: Met, thickness: float, pairs: tuple[np.ndarray, np.ndarray], runner: Runner) -> Meetings:
        """Those of pairs (m,) that do meet, of which all have a thickness [m], known by their numbers."""
        whole, real = chosen(met, *pairs, runner)
        weights, normal, distance, strength = np.split(real, [6, 9, 10], axis=1)
        thick = np.full(len(whole), thickness)
        numbers = distance[:, 0].copy(), thick, strength[:, 0].copy()
        return Meetings(whole[:, :6].copy(), weights.copy(), normal.copy(), *numbers, whole[:, 6:].copy())

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
        self.triangles = np.ascontiguousarray(triangles, np.int64)
        self.body = np.ascontiguousarray(body, np.int64)
        self.rest, self.clear = np.ascontiguousarray(rest, float), clear
        self.vertices = np.unique(self.triangles)[:, None]
        sides = np.concatenate(
            [self.triangles[:, [0, 1]], self.triangles[:, [1, 2]], self.triangles[:, [2, 0]]]
        )
        edges, self._of_side = np.unique(np.sort(sides, axis=1), axis=0, return_inverse=True)
        self.edges = np.ascontiguousarray(edges)

    @cached_property
    def edge(self) -> float:
        """Mean length of an edge at rest [m]."""
        return float(length(np.diff(self.rest[self.edges], axis=1)[:, 0]).mean())

    @cached_property
    def own(self) -> np.ndarray:
        """(v,) the vertices that triangles have."""
        return np.ascontiguousarray(self.vertices[:, 0])

    @cached_property
    def free(self) -> np.ndarray:
        """(t,) whether triangles have no outside."""
        return self.flat[self.body[self.triangles[:, 0]]]

    def meetings(
        self,
        x: np.ndarray,
        thickness: float,
        reach: float,
        runner: Runner = HOST,
        known: Looking | None = None,
    ) -> Meetings:
        """All that is nearer than the thickness [m], or has passed the surface of another body by less than
        the reach [m], with vertices at x (n, 3); known: what is kept from look to look."""
        known, asked = known or Looking(self), (thickness, reach)
        last = known.last
        if last is not None and last[0] == asked and np.array_equal(last[1], x):
            met: Meetings = last[2]
            return met
        points = Points.at(np.array(x, float, order="C"))
        met = self.meetings_at(points, *asked, runner, known)
        known.last = asked, points.x, met
        return met

    def meetings_at(
        self, points: Points, thickness: float, reach: float, runner: Runner, known: Looking
    ) -> Meetings:
        """All that is nearer than the thickness [m], or has passed the surface of another body by less than
        the reach [m], with vertices at points that only kernels need know."""
        given = self._given(points.x, thickness, reach, runner)
        sharp = given._replace(thickness=SHARP * thickness)
        found = [
            self._of_triangles(given, points, known, runner),
            self._of_vertices(sharp, points, known, runner),
            self._of_edges(sharp, points, known, runner),
        ]
        known.forget_table()
        return Meetings.of(found)

    def _given(self, x: np.ndarray, thickness: float, reach: float, runner: Runner) -> Given:
        normal = normals_of(x, self.triangles, runner)
        deepest, clear = min(DEEPEST * SHARP * thickness, reach), float(self.clear)
        of_bodies = self.rest, self.body, self.flat, self.free, self._thick
        lengths = float(thickness), float(reach), float(deepest), self.edge, clear
        return Given(x, *of_bodies, self.triangles, normal, *lengths)

    def _of_triangles(self, g: Given, points: Points, known: Looking, runner: Runner) -> Meetings:
        pairs = known.triangles(points, max(g.thickness, g.reach), g.normal, runner)
        met = Met.room(len(pairs[0]), runner)
        if len(pairs[0]):
            runner.run(meet_triangles, 1, OfTriangles(g, *pairs, *polygons(len(pairs[0]), runner), met))
        found = Meetings.that(met, g.thickness, pairs, runner)
        first, second = self.body[found.vertices[:, [0, -1]]].T
        deep = np.flatnonzero((found.distance < -g.thickness) & (first != second))
        found.strength[deep] *= short(self, points, found.where(deep), known, runner)
        return found.where(found.strength > 0)

    def _of_vertices(self, g: Given, points: Points, known: Looking, runner: Runner) -> Meetings:
        pairs = known.vertices(points, max(g.thickness, g.reach), runner, g.thickness)
        met, between = Met.room(len(pairs[0]), runner), runner.empty((len(pairs[0]), NUMBERS), float)
        if len(pairs[0]):
            near = g, self.vertices, *pairs, between
            around = OfVertices(*near, *self._around_vertices, met)
            runner.run(meet_vertices, 2, Nearing(*near, met.strength), around)
        found = Meetings.that(met, g.thickness, pairs, runner)
        found.keys[:, 0] = len(self.triangles) + found.vertices[:, 0]
        found.keys[:, 1] = -1 - self.body[found.vertices[:, -1]]
        return found

    def _of_edges(self, g: Given, points: Points, known: Looking, runner: Runner) -> Meetings:
        pairs = known.edges(points, max(g.thickness, g.deepest), runner, g.thickness)
        met = Met.room(len(pairs[0]), runner)
        if len(pairs[0]):
            runner.run(meet_edges, 1, OfEdges(g, self.edges, *pairs, *self._around_edges, met))
        found = Meetings.that(met, g.thickness, pairs, runner)
        found.keys[:] += len(self.triangles) + len(self.rest)
        return found

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
        surface = np.maximum(np.bincount(body, areas(self.rest, self.triangles), count), 1e-300)
        return np.where(self.flat, 0.0, 2 * np.abs(volume) / surface)

    @cached_property
    def _around_vertices(self) -> Around:
        return Around.of(np.ascontiguousarray(self.triangles.T), len(self.rest))

    @cached_property
    def _around_edges(self) -> Around:
        return Around.of(self._of_side.reshape(3, -1), len(self.edges))
