"""Contacts between surfaces: points, normals and penetration depths.

Opposing triangles have contact over their overlap (`contact.facing`). Sharp features and strongly compressed
surfaces have contact within a quarter of the thickness, as vertex-triangle and edge-edge pairs
(`contact.meeting`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from supple.collision.broad_phase.detector import BroadPhase
from supple.collision.broad_phase.positions import Points
from supple.collision.geometry.surfaces import TriangleIncidence, areas, length, normals_of
from supple.collision.narrow_phase.face_face import TriangleContacts, allocate_polygons, collide_triangles
from supple.collision.narrow_phase.separation import shortest_direction_weights
from supple.collision.narrow_phase.vertex_edge import (
    NUMBERS,
    ClosestPoints,
    ContactParameters,
    EdgeContacts,
    PairContacts,
    VertexContacts,
    collide_edges,
    collide_vertices,
)
from supple.collision.parallel_primitives import compact_contacts
from supple.kernels import HOST, Runner

SHARP_THICKNESS = 0.25
"""Thickness of vertex and edge contacts relative to the contact thickness."""

MAX_EDGE_DEPTH = 10.0
"""Largest penetration depth of edges, relative to the thickness of edge contacts."""


@dataclass(frozen=True, eq=False)
class ContactPairs:
    """Contacts between surfaces.

    Attributes:
        vertices: (m, 6) vertices of both contact points, those of the first point first. Unused slots repeat
            the first vertex with weight 0.
        weights: (m, 6) signed weights, positive for the first point.
        normal: (m, 3) unit normals from the second to the first point, outside of the second surface.
        distance: (m,) distances along the normal [m], negative for penetration.
        thickness: (m,) distance below which the contact exerts a force [m].
        strength: (m,) weights. Vertex and edge contacts: 0 to 1, fading out at the ends of edges. Triangle
            contacts: overlap area relative to the triangle size times the mean edge length.
        keys: (m, 2) identifiers that match contacts of successive steps.
    """

    vertices: np.ndarray
    weights: np.ndarray
    normal: np.ndarray
    distance: np.ndarray
    thickness: np.ndarray
    strength: np.ndarray
    keys: np.ndarray

    @staticmethod
    def of(several: list[ContactPairs]) -> ContactPairs:
        """Concatenate contacts."""
        names = vars(several[0])
        return ContactPairs(*(np.concatenate([vars(each)[name] for each in several]) for name in names))

    @staticmethod
    def that(
        met: PairContacts, thickness: float, pairs: tuple[np.ndarray, np.ndarray], runner: Runner
    ) -> ContactPairs:
        """Select the active contacts of pairs (m,), all with the same thickness [m]."""
        whole, real = compact_contacts(met, *pairs, runner)
        weights, normal, distance, strength = np.split(real, [6, 9, 10], axis=1)
        thick = np.full(len(whole), thickness)
        numbers = distance[:, 0].copy(), thick, strength[:, 0].copy()
        return ContactPairs(whole[:, :6].copy(), weights.copy(), normal.copy(), *numbers, whole[:, 6:].copy())

    def where(self, selected: np.ndarray) -> ContactPairs:
        """Select contacts."""
        return ContactPairs(*(values[selected] for values in vars(self).values()))


class Surfaces:
    """Triangle surfaces of all bodies.

    Attributes:
        triangles: (t, 3) vertices, counterclockwise seen from outside.
        body: (n,) body of each vertex.
        rest: (n, 3) rest positions [m].
        clear: Pairs of one body within this rest distance are never in contact [m].
        flat: (bodies,) True for shells such as cloth, which have no inside and no penetration depth.
        vertices: (v, 1) surface vertices.
        edges: (e, 2) edges.
    """

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
        """Mean edge length at rest [m]."""
        return float(length(np.diff(self.rest[self.edges], axis=1)[:, 0]).mean())

    @cached_property
    def own(self) -> np.ndarray:
        """(v,) surface vertices."""
        return np.ascontiguousarray(self.vertices[:, 0])

    @cached_property
    def free(self) -> np.ndarray:
        """(t,) True for two-sided triangles."""
        return self.flat[self.body[self.triangles[:, 0]]]

    def meetings(
        self,
        x: np.ndarray,
        thickness: float,
        reach: float,
        runner: Runner = HOST,
        known: BroadPhase | None = None,
    ) -> ContactPairs:
        """Find all contacts at given positions; repeated queries return the previous result.

        Args:
            x: (n, 3) positions [m].
            thickness: Largest distance [m].
            reach: Largest penetration depth between two bodies [m].
            runner: Device of the search.
            known: Broad phase with its caches.

        Returns:
            Contacts on the host.
        """
        known, asked = known or BroadPhase(self), (thickness, reach)
        last = known.last
        if last is not None and last[0] == asked and np.array_equal(last[1], x):
            met: ContactPairs = last[2]
            return met
        points = Points.at(np.array(x, float, order="C"))
        met = self.meetings_at(points, *asked, runner, known)
        known.last = asked, points.x, met
        return met

    def meetings_at(
        self, points: Points, thickness: float, reach: float, runner: Runner, known: BroadPhase
    ) -> ContactPairs:
        """Find all contacts at positions in device memory, see `meetings`."""
        given = self._given(points.x, thickness, reach, runner)
        sharp = given._replace(thickness=SHARP_THICKNESS * thickness)
        found = [
            self._of_triangles(given, points, known, runner),
            self._of_vertices(sharp, points, known, runner),
            self._of_edges(sharp, points, known, runner),
        ]
        known.release_grid()
        return ContactPairs.of(found)

    def _given(self, x: np.ndarray, thickness: float, reach: float, runner: Runner) -> ContactParameters:
        """Collect the contact parameters, with triangle normals at x."""
        normal = normals_of(x, self.triangles, runner)
        deepest, clear = min(MAX_EDGE_DEPTH * SHARP_THICKNESS * thickness, reach), float(self.clear)
        of_bodies = self.rest, self.body, self.flat, self.free, self._thick
        lengths = float(thickness), float(reach), float(deepest), self.edge, clear
        return ContactParameters(x, *of_bodies, self.triangles, normal, *lengths)

    def _of_triangles(
        self, g: ContactParameters, points: Points, known: BroadPhase, runner: Runner
    ) -> ContactPairs:
        """Triangle-triangle contacts, without penetrations along the wrong separation direction."""
        pairs = known.triangles(points, max(g.thickness, g.reach), g.normal, runner)
        met = PairContacts.room(len(pairs[0]), runner)
        if len(pairs[0]):
            runner.run(
                collide_triangles,
                1,
                TriangleContacts(g, *pairs, *allocate_polygons(len(pairs[0]), runner), met),
            )
        found = ContactPairs.that(met, g.thickness, pairs, runner)
        first, second = self.body[found.vertices[:, [0, -1]]].T
        deep = np.flatnonzero((found.distance < -g.thickness) & (first != second))
        found.strength[deep] *= shortest_direction_weights(self, points, found.where(deep), known, runner)
        return found.where(found.strength > 0)

    def _of_vertices(
        self, g: ContactParameters, points: Points, known: BroadPhase, runner: Runner
    ) -> ContactPairs:
        """Vertex-triangle contacts; keys identify the vertex and the other body."""
        pairs = known.vertices(points, max(g.thickness, g.reach), runner, g.thickness)
        met, between = PairContacts.room(len(pairs[0]), runner), runner.empty((len(pairs[0]), NUMBERS), float)
        if len(pairs[0]):
            near = g, self.vertices, *pairs, between
            around = VertexContacts(*near, *self._around_vertices, met)
            runner.run(collide_vertices, 2, ClosestPoints(*near, met.strength), around)
        found = ContactPairs.that(met, g.thickness, pairs, runner)
        found.keys[:, 0] = len(self.triangles) + found.vertices[:, 0]
        found.keys[:, 1] = -1 - self.body[found.vertices[:, -1]]
        return found

    def _of_edges(
        self, g: ContactParameters, points: Points, known: BroadPhase, runner: Runner
    ) -> ContactPairs:
        """Edge-edge contacts."""
        pairs = known.edges(points, max(g.thickness, g.deepest), runner, g.thickness)
        met = PairContacts.room(len(pairs[0]), runner)
        if len(pairs[0]):
            runner.run(collide_edges, 1, EdgeContacts(g, self.edges, *pairs, *self._around_edges, met))
        found = ContactPairs.that(met, g.thickness, pairs, runner)
        found.keys[:] += len(self.triangles) + len(self.rest)
        return found

    @cached_property
    def _thick(self) -> np.ndarray:
        """(bodies,) rough body thickness at rest, twice volume over surface area; 0 for shells [m].

        Deeper penetrations would separate toward the opposite side.
        """
        a, b, c = np.moveaxis(self.rest[self.triangles], 1, 0)
        body, count = self.body[self.triangles[:, 0]], len(self.flat)
        sums = np.column_stack([np.bincount(body, axis, count) for axis in a.T])
        middle = sums / np.maximum(np.bincount(body, minlength=count), 1)[:, None]
        a, b, c = (corner - middle[body] for corner in (a, b, c))
        volume = np.bincount(body, (a * np.cross(b, c)).sum(axis=1) / 6, count)
        surface = np.maximum(np.bincount(body, areas(self.rest, self.triangles), count), 1e-300)
        return np.where(self.flat, 0.0, 2 * np.abs(volume) / surface)

    @cached_property
    def _around_vertices(self) -> TriangleIncidence:
        return TriangleIncidence.of(np.ascontiguousarray(self.triangles.T), len(self.rest))

    @cached_property
    def _around_edges(self) -> TriangleIncidence:
        return TriangleIncidence.of(self._of_side.reshape(3, -1), len(self.edges))
