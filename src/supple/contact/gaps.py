"""How far surfaces are from each other, and how far every vertex may move before anything could pass.

No vertex passes a triangle, and no edge another, before their distance is used up. So where every vertex
stays within a ball around its place, whose radius is a part γ < ½ of the least distance of all that it
belongs to, nothing passes anything, whatever way the vertices take in it [OGC, Chen et al. 2025].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact.closest import between, on_edges, on_triangle
from supple.contact.grid import near, point
from supple.contact.pairs import Surfaces
from supple.kernels import kernel

PART = 0.4
"""γ: two vertices may use up 0.8 of a distance, and rounding the rest."""

NARROW = 0.4
"""Part of a radius below which neighbours are looked for again."""

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


@kernel
def _least(stencils, distance, least):
    for m in range(len(stencils)):
        for k in range(4):
            i = stencils[m, k]
            least[i] = min(least[i], distance[m])


def _distances(x: np.ndarray, stencils: np.ndarray, measure: object) -> np.ndarray:
    distance = np.zeros(len(stencils))
    measure(x, stencils, np.zeros((len(stencils), 4)), distance)  # type: ignore[operator]
    return distance


def _pairs(start: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(len(start) - 1), np.diff(start)), found


def gaps(surfaces: Surfaces, x: np.ndarray, radius: float, threads: int = 1) -> Gaps:
    """All pairs nearer than a radius [m], with vertices at x (n, 3)."""
    x = np.ascontiguousarray(x, float)
    which, triangle = _pairs(*near(x, surfaces.vertices, surfaces.triangles, radius, threads))
    faces = np.column_stack([surfaces.vertices[which], surfaces.triangles[triangle]])
    one, other = _pairs(*near(x, surfaces.edges, surfaces.edges, radius, threads))
    edges = np.column_stack([surfaces.edges[one], surfaces.edges[other]])
    first = len(surfaces.vertices) * len(surfaces.triangles)
    keys = [which * len(surfaces.triangles) + triangle, first + one * len(surfaces.edges) + other]
    return Gaps(
        np.concatenate([faces, edges]),
        np.repeat([False, True], [len(faces), len(edges)]),
        np.concatenate([_distances(x, faces, measure_faces), _distances(x, edges, measure_edges)]),
        np.concatenate(keys),
    )


def distances_at(x: np.ndarray, found: Gaps) -> np.ndarray:
    """(m,) [m] of the same pairs with vertices at other places x (n, 3)."""
    x, distance = np.ascontiguousarray(x, float), np.zeros(len(found.distance))
    for chosen, measure in ((~found.crossing, measure_faces), (found.crossing, measure_edges)):
        distance[chosen] = _distances(x, np.ascontiguousarray(found.vertices[chosen]), measure)
    return distance


def rooms(surfaces: Surfaces, found: Gaps, radius: float) -> np.ndarray:
    """(n,) [m] how far each vertex may move, where all pairs nearer than a radius [m] were found; what is
    inside of a body may go anywhere."""
    least = np.full(len(surfaces.rest), ANYWHERE)
    least[surfaces.vertices[:, 0]] = radius
    _least(found.vertices, found.distance, least)
    return PART * least


class Neighbours(NamedTuple):
    """Pairs that were found within a radius [m] with vertices at x (n, 3)."""

    surfaces: Surfaces
    pairs: Gaps
    radius: float
    x: np.ndarray

    def rooms_at(self, x: np.ndarray) -> np.ndarray | None:
        """(n,) [m] the same with vertices at x (n, 3), without looking for pairs again: others have come
        nearer by no more than twice what any vertex has moved. None where that is too much."""
        own = self.surfaces.vertices[:, 0]
        moved = float(np.sqrt(((x[own] - self.x[own]) ** 2).sum(axis=1).max(initial=0)))
        left = self.radius - 2 * moved
        if left < NARROW * self.radius:
            return None
        now = self.pairs._replace(distance=distances_at(x, self.pairs))
        return rooms(self.surfaces, now, left)


def within_reach(found: Gaps, room: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """(m,) whether pairs can get nearer than their reach (m,) [m] while vertices stay in their rooms (n,)."""
    own = room[found.vertices]
    sides = np.where(found.crossing, own[:, :2].max(axis=1), own[:, 0])
    others = np.where(found.crossing, own[:, 2:].max(axis=1), own[:, 1:].max(axis=1))
    return np.asarray(found.distance - sides - others < reach)
