"""Proximity pairs, their distances, and conservative displacement bounds of all vertices.

Surfaces cannot intersect before a vertex-triangle or edge-edge distance is used up. If every vertex stays in
a ball around its position with radius γ < ½ times the smallest distance of its incident pairs, no path of the
vertices causes an intersection [OGC, Chen et al. 2025].
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.collision.broad_phase.cached_broad_phase import Candidates, bound_approach
from supple.collision.broad_phase.hash_grid import ITEM_SIZE, thread_range
from supple.collision.broad_phase.positions import Points
from supple.collision.geometry.closest_point import between, on_edges, on_triangle
from supple.collision.geometry.primitives import point
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.kernels import HOST, Runner, device_function, do, kernel, parallel_for

SAFE_FRACTION = 0.4
"""γ: two vertices use up at most 0.8 of a distance; the rest is a margin for rounding."""

UNLIMITED_RADIUS = 1e15
"""Radius of an unlimited displacement bound [m]."""


class ProximityPairs(NamedTuple):
    """Proximity pairs without common vertices.

    Attributes:
        vertices: (m, 4) a vertex and the corners of a triangle, or the ends of two edges.
        crossing: (m,) True for edge-edge pairs.
        distance: (m,) distances [m].
        keys: (m,) sorted unique identifiers.
    """

    vertices: np.ndarray
    crossing: np.ndarray
    distance: np.ndarray
    keys: np.ndarray

    def where(self, chosen: np.ndarray) -> ProximityPairs:
        """Select pairs."""
        return ProximityPairs(*(values[chosen] for values in self))


@kernel
def measure_faces(x, stencils, weights, distance):
    """Compute signed weights of the closest points and distances of vertex-triangle pairs."""
    for m in range(len(stencils)):
        p, a = point(x, stencils[m, 0]), point(x, stencils[m, 1])
        b, c = point(x, stencils[m, 2]), point(x, stencils[m, 3])
        u, v, w = on_triangle(p, a, b, c)
        gap = sub(p, add(add(scale(u, a), scale(v, b)), scale(w, c)))
        weights[m, 0], weights[m, 1], weights[m, 2], weights[m, 3] = 1.0, -u, -v, -w
        distance[m] = dot(gap, gap) ** 0.5


@kernel
def measure_edges(x, stencils, weights, distance):
    """Compute signed weights of the closest points and distances of edge-edge pairs."""
    for m in range(len(stencils)):
        a, b = point(x, stencils[m, 0]), point(x, stencils[m, 1])
        c, d = point(x, stencils[m, 2]), point(x, stencils[m, 3])
        s, t = on_edges(a, b, c, d)
        gap = sub(between(s, a, b), between(t, c, d))
        weights[m, 0], weights[m, 1], weights[m, 2], weights[m, 3] = 1.0 - s, s, t - 1.0, -t
        distance[m] = dot(gap, gap) ** 0.5


@device_function
def pair_distance(a, b, c, d, crossing):
    """Distance of a vertex a from a triangle, or of two edges if `crossing` [m]."""
    if crossing:
        s, t = on_edges(a, b, c, d)
        gap = sub(between(s, a, b), between(t, c, d))
    else:
        u, v, w = on_triangle(a, b, c, d)
        gap = sub(a, add(add(scale(u, b), scale(v, c)), scale(w, d)))
    return math.sqrt(dot(gap, gap))


class MeasureDistances(NamedTuple):
    """Work: distance (m,) of pairs (m, 4) with vertices at x (n, 3) [m]."""

    x: Any
    stencils: Any
    crossing: Any
    distance: Any


@do.of(MeasureDistances)
def _measure_distances(work, item):
    x, stencils = work.x, work.stencils
    first, last, step = thread_range(len(stencils), item)
    for m in range(first, last, step):
        a, b = point(x, stencils[m, 0]), point(x, stencils[m, 1])
        c, d = point(x, stencils[m, 2]), point(x, stencils[m, 3])
        work.distance[m] = pair_distance(a, b, c, d, work.crossing[m])


@kernel
def measure_all(team, work):
    """Compute the distances of all pairs."""
    parallel_for(team, 0, 0, -(-len(work.stencils) // ITEM_SIZE), work)


@kernel
def _min_distances(stencils, distance, min_distance):
    """Minimum distance over the pairs of each vertex."""
    for m in range(len(stencils)):
        for k in range(4):
            i = stencils[m, k]
            min_distance[i] = min(min_distance[i], distance[m])


def proximity_pairs(
    surfaces: Surfaces,
    x: np.ndarray,
    radius: float,
    runner: Runner = HOST,
    candidates: Candidates | None = None,
) -> ProximityPairs:
    """Find all proximity pairs within a radius.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) positions [m].
        radius: Largest distance [m].
        runner: Device of the search.
        candidates: Cache of the broad phase, which includes pairs with small rest distances.

    Returns:
        Pairs in order of their keys.
    """
    candidates = candidates or Candidates(surfaces)
    points = Points.at(np.array(x, float, order="C"))  # a copy, since the candidate cache keeps it
    which, triangle = candidates.vertices(points, radius, runner)
    one, other = candidates.edges(points, radius, runner)
    for numbers in (which, triangle, one, other):
        runner.download(numbers)
    which, triangle, one, other = (each.astype(np.int64) for each in (which, triangle, one, other))
    faces = np.column_stack([surfaces.vertices[which], surfaces.triangles[triangle]])
    edges = np.column_stack([surfaces.edges[one], surfaces.edges[other]])
    first = len(surfaces.vertices) * len(surfaces.triangles)
    keys = [which * len(surfaces.triangles) + triangle, first + one * len(surfaces.edges) + other]
    crossing = np.repeat([False, True], [len(faces), len(edges)])
    pairs = ProximityPairs(
        np.concatenate([faces, edges]), crossing, np.zeros(len(crossing)), np.concatenate(keys)
    )
    return pairs._replace(distance=distances_at(points.x, pairs, runner))


def distances_at(x: np.ndarray, pairs: ProximityPairs, runner: Runner = HOST) -> np.ndarray:
    """Compute the distances of pairs at given positions.

    Args:
        x: (n, 3) positions [m]; must not be modified later.
        pairs: Proximity pairs.
        runner: Device of the computation.

    Returns:
        (m,) distances [m].
    """
    distance = runner.zeros((len(pairs.distance),), np.float64)
    stencils = np.ascontiguousarray(pairs.vertices, np.int64)
    work = MeasureDistances(np.ascontiguousarray(x, float), stencils, pairs.crossing, distance)
    runner.run(measure_all, 1, work)
    runner.download(distance)
    return distance


def displacement_bounds(surfaces: Surfaces, pairs: ProximityPairs, radius: float) -> np.ndarray:
    """Conservative displacement bounds from all proximity pairs within a radius.

    Args:
        surfaces: Surfaces of all bodies.
        pairs: Proximity pairs.
        radius: Search radius of the pairs [m].

    Returns:
        (n,) radii [m]; `UNLIMITED_RADIUS` for interior vertices.
    """
    min_distance = np.full(len(surfaces.rest), UNLIMITED_RADIUS)
    min_distance[surfaces.vertices[:, 0]] = radius
    _min_distances(pairs.vertices, pairs.distance, min_distance)
    return SAFE_FRACTION * min_distance


class Neighbors(NamedTuple):
    """Proximity pairs with the positions of their search.

    Attributes:
        surfaces: Surfaces of all bodies.
        pairs: Proximity pairs.
        reach: (m,) barrier distance of each pair [m].
        radius: Radius within which the pairs are complete [m].
        x: (n, 3) positions of the pairs [m].
    """

    surfaces: Surfaces
    pairs: ProximityPairs
    reach: np.ndarray
    radius: float
    x: np.ndarray

    def at(self, x: np.ndarray, min_radius: float, runner: Runner = HOST) -> Neighbors | None:
        """Update the distances of the pairs for new positions, without a new search.

        Args:
            x: (n, 3) positions [m].
            min_radius: Smallest admissible radius of completeness [m].
            runner: Device of the computation.

        Returns:
            Pairs at x, complete within the radius less the approach of bodies; None below `min_radius`.
        """
        remaining = self.radius - bound_approach(
            self.surfaces, self.x, x, self.radius, self.radius - min_radius
        )
        if remaining < min_radius:
            return None
        pairs = self.pairs._replace(distance=distances_at(x, self.pairs, runner))
        return Neighbors(self.surfaces, pairs, self.reach, remaining, x)

    def displacement_bounds(self) -> np.ndarray:
        """(n,) conservative displacement bounds [m]."""
        return displacement_bounds(self.surfaces, self.pairs, self.radius)


@kernel
def _mark_reachable(stencils, crossing, distance, bound, reach, reachable):
    for m in range(len(stencils)):
        first = 2 if crossing[m] else 1
        first_bound, second_bound = bound[stencils[m, 0]], bound[stencils[m, 3]]
        for k in range(1, first):
            first_bound = max(first_bound, bound[stencils[m, k]])
        for k in range(first, 3):
            second_bound = max(second_bound, bound[stencils[m, k]])
        reachable[m] = distance[m] - first_bound - second_bound < reach[m]


def within_reach(pairs: ProximityPairs, bound: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """(m,) True for pairs that can get closer than `reach` (m,) [m] within displacement bounds (n,) [m]."""
    reachable = np.zeros(len(pairs.distance), bool)
    _mark_reachable(pairs.vertices, pairs.crossing, pairs.distance, bound, reach, reachable)
    return reachable
