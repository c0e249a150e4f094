"""How far surfaces are from each other, and how far every vertex may move before anything could pass.

No vertex passes a triangle, and no edge another, before their distance is used up. So where every vertex
stays within a ball around its place, whose radius is a part γ < ½ of the least distance of all that it
belongs to, nothing passes anything, whatever way the vertices take in it [OGC, Chen et al. 2025].
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact.approaching import come_nearer
from supple.contact.candidates import Candidates
from supple.contact.cells import BLOCK, own_part
from supple.contact.closest import between, on_edges, on_triangle
from supple.contact.pairs import Surfaces
from supple.contact.points import Points
from supple.contact.things import point
from supple.kernels import HOST, Runner, do, each_item, kernel, physics

PART = 0.4
"""γ: two vertices may use up 0.8 of a distance, and rounding the rest."""

ANYWHERE = 1e15
"""A room without end [m]."""


class Gaps(NamedTuple):
    """Pairs that share no vertex: vertices (m, 4) of a vertex and a triangle, or of two edges where crossing
    (m,) says so; their distance (m,) [m]; keys (m,): numbers that tell them apart, in order."""

    vertices: np.ndarray
    crossing: np.ndarray
    distance: np.ndarray
    keys: np.ndarray

    def where(self, chosen: np.ndarray) -> Gaps:
        return Gaps(*(values[chosen] for values in self))


@kernel
def measure_faces(x, stencils, weights, distance):
    """Signed weights of the closest points of a vertex and a triangle each, and their distance."""
    for m in range(len(stencils)):
        p, a = point(x, stencils[m, 0]), point(x, stencils[m, 1])
        b, c = point(x, stencils[m, 2]), point(x, stencils[m, 3])
        u, v, w = on_triangle(p, a, b, c)
        gap = sub(p, add(add(scale(u, a), scale(v, b)), scale(w, c)))
        weights[m, 0], weights[m, 1], weights[m, 2], weights[m, 3] = 1.0, -u, -v, -w
        distance[m] = dot(gap, gap) ** 0.5


@kernel
def measure_edges(x, stencils, weights, distance):
    """Signed weights of the closest points of two edges each, and their distance."""
    for m in range(len(stencils)):
        a, b = point(x, stencils[m, 0]), point(x, stencils[m, 1])
        c, d = point(x, stencils[m, 2]), point(x, stencils[m, 3])
        s, t = on_edges(a, b, c, d)
        gap = sub(between(s, a, b), between(t, c, d))
        weights[m, 0], weights[m, 1], weights[m, 2], weights[m, 3] = 1.0 - s, s, t - 1.0, -t
        distance[m] = dot(gap, gap) ** 0.5


@physics
def apart(a, b, c, d, crossing):
    """Distance of a vertex a from a triangle, or of two edges where they are crossing."""
    if crossing:
        s, t = on_edges(a, b, c, d)
        gap = sub(between(s, a, b), between(t, c, d))
    else:
        u, v, w = on_triangle(a, b, c, d)
        gap = sub(a, add(add(scale(u, b), scale(v, c)), scale(w, d)))
    return math.sqrt(dot(gap, gap))


class Measuring(NamedTuple):
    """distance (m,) gets that of pairs with vertices (m, 4) at x (n, 3)."""

    x: Any
    stencils: Any
    crossing: Any
    distance: Any


@do.of(Measuring)
def _measure(work, place):
    x, stencils = work.x, work.stencils
    first, last, step = own_part(len(stencils), place)
    for m in range(first, last, step):
        a, b = point(x, stencils[m, 0]), point(x, stencils[m, 1])
        c, d = point(x, stencils[m, 2]), point(x, stencils[m, 3])
        work.distance[m] = apart(a, b, c, d, work.crossing[m])


@kernel
def measure_all(team, work):
    each_item(team, 0, 0, -(-len(work.stencils) // BLOCK), work)


@kernel
def _least(stencils, distance, least):
    for m in range(len(stencils)):
        for k in range(4):
            i = stencils[m, k]
            least[i] = min(least[i], distance[m])


def gaps(
    surfaces: Surfaces, x: np.ndarray, radius: float, runner: Runner = HOST, known: Candidates | None = None
) -> Gaps:
    """All pairs nearer than a radius [m], with vertices at x (n, 3); known: candidates that are kept from
    look to look, with all that is near at rest."""
    known = known or Candidates(surfaces)
    points = Points.at(np.array(x, float, order="C"))  # which candidates keep
    which, triangle = known.vertices(points, radius, runner)
    one, other = known.edges(points, radius, runner)
    for numbers in (which, triangle, one, other):
        runner.pull(numbers)
    which, triangle, one, other = (each.astype(np.int64) for each in (which, triangle, one, other))
    faces = np.column_stack([surfaces.vertices[which], surfaces.triangles[triangle]])
    edges = np.column_stack([surfaces.edges[one], surfaces.edges[other]])
    first = len(surfaces.vertices) * len(surfaces.triangles)
    keys = [which * len(surfaces.triangles) + triangle, first + one * len(surfaces.edges) + other]
    crossing = np.repeat([False, True], [len(faces), len(edges)])
    found = Gaps(np.concatenate([faces, edges]), crossing, np.zeros(len(crossing)), np.concatenate(keys))
    return found._replace(distance=distances_at(points.x, found, runner))


def distances_at(x: np.ndarray, found: Gaps, runner: Runner = HOST) -> np.ndarray:
    """(m,) [m] of pairs, with vertices at x (n, 3), which nobody writes any more."""
    distance = runner.zeros((len(found.distance),), np.float64)
    stencils = np.ascontiguousarray(found.vertices, np.int64)
    work = Measuring(np.ascontiguousarray(x, float), stencils, found.crossing, distance)
    runner.run(measure_all, 1, work)
    runner.pull(distance)
    return distance


def rooms(surfaces: Surfaces, found: Gaps, radius: float) -> np.ndarray:
    """(n,) [m] how far each vertex may move, where all pairs nearer than a radius [m] were found; what is
    inside of a body may go anywhere."""
    least = np.full(len(surfaces.rest), ANYWHERE)
    least[surfaces.vertices[:, 0]] = radius
    _least(found.vertices, found.distance, least)
    return PART * least


class Neighbours(NamedTuple):
    """Pairs that were found within a radius [m] with vertices at x (n, 3), and from which distance (m,) [m]
    on each of them pushes."""

    surfaces: Surfaces
    pairs: Gaps
    reach: np.ndarray
    radius: float
    x: np.ndarray

    def at(self, x: np.ndarray, least: float, runner: Runner = HOST) -> Neighbours | None:
        """These pairs with vertices at x (n, 3), without looking for pairs again, and the radius within
        which they are all that there are: others have come nearer by no more than bodies have approached each
        other. None where that is less than the least one."""
        left = self.radius - come_nearer(self.surfaces, self.x, x, self.radius, self.radius - least)
        if left < least:
            return None
        pairs = self.pairs._replace(distance=distances_at(x, self.pairs, runner))
        return Neighbours(self.surfaces, pairs, self.reach, left, x)

    def rooms(self) -> np.ndarray:
        """(n,) [m] how far each vertex may move."""
        return rooms(self.surfaces, self.pairs, self.radius)


@kernel
def _approachable(stencils, crossing, distance, room, reach, kept):
    for m in range(len(stencils)):
        first = 2 if crossing[m] else 1
        here, there = room[stencils[m, 0]], room[stencils[m, 3]]
        for k in range(1, first):
            here = max(here, room[stencils[m, k]])
        for k in range(first, 3):
            there = max(there, room[stencils[m, k]])
        kept[m] = distance[m] - here - there < reach[m]


def within_reach(found: Gaps, room: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """(m,) whether pairs can get nearer than their reach (m,) [m] while vertices stay in their rooms (n,)."""
    kept = np.zeros(len(found.distance), bool)
    _approachable(found.vertices, found.crossing, found.distance, room, reach, kept)
    return kept
