"""Contacts between surfaces: points, normals and penetration depths, compacted to the active ones.

Opposing triangles have contact over their overlap (`face_face.py`). Sharp features and strongly compressed
surfaces have contact within a quarter of the thickness, as vertex-triangle and edge-edge pairs
(`vertex_edge.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from supple.collision.broad_phase.broad_phase import BroadPhase
from supple.collision.broad_phase.hash_grid import ITEM_SIZE, thread_range
from supple.collision.broad_phase.positions import Points
from supple.collision.geometry.normals import TriangleIncidence, areas, length, normals_of
from supple.collision.narrow_phase.face_face import TriangleContacts, allocate_polygons, collide_triangles
from supple.collision.narrow_phase.minimum_translation import shortest_direction_weights
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
from supple.collision.prefix_sums import PREFIX_SUM_PHASES, PrefixSum, prefix_sum
from supple.kernels import (
    HOST,
    Runner,
    do,
    kernel,
    parallel_for,
)

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
    def of(parts: list[ContactPairs]) -> ContactPairs:
        """Concatenate contacts."""
        names = vars(parts[0])
        return ContactPairs(*(np.concatenate([vars(each)[name] for each in parts]) for name in names))

    @staticmethod
    def from_pairs(
        contacts: PairContacts, thickness: float, pairs: tuple[np.ndarray, np.ndarray], runner: Runner
    ) -> ContactPairs:
        """Select the active contacts of pairs (m,), all with the same thickness [m]."""
        integers, reals = compact_contacts(contacts, *pairs, runner)
        weights, normal, distance, strength = np.split(reals, [6, 9, 10], axis=1)
        thick = np.full(len(integers), thickness)
        numbers = distance[:, 0].copy(), thick, strength[:, 0].copy()
        return ContactPairs(
            integers[:, :6].copy(), weights.copy(), normal.copy(), *numbers, integers[:, 6:].copy()
        )

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

    def contact_pairs(
        self,
        x: np.ndarray,
        thickness: float,
        reach: float,
        runner: Runner = HOST,
        broad_phase: BroadPhase | None = None,
    ) -> ContactPairs:
        """Find all contacts at given positions; repeated queries return the previous result.

        Args:
            x: (n, 3) positions [m].
            thickness: Largest distance [m].
            reach: Largest penetration depth between two bodies [m].
            runner: Device of the search.
            broad_phase: Broad phase with its caches.

        Returns:
            Contacts on the host.
        """
        broad_phase, key = broad_phase or BroadPhase(self), (thickness, reach)
        last = broad_phase.last
        if last is not None and last[0] == key and np.array_equal(last[1], x):
            contacts: ContactPairs = last[2]
            return contacts
        points = Points.at(np.array(x, float, order="C"))
        contacts = self.contact_pairs_at(points, *key, runner, broad_phase)
        broad_phase.last = key, points.x, contacts
        return contacts

    def contact_pairs_at(
        self, points: Points, thickness: float, reach: float, runner: Runner, broad_phase: BroadPhase
    ) -> ContactPairs:
        """Find all contacts at positions in device memory, see `contact_pairs`."""
        parameters = self._parameters(points.x, thickness, reach, runner)
        sharp = parameters._replace(thickness=SHARP_THICKNESS * thickness)
        contact_lists = [
            self._triangle_contacts(parameters, points, broad_phase, runner),
            self._vertex_contacts(sharp, points, broad_phase, runner),
            self._edge_contacts(sharp, points, broad_phase, runner),
        ]
        broad_phase.release_grid()
        return ContactPairs.of(contact_lists)

    def _parameters(self, x: np.ndarray, thickness: float, reach: float, runner: Runner) -> ContactParameters:
        """Collect the contact parameters, with triangle normals at x."""
        normal = normals_of(x, self.triangles, runner)
        deepest, clear = min(MAX_EDGE_DEPTH * SHARP_THICKNESS * thickness, reach), float(self.clear)
        of_bodies = self.rest, self.body, self.flat, self.free, self._body_thickness
        lengths = float(thickness), float(reach), float(deepest), self.edge, clear
        return ContactParameters(x, *of_bodies, self.triangles, normal, *lengths)

    def _triangle_contacts(
        self, g: ContactParameters, points: Points, broad_phase: BroadPhase, runner: Runner
    ) -> ContactPairs:
        """Triangle-triangle contacts, without penetrations along the wrong separation direction."""
        pairs = broad_phase.triangles(points, max(g.thickness, g.reach), g.normal, runner)
        contacts = PairContacts.allocate(len(pairs[0]), runner)
        if len(pairs[0]):
            scratch = allocate_polygons(len(pairs[0]), runner)
            runner.run(collide_triangles, 1, TriangleContacts(g, *pairs, *scratch, contacts))
        active = ContactPairs.from_pairs(contacts, g.thickness, pairs, runner)
        first, second = self.body[active.vertices[:, [0, -1]]].T
        deep = np.flatnonzero((active.distance < -g.thickness) & (first != second))
        active.strength[deep] *= shortest_direction_weights(
            self, points, active.where(deep), broad_phase, runner
        )
        return active.where(active.strength > 0)

    def _vertex_contacts(
        self, g: ContactParameters, points: Points, broad_phase: BroadPhase, runner: Runner
    ) -> ContactPairs:
        """Vertex-triangle contacts; keys identify the vertex and the other body."""
        pairs = broad_phase.vertices(points, max(g.thickness, g.reach), runner, g.thickness)
        contacts = PairContacts.allocate(len(pairs[0]), runner)
        between = runner.empty((len(pairs[0]), NUMBERS), float)
        if len(pairs[0]):
            near = g, self.vertices, *pairs, between
            work = VertexContacts(*near, *self._vertex_incidence, contacts)
            runner.run(collide_vertices, 2, ClosestPoints(*near, contacts.strength), work)
        active = ContactPairs.from_pairs(contacts, g.thickness, pairs, runner)
        active.keys[:, 0] = len(self.triangles) + active.vertices[:, 0]
        active.keys[:, 1] = -1 - self.body[active.vertices[:, -1]]
        return active

    def _edge_contacts(
        self, g: ContactParameters, points: Points, broad_phase: BroadPhase, runner: Runner
    ) -> ContactPairs:
        """Edge-edge contacts."""
        pairs = broad_phase.edges(points, max(g.thickness, g.deepest), runner, g.thickness)
        contacts = PairContacts.allocate(len(pairs[0]), runner)
        if len(pairs[0]):
            runner.run(collide_edges, 1, EdgeContacts(g, self.edges, *pairs, *self._edge_incidence, contacts))
        active = ContactPairs.from_pairs(contacts, g.thickness, pairs, runner)
        active.keys[:] += len(self.triangles) + len(self.rest)
        return active

    @cached_property
    def _body_thickness(self) -> np.ndarray:
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
    def _vertex_incidence(self) -> TriangleIncidence:
        return TriangleIncidence.of(np.ascontiguousarray(self.triangles.T), len(self.rest))

    @cached_property
    def _edge_incidence(self) -> TriangleIncidence:
        return TriangleIncidence.of(self._of_side.reshape(3, -1), len(self.edges))


CONTACT_INTEGERS, CONTACT_REALS = 8, 11
"""Numbers per contact: integers (six vertices, two primitives) and reals (six weights, normal, distance,
strength)."""


class CountActive(NamedTuple):
    """Work: count (m,) = 1 for pairs with strength (m,) > 0, otherwise 0."""

    strength: Any
    count: Any


class CompactContacts(NamedTuple):
    """Work: copy active contacts to compact arrays.

    Attributes:
        contacts: Contacts of all pairs.
        one, two: (m,) primitives of the pairs.
        count: (m,) 1 for active contacts.
        start: (m + 1,) output index of each pair.
        integers: (k, WHOLE) integers of the active contacts.
        reals: (k, REAL) reals of the active contacts.
    """

    contacts: Any
    one: Any
    two: Any
    count: Any
    start: Any
    integers: Any
    reals: Any


@do.of(CountActive)
def _count(work, item):
    first, last, step = thread_range(len(work.count), item)
    for m in range(first, last, step):
        work.count[m] = 1 if work.strength[m] > 0.0 else 0


@do.of(CompactContacts)
def _compact_contacts(work, item):
    contacts = work.contacts
    first, last, step = thread_range(len(work.count), item)
    for m in range(first, last, step):
        if work.count[m] > 0:
            at = work.start[m]
            for k in range(6):
                work.integers[at, k], work.reals[at, k] = contacts.vertices[m, k], contacts.weights[m, k]
            work.integers[at, 6], work.integers[at, 7] = work.one[m], work.two[m]
            for axis in range(3):
                work.reals[at, 6 + axis] = contacts.normal[m, axis]
            work.reals[at, 9], work.reals[at, 10] = contacts.distance[m], contacts.strength[m]


@kernel
def count_active(team, work, starts):
    """Count active contacts and compute their output indices."""
    parallel_for(team, 0, 0, -(-len(work.count) // ITEM_SIZE), work)
    prefix_sum(team, 1, starts)


@kernel
def compact_active(team, work):
    """Copy active contacts to compact arrays."""
    parallel_for(team, 0, 0, -(-len(work.count) // ITEM_SIZE), work)


def compact_contacts(
    contacts: PairContacts, one: np.ndarray, two: np.ndarray, runner: Runner
) -> tuple[np.ndarray, np.ndarray]:
    """Compact the active contacts of pairs.

    Args:
        contacts: Contacts of all pairs.
        one: (m,) first primitive of each pair.
        two: (m,) second primitive of each pair.
        runner: Device of the pairs.

    Returns:
        Integers (k, WHOLE) and reals (k, REAL) of the active contacts, on the host.
    """
    if len(one) == 0:
        return np.zeros((0, CONTACT_INTEGERS), np.int64), np.zeros((0, CONTACT_REALS))
    count = runner.empty((len(one),), np.int64)
    starts = PrefixSum.of(count, runner)
    runner.run(count_active, 1 + PREFIX_SUM_PHASES, CountActive(contacts.strength, count), starts)
    runner.download(starts.start, len(one))
    active_count = int(starts.start[-1])
    integers, reals = (
        runner.empty((active_count, CONTACT_INTEGERS), np.int64),
        runner.empty((active_count, CONTACT_REALS), float),
    )
    if active_count:
        runner.run(
            compact_active, 1, CompactContacts(contacts, one, two, count, starts.start, integers, reals)
        )
        runner.download(integers)
        runner.download(reals)
    return integers, reals
