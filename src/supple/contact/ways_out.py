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
from supple.kernels import Runner, do, each_item, kernel, physics

if TYPE_CHECKING:
    from supple.contact.candidates import Candidates
    from supple.contact.pairs import Meetings, Surfaces
    from supple.contact.points import Points

SHORT = 0.5, 0.8
"""Distances of both points to the nearest faces of the other body, together and in parts of the depth, from
which on a way out begins to count, and wholly does."""

FAR_SIDE = -0.5
"""Cosine of the angle between a way out and the normals of faces below which these are on the far side of the
body: nothing shall leave there, however thin it is."""


class WayOut(NamedTuple):
    """Of two points that have passed each other, by weights (m, 6) of stencils (m, 6), least (m, 2) [m] gets
    how far each is from the nearest face of the body of the other, where that is less than it is already; not
    from those on the far side of where they are to go, along the normal (m, 3) and against it. there:
    triangles in a table; body (n,) of vertices; flat (bodies,): without an inside."""

    stencils: Any
    weights: Any
    normal: Any
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
def _from_triangle(there, t, p, outward, least):
    """The distance of a point from a triangle that is not on the far side, where that is less."""
    corners, x = there.things, there.x
    a, b, c = point(x, corners[t, 0]), point(x, corners[t, 1]), point(x, corners[t, 2])
    if _near_side(a, b, c, outward):
        u, v, w = on_triangle(p, a, b, c)
        gap = sub(p, add(add(scale(u, a), scale(v, b)), scale(w, c)))
        least = min(least, math.sqrt(dot(gap, gap)))
    return least


@physics
def _leave(work, m, side):
    """Let one of the m-th two points leave the body of the other."""
    table, p, sign = work.there.table, (0.0, 0.0, 0.0), 1.0 - 2.0 * side
    for k in range(3 * side, 3 * side + 3):
        p = add(p, scale(sign * work.weights[m, k], point(work.there.x, work.stencils[m, k])))
    outward, inside = scale(sign, point(work.normal, m)), work.body[work.stencils[m, 3 - 3 * side]]
    least = work.least[m, side]
    low, high = cells_around(work.there, p, least)
    for i in range(low[0], high[0] + 1):
        for j in range(low[1], high[1] + 1):
            for k in range(low[2], high[2] + 1):
                at, key = place_of(i, j, k, len(table.count)), key_of(i, j, k)
                for entry in range(table.begin[at], table.begin[at] + table.count[at]):
                    t = table.thing[entry]
                    if table.key[entry] == key and work.body[work.there.things[t, 0]] == inside:
                        least = _from_triangle(work.there, t, p, outward, least)
    work.least[m, side] = least


@do.of(WayOut)
def _way_out(work, place):
    first, last, step = own_part(2 * len(work.stencils), place)
    for k in range(first, last, step):
        m, side = k // 2, k % 2
        if not work.flat[work.body[work.stencils[m, 3 - 3 * side]]]:
            _leave(work, m, side)


@kernel
def find_ways_out(team, work):
    each_item(team, 0, 0, -(-2 * len(work.stencils) // BLOCK), work)


def short(
    surfaces: Surfaces, points: Points, passed: Meetings, known: Candidates, runner: Runner
) -> np.ndarray:
    """(m,) from 1, where triangles of two bodies part along the shortest way out, to 0, where another face
    is much nearer; with vertices at points."""
    count, depth = len(passed.distance), -passed.distance
    there = known.table(points, runner) if count else None
    if there is None:
        return np.ones(count)
    least, bodies = np.column_stack([depth, depth]), (surfaces.body, surfaces.flat)
    pairs = passed.vertices, passed.weights, passed.normal
    runner.run(find_ways_out, 1, WayOut(*pairs, there, *bodies, least))
    runner.pull(least)
    begin, whole = SHORT
    return np.clip((least.sum(axis=1) / depth - begin) / (whole - begin), 0.0, 1.0)
