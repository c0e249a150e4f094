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
    x = np.ascontiguousarray(x, float)
    size = float(np.ptp(x, axis=0).max())
    start, triangle = near(x, surfaces.edges, surfaces.triangles, 1e-9 * size, runner)
    edge = np.repeat(np.arange(len(start) - 1), np.diff(start))
    if len(edge) == 0:
        return []
    one, other = surfaces.body[surfaces.edges[edge, 0]], surfaces.body[surfaces.triangles[triangle, 0]]
    pairs = np.sort(np.stack([one, other], axis=1), axis=1)
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
