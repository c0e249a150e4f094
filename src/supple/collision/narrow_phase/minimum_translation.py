"""Minimum translation test for interpenetrating triangles.

Where corners of two blocks overlap, lateral faces oppose each other as well as top and bottom. The direction
of smallest translation is correct. It is measured from each contact point to the nearest face of the other
body.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, cross, dot, scale, sub
from supple.collision.broad_phase.hash_grid import ITEM_SIZE, bucket_of, cells_around, key_of, thread_range
from supple.collision.geometry.closest_point import on_triangle
from supple.collision.geometry.primitives import point
from supple.kernels import Runner, device_function, do, kernel, parallel_for

if TYPE_CHECKING:
    from supple.collision.broad_phase.broad_phase import BroadPhase
    from supple.collision.broad_phase.positions import Points
    from supple.collision.narrow_phase.contact_pairs import ContactPairs, Surfaces

SEPARATION_RATIO = 0.5, 0.8
"""Sum of both points' distances to the nearest faces of the other body, relative to the depth, at which a
direction starts to count, and counts fully."""

MIN_NORMAL_COSINE = -0.5
"""Cosine between separation direction and face normal below which a face is on the opposite side of the
body. Bodies never separate toward it, however thin they are."""


class SeparationDistances(NamedTuple):
    """Work: distances from interpenetrating contact points to the other body.

    Attributes:
        stencils: (m, 6) vertices of both points.
        weights: (m, 6) signed weights.
        normal: (m, 3) separation directions of the first point, opposite for the second.
        grid: Hash grid of all triangles.
        body: (n,) body of each vertex.
        flat: (bodies,) True for shells.
        least: (m, 2) in: upper limits, out: distances of both points to the nearest face of the other body,
            without faces on the opposite side [m].
    """

    stencils: Any
    weights: Any
    normal: Any
    grid: Any
    body: Any
    flat: Any
    least: Any


@device_function
def _near_side(a, b, c, outward):
    """True if a triangle is not on the opposite side."""
    n = cross(sub(b, a), sub(c, a))
    return dot(outward, n) > MIN_NORMAL_COSINE * max(math.sqrt(dot(n, n)), 1e-300)


@device_function
def _from_triangle(grid, t, p, outward, least):
    """Minimum of `least` and the distance from p to a triangle, ignored on the opposite side [m]."""
    corners, x = grid.primitives, grid.x
    a, b, c = point(x, corners[t, 0]), point(x, corners[t, 1]), point(x, corners[t, 2])
    if _near_side(a, b, c, outward):
        u, v, w = on_triangle(p, a, b, c)
        gap = sub(p, add(add(scale(u, a), scale(v, b)), scale(w, c)))
        least = min(least, math.sqrt(dot(gap, gap)))
    return least


@device_function
def _update_separation(work, m, side):
    """Distance from one contact point to the body of the other; updates `least`."""
    table, p, sign = work.grid.table, (0.0, 0.0, 0.0), 1.0 - 2.0 * side
    for k in range(3 * side, 3 * side + 3):
        p = add(p, scale(sign * work.weights[m, k], point(work.grid.x, work.stencils[m, k])))
    outward, inside = scale(sign, point(work.normal, m)), work.body[work.stencils[m, 3 - 3 * side]]
    least = work.least[m, side]
    low, high = cells_around(work.grid, p, least)
    for i in range(low[0], high[0] + 1):
        for j in range(low[1], high[1] + 1):
            for k in range(low[2], high[2] + 1):
                at, key = bucket_of(i, j, k, len(table.count)), key_of(i, j, k)
                for entry in range(table.begin[at], table.begin[at] + table.count[at]):
                    t = table.primitive[entry]
                    if table.key[entry] == key and work.body[work.grid.primitives[t, 0]] == inside:
                        least = _from_triangle(work.grid, t, p, outward, least)
    work.least[m, side] = least


@do.of(SeparationDistances)
def _separation_distances(work, item):
    first, last, step = thread_range(2 * len(work.stencils), item)
    for k in range(first, last, step):
        m, side = k // 2, k % 2
        if not work.flat[work.body[work.stencils[m, 3 - 3 * side]]]:
            _update_separation(work, m, side)


@kernel
def measure_separations(team, work):
    """Compute the distances of all contact points."""
    parallel_for(team, 0, 0, -(-2 * len(work.stencils) // ITEM_SIZE), work)


def shortest_direction_weights(
    surfaces: Surfaces, points: Points, penetrating: ContactPairs, broad_phase: BroadPhase, runner: Runner
) -> np.ndarray:
    """Weights of penetrating contacts by the minimum translation test.

    Args:
        surfaces: Surfaces of all bodies.
        points: Positions of the vertices.
        penetrating: Penetrating triangle contacts.
        broad_phase: Broad phase with its hash grid.
        runner: Device of the computation.

    Returns:
        (m,) 1 along the shortest separation direction, down to 0 if another face is much nearer.
    """
    count, depth = len(penetrating.distance), -penetrating.distance
    grid = broad_phase.table(points, runner) if count else None
    if grid is None:
        return np.ones(count)
    least, bodies = np.column_stack([depth, depth]), (surfaces.body, surfaces.flat)
    pairs = penetrating.vertices, penetrating.weights, penetrating.normal
    runner.run(measure_separations, 1, SeparationDistances(*pairs, grid, *bodies, least))
    runner.download(least)
    begin, full = SEPARATION_RATIO
    return np.clip((least.sum(axis=1) / depth - begin) / (full - begin), 0.0, 1.0)
