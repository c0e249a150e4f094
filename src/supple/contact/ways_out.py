"""Whether triangles that have passed each other would part the way that they see each other.

Where corners of two blocks overlap, their sides face each other as well as top and bottom do, each seen
through what the other pair has passed. The shortest way out is the right one: what one of two points has to
go to a side of the other body, and the other one to a side of the first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, cross, dot, scale, sub
from supple.contact.cells import BLOCK, cells_around, key_of, own_part, place_of
from supple.contact.closest import on_triangle
from supple.contact.things import point
from supple.contact.weights import weighted
from supple.kernels import Runner, do, each_item, kernel, physics

if TYPE_CHECKING:
    from supple.contact.candidates import Candidates
    from supple.contact.pairs import Meetings, Surfaces

SHORT = 0.5, 0.8
"""Distances of both points to the nearest faces of the other body, together and in parts of the depth, from
which on a way out begins to count, and wholly does."""

FAR_SIDE = -0.5
"""Cosine of the angle between a way out and the normals of faces below which these are on the far side of the
body: nothing shall leave there, however thin it is."""


class WayOut(NamedTuple):
    """least (m,) [m] gets the distance of points (m, 3) from the nearest face of the body `inside` (m,) of
    which they are, where that is less than it is already, and not on the far side of where they want to go,
    outward (m, 3). there: triangles in a table; body (n,) of vertices; flat (bodies,): without an inside."""

    points: Any
    inside: Any
    outward: Any
    there: Any
    body: Any
    flat: Any
    least: Any


@physics
def _near_side(a, b, c, outward):
    """Whether a triangle is not on the far side."""
    n = cross(sub(b, a), sub(c, a))
    return dot(outward, n) > FAR_SIDE * max(math.sqrt(dot(n, n)), 1e-300)


@physics
def _look_at(work, m, t):
    """Go to a triangle, where that is nearer."""
    there, p = work.there, point(work.points, m)
    corners = there.things
    own = work.body[corners[t, 0]]
    if own == work.inside[m] and not work.flat[own]:
        a, b, c = (
            point(there.x, corners[t, 0]),
            point(there.x, corners[t, 1]),
            point(there.x, corners[t, 2]),
        )
        if _near_side(a, b, c, point(work.outward, m)):
            u, v, w = on_triangle(p, a, b, c)
            gap = sub(p, add(add(scale(u, a), scale(v, b)), scale(w, c)))
            work.least[m] = min(work.least[m], math.sqrt(dot(gap, gap)))


@do.of(WayOut)
def _way_out(work, place):
    table = work.there.table
    first, last, step = own_part(len(work.points), place)
    for m in range(first, last, step):
        low, high = cells_around(work.there, point(work.points, m))
        for i in range(low[0], high[0] + 1):
            for j in range(low[1], high[1] + 1):
                for k in range(low[2], high[2] + 1):
                    at, key = place_of(i, j, k, len(table.count)), key_of(i, j, k)
                    for entry in range(table.begin[at], table.begin[at] + table.count[at]):
                        if table.key[entry] == key:
                            _look_at(work, m, table.thing[entry])


@kernel
def find_ways_out(team, work):
    each_item(team, 0, 0, -(-len(work.points) // BLOCK), work)


def short(
    surfaces: Surfaces, x: np.ndarray, passed: Meetings, known: Candidates, runner: Runner
) -> np.ndarray:
    """(m,) from 1, where triangles of two bodies part along the shortest way out, to 0, where another face
    is much nearer; with vertices at x (n, 3)."""
    count, depth = len(passed.distance), -passed.distance
    there = known.table(x, float(depth.max()), runner) if count else None
    if there is None:
        return np.ones(count)
    stencils, weights = passed.vertices, passed.weights
    points = np.concatenate(
        [weighted(x, stencils[:, :3], weights[:, :3]), weighted(x, stencils[:, 3:], -weights[:, 3:])]
    )
    inside = surfaces.body[np.concatenate([stencils[:, -1], stencils[:, 0]])]
    outward, least = np.concatenate([passed.normal, -passed.normal]), np.tile(depth, 2)
    runner.run(find_ways_out, 1, WayOut(points, inside, outward, there, surfaces.body, surfaces.flat, least))
    runner.pull(least)
    begin, whole = SHORT
    return np.clip(((least[:count] + least[count:]) / depth - begin) / (whole - begin), 0.0, 1.0)
