"""Intersections of surfaces: edges that cross triangles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.collision.broad_phase.search import near
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.kernels import HOST, Runner
from supple.support.text import pluralize


@dataclass(frozen=True)
class Crossing:
    """Edge-triangle intersections of two bodies or within one body.

    Attributes:
        bodies: Indices of both bodies.
        count: Number of edge-triangle intersections.
        location: Location of one of them [m].
        depth: Largest penetration depth of a vertex [m], 0 if no vertex is inside or the depth is unknown.
    """

    bodies: tuple[int, int]
    count: int
    location: tuple[float, float, float]
    depth: float

    def sentence(self, names: list[str]) -> str:
        """Describe the intersection for error messages.

        Args:
            names: Names of all bodies.
        """
        one, other = (names[k] for k in self.bodies)
        subject = f"{one!r} intersects itself" if one == other else f"{one!r} and {other!r} intersect"
        deep = f", up to {self.depth:.3g} m deep" if self.depth > 0 else ""
        at = ", ".join(f"{value:.4g}" for value in self.location)
        return f"{subject}: {pluralize(self.count, 'edge')} through triangles{deep}, for example at ({at})"


MAX_DEPTH = 2.0
"""Largest penetration depth of the search, in mean edge lengths."""


def find_crossings(surfaces: Surfaces, x: np.ndarray, runner: Runner = HOST) -> list[Crossing]:
    """Find intersections of surfaces, grouped by pairs of bodies.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) positions [m].
        runner: Device of the search.

    Returns:
        One `Crossing` for each pair of bodies that intersect.
    """
    edge, triangle = _edges_through_triangles(x, surfaces.edges, surfaces.triangles, runner)
    if len(edge) == 0:
        return []
    pairs = _body_pairs(surfaces, surfaces.edges[edge], surfaces.triangles[triangle])
    contacts = surfaces.contact_pairs(x, 0.0, MAX_DEPTH * surfaces.edge, runner)
    contact_bodies = np.sort(surfaces.body[contacts.vertices[:, [0, -1]]], axis=1)
    intersections = []
    for pair in np.unique(pairs, axis=0):
        chosen = np.flatnonzero((pairs == pair).all(axis=1))
        at = x[surfaces.edges[edge[chosen[0]]]].mean(axis=0)
        depths = contacts.distance[(contact_bodies == pair).all(axis=1)]
        a, b = map(int, pair)
        location = float(at[0]), float(at[1]), float(at[2])
        intersections.append(
            Crossing((a, b), len(chosen), location, float(max(0.0, -depths.min(initial=0.0))))
        )
    return intersections


def any_pair_crosses(surfaces: Surfaces, x: np.ndarray, pairs: np.ndarray, runner: Runner = HOST) -> bool:
    """True if the surfaces of any of the given pairs of bodies intersect.

    Only edges and triangles in the overlap of the bounding boxes of a pair are searched.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) positions [m].
        pairs: (m, 2) bodies.
        runner: Device of the search.
    """
    edges, triangles = (
        _in_overlaps(surfaces, x, each, pairs) for each in (surfaces.edges, surfaces.triangles)
    )
    if len(edges) == 0 or len(triangles) == 0:
        return False
    edge, triangle = _edges_through_triangles(x, edges, triangles, runner)
    crossing = _body_pairs(surfaces, edges[edge], triangles[triangle])
    candidates = {(min(pair), max(pair)) for pair in pairs.tolist()}
    return not candidates.isdisjoint(map(tuple, np.unique(crossing, axis=0).tolist()))


def _edges_through_triangles(
    x: np.ndarray, edges: np.ndarray, triangles: np.ndarray, runner: Runner
) -> tuple[np.ndarray, np.ndarray]:
    """Indices (m,) of edges and of the triangles that they cross."""
    x = np.ascontiguousarray(x, float)
    start, triangle = near(x, edges, triangles, 1e-9 * float(np.ptp(x, axis=0).max()), runner)
    return np.repeat(np.arange(len(start) - 1), np.diff(start)), triangle


def _body_pairs(surfaces: Surfaces, edges: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(m, 2) bodies of edges (m, 2) and triangles (m, 3), the smaller index first."""
    return np.sort(np.stack([surfaces.body[edges[:, 0]], surfaces.body[triangles[:, 0]]], axis=1), axis=1)


def _in_overlaps(surfaces: Surfaces, x: np.ndarray, primitives: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Primitives (m, corners) of the bodies of a pair whose boxes reach into the overlap of both bodies."""
    body = surfaces.body[primitives[:, 0]]
    chosen = np.zeros(len(primitives), bool)
    involved = np.flatnonzero(np.isin(body, pairs))
    corners = x[primitives[involved]]
    low, high, body = corners.min(axis=1), corners.max(axis=1), body[involved]
    for one, other in pairs:
        first, second = body == one, body == other
        if first.any() and second.any():
            bottom = np.maximum(low[first].min(axis=0), low[second].min(axis=0))
            top = np.minimum(high[first].max(axis=0), high[second].max(axis=0))
            inside = ((low <= top) & (high >= bottom)).all(axis=1)
            chosen[involved[(first | second) & inside]] = True
    return np.ascontiguousarray(primitives[chosen])
