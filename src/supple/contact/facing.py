"""Contact of opposing triangles over their overlap."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, cross, dot, scale, sub
from supple.contact.cells import BLOCK, own_part
from supple.contact.meeting import put_contact
from supple.contact.overlaps import MOST, facing_of, lay_flat, shared
from supple.contact.things import point
from supple.kernels import Runner, do, each_item, kernel, physics

SIZE = 1.6
"""Mean edge length of an isosceles right triangle relative to the square root of its area."""

SQUEEZED = 0.1
"""Largest penetration of a body into itself, relative to the rest distance. Opposite sides of a compressed
part would otherwise count as interpenetrating by the thickness of the part."""


class OfTriangles(NamedTuple):
    """Work: contacts of triangle pairs.

    Attributes:
        given: Contact parameters.
        one, two: (m,) triangles.
        flat: (m, 6, 2) scratch array.
        polygon: (m, 2, MOST, 2) scratch array.
        met: Contacts, output.
    """

    given: Any
    one: Any
    two: Any
    flat: Any
    polygon: Any
    met: Any


@physics
def _weighted(x, met, m):
    """Σ w x of the m-th pair."""
    found = (0.0, 0.0, 0.0)
    for k in range(6):
        found = add(found, scale(met.weights[m, k], point(x, met.vertices[m, k])))
    return found


@physics
def _area(x, triangles, t):
    a = point(x, triangles[t, 0])
    n = cross(sub(point(x, triangles[t, 1]), a), sub(point(x, triangles[t, 2]), a))
    return max(0.5 * math.sqrt(dot(n, n)), 1e-300)


@do.of(OfTriangles)
def _of_triangles(work, place):
    g, met = work.given, work.met
    first, last, step = own_part(len(work.one), place)
    for m in range(first, last, step):
        a, b = work.one[m], work.two[m]
        met.strength[m] = 0.0
        facing, n = facing_of(point(g.normal, a), point(g.normal, b), g.free[a], g.free[b])
        if facing > 0.0:
            lay_flat(g.x, g.triangles, a, b, n, work.flat[m])
            area = facing * shared(work.flat[m], work.polygon[m], met.weights[m])
            if area > 0.0:
                _meet_triangles(g, met, m, a, b, n, area)


@physics
def _meet_triangles(g, met, m, a, b, n, area):
    for k in range(6):
        met.vertices[m, k] = g.triangles[a, k] if k < 3 else g.triangles[b, k - 3]
    distance, gap = dot(n, _weighted(g.x, met, m)), _weighted(g.rest, met, m)
    side, rest = -1.0 if g.free[a] and g.free[b] and distance < 0.0 else 1.0, math.sqrt(dot(gap, gap))
    one, two = g.body[g.triangles[a, 0]], g.body[g.triangles[b, 0]]
    distance *= side
    kept = distance < g.thickness and distance >= -min(g.reach, 0.5 * (g.thick[one] + g.thick[two]))
    if one == two:
        kept = kept and rest > g.clear and distance >= -SQUEEZED * rest
    if kept:
        size = SIZE * math.sqrt(min(_area(g.x, g.triangles, a), _area(g.x, g.triangles, b)))
        put_contact(met, m, scale(side, n), distance, area / (g.edge * size))


@kernel
def meet_triangles(team, work):
    """Compute the contacts of all triangle pairs."""
    each_item(team, 0, 0, -(-len(work.one) // BLOCK), work)


def polygons(count: int, runner: Runner) -> tuple[np.ndarray, np.ndarray]:
    """Allocate scratch arrays `flat` and `polygon` for `count` triangle pairs."""
    return runner.empty((count, 6, 2), float), runner.empty((count, 2, MOST, 2), float)
