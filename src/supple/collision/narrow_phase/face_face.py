"""Contact of opposing triangles over their overlap, projected along their common normal.

Barycentric weights of both triangles are linear over the overlap polygon, so its area and centroid suffice
for an exact integral. A uniform pressure then passes the contact patch test for any two meshes (Puso and
Laursen 2004 integrate over the same polygons).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, cross, dot, scale, sub
from supple.collision.broad_phase.hash_grid import ITEM_SIZE, thread_range
from supple.collision.geometry.primitives import OPPOSITION_COSINES, point
from supple.collision.narrow_phase.vertex_edge import store_contact
from supple.kernels import Runner, device_function, do, kernel, parallel_for

MIN_OVERLAP_AREA = 1e-9
"""Overlap area relative to the smaller triangle below which the centroid is dominated by rounding."""

MAX_CORNERS = 9
"""Corner capacity of an overlap polygon, more than sufficient."""


@device_function
def _side(px, py, qx, qy, rx, ry):
    """Twice the signed area of p, q and r, positive if r is on the left."""
    return (qx - px) * (ry - py) - (qy - py) * (rx - px)


@device_function
def _clip(polygon, this, count, px, py, qx, qy, sense):
    """Clip polygon[this] to the left of line p q, into the other buffer; returns the corner count."""
    other, clipped_count = 1 - this, 0
    for k in range(count):
        ax, ay = polygon[this, k, 0], polygon[this, k, 1]
        n = k + 1 if k + 1 < count else 0
        bx, by = polygon[this, n, 0], polygon[this, n, 1]
        a, b = sense * _side(px, py, qx, qy, ax, ay), sense * _side(px, py, qx, qy, bx, by)
        if a >= 0.0:
            polygon[other, clipped_count, 0], polygon[other, clipped_count, 1] = ax, ay
            clipped_count += 1
        if (a >= 0.0) != (b >= 0.0):
            t = a / (a - b)
            polygon[other, clipped_count, 0], polygon[other, clipped_count, 1] = (
                ax + t * (bx - ax),
                ay + t * (by - ay),
            )
            clipped_count += 1
    return clipped_count


@device_function
def _weights(flat, first, x, y):
    """Barycentric weights of a point in the triangle at rows first, ..., first + 2 of flat (6, 2)."""
    ax, ay = flat[first, 0], flat[first, 1]
    bx, by = flat[first + 1, 0], flat[first + 1, 1]
    cx, cy = flat[first + 2, 0], flat[first + 2, 1]
    area = _side(ax, ay, bx, by, cx, cy)
    u, v = _side(bx, by, cx, cy, x, y) / area, _side(cx, cy, ax, ay, x, y) / area
    return u, v, 1.0 - u - v


@device_function
def overlap(flat, polygon, weights):
    """Overlap of two triangles in a plane.

    Args:
        flat: (6, 2) corners of both triangles.
        polygon: (2, MOST, 2) scratch array.
        weights: (6,) output: weights of the corners at the centroid, negative for the second triangle.

    Returns:
        Overlap area, 0 if it is negligible.
    """
    one = _side(flat[0, 0], flat[0, 1], flat[1, 0], flat[1, 1], flat[2, 0], flat[2, 1])
    other = _side(flat[3, 0], flat[3, 1], flat[4, 0], flat[4, 1], flat[5, 0], flat[5, 1])
    if one == 0.0 or other == 0.0:
        return 0.0
    for k in range(3):
        polygon[0, k, 0], polygon[0, k, 1] = flat[k, 0], flat[k, 1]
    this, count, sense = 0, 3, 1.0 if other > 0.0 else -1.0
    for k in range(3):
        n = 3 + (k + 1 if k < 2 else 0)
        count = _clip(polygon, this, count, flat[3 + k, 0], flat[3 + k, 1], flat[n, 0], flat[n, 1], sense)
        this = 1 - this
    total, x, y = 0.0, 0.0, 0.0
    px, py = polygon[this, 0, 0], polygon[this, 0, 1]
    for k in range(1, count - 1):
        ax, ay = polygon[this, k, 0], polygon[this, k, 1]
        bx, by = polygon[this, k + 1, 0], polygon[this, k + 1, 1]
        part = _side(px, py, ax, ay, bx, by)
        total += part
        x += part * (px + ax + bx) / 3.0
        y += part * (py + ay + by) / 3.0
    if abs(total) <= MIN_OVERLAP_AREA * min(abs(one), abs(other)):
        return 0.0
    x, y = x / total, y / total
    u, v, w = _weights(flat, 0, x, y)
    weights[0], weights[1], weights[2] = u, v, w
    u, v, w = _weights(flat, 3, x, y)
    weights[3], weights[4], weights[5] = -u, -v, -w
    return 0.5 * abs(total)


@device_function
def _across(n):
    """Unit vector perpendicular to a unit vector, from its smallest component."""
    a, b, c = abs(n[0]), abs(n[1]), abs(n[2])
    axis = (0.0, 0.0, 1.0)
    if a <= b and a <= c:
        axis = (1.0, 0.0, 0.0)
    elif b <= c:
        axis = (0.0, 1.0, 0.0)
    perpendicular = cross(n, axis)
    return scale(1.0 / math.sqrt(dot(perpendicular, perpendicular)), perpendicular)


@device_function
def opposition_weight(one, other, first, second):
    """Opposition of two triangles, and their common normal.

    Args:
        one, other: Unit normals of the first and second triangle.
        first, second: Two-sided flags of the first and second triangle.

    Returns:
        Weight from 0 to 1, and unit normal from the second to the first triangle.
    """
    begin, full = OPPOSITION_COSINES
    cosine = -dot(one, other)
    turned = -1.0 if cosine < 0.0 and (first or second) else 1.0
    n = sub(scale(turned if second else 1.0, other), scale(1.0 if second else turned, one))
    n = scale(1.0 / math.sqrt(max(dot(n, n), 1e-300)), n)
    return min(max((turned * cosine - begin) / (full - begin), 0.0), 1.0), n


@device_function
def project_corners(x, triangles, one, other, n, flat):
    """Project the corners of two triangles along n to flat (6, 2), the first corner at the origin."""
    across, origin = _across(n), point(x, triangles[one, 0])
    along = cross(n, across)
    for k in range(6):
        corner = sub(point(x, triangles[one, k] if k < 3 else triangles[other, k - 3]), origin)
        flat[k, 0], flat[k, 1] = dot(corner, across), dot(corner, along)


EDGE_PER_AREA_ROOT = 1.6
"""Mean edge length of an isosceles right triangle relative to the square root of its area."""

MAX_SELF_DEPTH = 0.1
"""Largest penetration of a body into itself, relative to the rest distance. Opposite sides of a compressed
part would otherwise count as interpenetrating by the thickness of the part."""


class TriangleContacts(NamedTuple):
    """Work: contacts of triangle pairs.

    Attributes:
        parameters: Contact parameters.
        one, two: (m,) triangles.
        flat: (m, 6, 2) scratch array.
        polygon: (m, 2, MOST, 2) scratch array.
        contacts: Contacts, output.
    """

    parameters: Any
    one: Any
    two: Any
    flat: Any
    polygon: Any
    contacts: Any


@device_function
def _weighted_sum(x, contacts, m):
    """Σ w x of the m-th pair."""
    total = (0.0, 0.0, 0.0)
    for k in range(6):
        total = add(total, scale(contacts.weights[m, k], point(x, contacts.vertices[m, k])))
    return total


@device_function
def _area(x, triangles, t):
    a = point(x, triangles[t, 0])
    n = cross(sub(point(x, triangles[t, 1]), a), sub(point(x, triangles[t, 2]), a))
    return max(0.5 * math.sqrt(dot(n, n)), 1e-300)


@do.of(TriangleContacts)
def _triangle_contacts(work, item):
    g, contacts = work.parameters, work.contacts
    first, last, step = thread_range(len(work.one), item)
    for m in range(first, last, step):
        a, b = work.one[m], work.two[m]
        contacts.strength[m] = 0.0
        opposition, n = opposition_weight(point(g.normal, a), point(g.normal, b), g.free[a], g.free[b])
        if opposition > 0.0:
            project_corners(g.x, g.triangles, a, b, n, work.flat[m])
            area = opposition * overlap(work.flat[m], work.polygon[m], contacts.weights[m])
            if area > 0.0:
                _collide_triangle_pair(g, contacts, m, a, b, n, area)


@device_function
def _collide_triangle_pair(g, contacts, m, a, b, n, area):
    for k in range(6):
        contacts.vertices[m, k] = g.triangles[a, k] if k < 3 else g.triangles[b, k - 3]
    distance, gap = dot(n, _weighted_sum(g.x, contacts, m)), _weighted_sum(g.rest, contacts, m)
    side, rest = -1.0 if g.free[a] and g.free[b] and distance < 0.0 else 1.0, math.sqrt(dot(gap, gap))
    one, two = g.body[g.triangles[a, 0]], g.body[g.triangles[b, 0]]
    distance *= side
    is_active = distance < g.thickness and distance >= -min(g.reach, 0.5 * (g.thick[one] + g.thick[two]))
    if one == two:
        is_active = is_active and rest > g.clear and distance >= -MAX_SELF_DEPTH * rest
    if is_active:
        size = EDGE_PER_AREA_ROOT * math.sqrt(min(_area(g.x, g.triangles, a), _area(g.x, g.triangles, b)))
        store_contact(contacts, m, scale(side, n), distance, area / (g.edge * size))


@kernel
def collide_triangles(team, work):
    """Compute the contacts of all triangle pairs."""
    parallel_for(team, 0, 0, -(-len(work.one) // ITEM_SIZE), work)


def allocate_polygons(count: int, runner: Runner) -> tuple[np.ndarray, np.ndarray]:
    """Allocate scratch arrays `flat` and `polygon` for `count` triangle pairs."""
    return runner.empty((count, 6, 2), float), runner.empty((count, 2, MAX_CORNERS, 2), float)
