"""Contacts of sharp features, from vertex-triangle and edge-edge pairs: points, normal and strength.

A vertex has contact with the nearest triangle of each body. All equally near triangles decide whether it is
outside. Edges have contact if they cross, seen along their common normal.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, cross, dot, scale, sub
from supple.collision.broad_phase.hash_grid import ITEM_SIZE, NO_BODY, thread_range
from supple.collision.geometry.closest_point import on_edges, on_triangle
from supple.collision.geometry.primitives import NO_CONTACT_DISTANCE, point
from supple.kernels import Runner, device_function, do, kernel, parallel_for

DISTANCE_TOLERANCE = 1e-6
"""Relative tolerance of equal distances."""

FULL_OPPOSITION = 0.5
"""Projection on n of the summed normals at an edge from which the edge fully opposes another edge."""

MIN_EDGE_SINE = 1e-3
"""Sine of the angle between edges below which they have no common normal."""

DISTANCE, WEIGHTS, NUMBERS = 3, 4, 7
"""Offsets of distance and corner weights in the data of a vertex-triangle pair, after the gap vector, and
size of the data."""


class ContactParameters(NamedTuple):
    """Contact parameters.

    Attributes:
        x: (n, 3) positions [m].
        rest: (n, 3) rest positions [m].
        body: (n,) body of each vertex.
        flat: (bodies,) True for shells, which have no inside.
        free: (t,) True for two-sided triangles.
        thick: (bodies,) body thickness [m].
        triangles: (t, 3) vertices.
        normal: (t, 3) unit normals.
        thickness: Contact thickness [m].
        reach: Largest penetration depth between two bodies [m].
        deepest: Largest penetration depth of edges [m].
        edge: Mean edge length of the surfaces [m].
        clear: Rest distance up to which pairs of one body are excluded [m].
    """

    x: Any
    rest: Any
    body: Any
    flat: Any
    free: Any
    thick: Any
    triangles: Any
    normal: Any
    thickness: Any
    reach: Any
    deepest: Any
    edge: Any
    clear: Any


class PairContacts(NamedTuple):
    """Contacts of all pairs, see `ContactPairs`; inactive pairs have strength 0."""

    vertices: Any
    weights: Any
    normal: Any
    distance: Any
    strength: Any

    @staticmethod
    def allocate(count: int, runner: Runner) -> PairContacts:
        """Allocate device memory for `count` pairs."""
        corners, weights = runner.empty((count, 6), np.int64), runner.empty((count, 6), float)
        distance, strength = (runner.empty((count,), float) for _ in range(2))
        return PairContacts(corners, weights, runner.empty((count, 3), float), distance, strength)


class ClosestPoints(NamedTuple):
    """Work: closest points of vertex-triangle pairs.

    Attributes:
        parameters: Contact parameters.
        vertices: (v, 1) query vertices.
        one, two: (m,) sorted pairs: query vertex and triangle.
        near: (m, NUMBERS) output: gap vector, distance and weights.
        strength: (m,) output: 0.
    """

    parameters: Any
    vertices: Any
    one: Any
    two: Any
    near: Any
    strength: Any


class VertexContacts(NamedTuple):
    """Work: contacts of vertex-triangle pairs, after `ClosestPoints`.

    Attributes:
        parameters, vertices, one, two, near: As in `ClosestPoints`.
        start, incident: Triangles incident to each vertex in CSR layout.
        contacts: Contacts, output.
    """

    parameters: Any
    vertices: Any
    one: Any
    two: Any
    near: Any
    start: Any
    incident: Any
    contacts: Any


class EdgeContacts(NamedTuple):
    """Work: contacts of edge-edge pairs.

    Attributes:
        parameters: Contact parameters.
        edges: (e, 2) edges.
        one, two: (m,) pairs of edges.
        start, incident: Triangles incident to each edge in CSR layout.
        contacts: Contacts, output.
    """

    parameters: Any
    edges: Any
    one: Any
    two: Any
    start: Any
    incident: Any
    contacts: Any


@device_function
def store_contact(contacts, m, n, distance, strength):
    contacts.normal[m, 0], contacts.normal[m, 1], contacts.normal[m, 2] = n
    contacts.distance[m], contacts.strength[m] = distance, strength


@device_function
def store_corner(contacts, m, k, vertex, weight):
    contacts.vertices[m, k], contacts.weights[m, k] = vertex, weight


@device_function
def _summed_normal(normal, start, incident, primitive):
    """Sum of the normals of all triangles incident to a primitive."""
    total = (0.0, 0.0, 0.0)
    for k in range(start[primitive], start[primitive + 1]):
        total = add(total, point(normal, incident[k]))
    return total


@do.of(ClosestPoints)
def _closest_points(work, item):
    x, triangles, near = work.parameters.x, work.parameters.triangles, work.near
    first, last, step = thread_range(len(work.one), item)
    for m in range(first, last, step):
        work.strength[m] = 0.0
        t, p = work.two[m], point(x, work.vertices[work.one[m], 0])
        a, b, c = point(x, triangles[t, 0]), point(x, triangles[t, 1]), point(x, triangles[t, 2])
        u, v, w = on_triangle(p, a, b, c)
        gap = sub(p, add(add(scale(u, a), scale(v, b)), scale(w, c)))
        near[m, 0], near[m, 1], near[m, 2] = gap
        near[m, DISTANCE] = math.sqrt(dot(gap, gap))
        near[m, WEIGHTS], near[m, WEIGHTS + 1], near[m, WEIGHTS + 2] = u, v, w


@device_function
def _body_of(work, m):
    """Body of the triangle of the m-th pair."""
    return work.parameters.body[work.parameters.triangles[work.two[m], 0]]


@do.of(VertexContacts)
def _vertex_contacts(work, item):
    """Process all pairs of a vertex body by body, by the thread of its first pair."""
    one, count = work.one, len(work.one)
    first, last, step = thread_range(count, item)
    for m in range(first, last, step):
        if m == 0 or one[m - 1] != one[m]:
            end = m + 1
            while end < count and one[end] == one[m]:
                end += 1
            v = work.vertices[one[m], 0]
            outward = _summed_normal(work.parameters.normal, work.start, work.incident, v)
            row, body = m, -1
            while row < end:
                next_body = NO_BODY
                for p in range(m, end):
                    if body < _body_of(work, p) < next_body:
                        next_body = _body_of(work, p)
                if next_body == NO_BODY:
                    break
                body = next_body
                _collide_with_body(work, m, end, v, outward, body, row)
                row += 1


@device_function
def _collide_with_body(work, begin, end, v, outward, body, row):
    """Write the contact of vertex v with a body to `row`.

    Pairs begin, ..., end - 1 are those of the vertex; `outward` is the sum of the normals around it.
    """
    g, near = work.parameters, work.near
    least, height = NO_CONTACT_DISTANCE, 0.0
    for p in range(begin, end):
        if _body_of(work, p) == body:
            least = min(least, near[p, DISTANCE])
    for p in range(begin, end):
        if _body_of(work, p) == body and near[p, DISTANCE] <= least * (1.0 + DISTANCE_TOLERANCE):
            height += dot(point(near, p), point(g.normal, work.two[p]))
    own = g.body[v]
    side = -1.0 if height < 0.0 and not g.flat[body] else 1.0
    flat, best, chosen, best_opposes = g.flat[own] or g.flat[body], NO_CONTACT_DISTANCE, -1, False
    for p in range(begin, end):
        if _body_of(work, p) == body:
            opposes = flat or dot(outward, point(g.normal, work.two[p])) < 0.0
            beyond = near[p, DISTANCE]
            if not opposes:
                beyond = NO_CONTACT_DISTANCE if side < 0.0 else beyond * (1.0 + DISTANCE_TOLERANCE)
            if chosen < 0 or beyond < best:
                best, chosen, best_opposes = beyond, p, opposes
    distance, n = near[chosen, DISTANCE], point(g.normal, work.two[chosen])
    if distance > 1e-12 * max(g.thickness, g.reach):
        n = scale(side / distance, point(near, chosen))
    signed = side * distance
    if best_opposes and signed < g.thickness and signed > -(g.thickness if own == body else g.reach):
        for k in range(3):
            store_corner(work.contacts, row, k, v, 1.0 if k == 0 else 0.0)
            vertex = g.triangles[work.two[chosen], k]
            store_corner(work.contacts, row, 3 + k, vertex, -near[chosen, WEIGHTS + k])
        store_contact(work.contacts, row, n, signed, 1.0)


@do.of(EdgeContacts)
def _edge_contacts(work, item):
    first, last, step = thread_range(len(work.one), item)
    for m in range(first, last, step):
        work.contacts.strength[m] = 0.0
        _collide_edge_pair(work, m)


@device_function
def _collide_edge_pair(work, m):
    g, x, one, two = work.parameters, work.parameters.x, work.one[m], work.two[m]
    a, b, c, d = work.edges[one, 0], work.edges[one, 1], work.edges[two, 0], work.edges[two, 1]
    s, t = on_edges(point(x, a), point(x, b), point(x, c), point(x, d))
    inside = 1e-9 < s < 1.0 - 1e-9 and 1e-9 < t < 1.0 - 1e-9
    p, q = sub(point(x, b), point(x, a)), sub(point(x, d), point(x, c))
    n = cross(p, q)
    size = math.sqrt(dot(n, n))
    sine = size / max(math.sqrt(dot(p, p) * dot(q, q)), 1e-300)
    if inside and sine > MIN_EDGE_SINE:
        n = scale(1.0 / max(size, 1e-300), n)
        first_normal = _summed_normal(g.normal, work.start, work.incident, one)
        second_normal = _summed_normal(g.normal, work.start, work.incident, two)
        n = scale(-1.0 if dot(n, sub(second_normal, first_normal)) < 0.0 else 1.0, n)
        gap = dot(n, sub(add(point(x, a), scale(s, p)), add(point(x, c), scale(t, q))))
        flat, own = g.flat[g.body[a]] or g.flat[g.body[c]], g.body[a] == g.body[d]
        side = -1.0 if flat and gap < 0.0 else 1.0
        strength = 16.0 * s * (1.0 - s) * t * (1.0 - t) * sine * sine
        if not flat:
            strength *= min(
                max(min(dot(n, second_normal), -dot(n, first_normal)) / FULL_OPPOSITION, 0.0), 1.0
            )
        gap *= side
        if gap < g.thickness and gap > -(g.thickness if own else g.deepest) and strength > 0.0:
            store_corner(work.contacts, m, 0, a, 1.0 - s)
            store_corner(work.contacts, m, 1, b, s)
            store_corner(work.contacts, m, 2, a, 0.0)
            store_corner(work.contacts, m, 3, a, 0.0)
            store_corner(work.contacts, m, 4, c, t - 1.0)
            store_corner(work.contacts, m, 5, d, -t)
            store_contact(work.contacts, m, scale(side, n), gap, strength)


@kernel
def collide_vertices(team, closest_points, work):
    """Compute all vertex-triangle contacts."""
    parallel_for(team, 0, 0, -(-len(work.one) // ITEM_SIZE), closest_points)
    parallel_for(team, 1, 0, -(-len(work.one) // ITEM_SIZE), work)


@kernel
def collide_edges(team, work):
    """Compute all edge-edge contacts."""
    parallel_for(team, 0, 0, -(-len(work.one) // ITEM_SIZE), work)
