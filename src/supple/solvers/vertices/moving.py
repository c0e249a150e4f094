"""Bounded moves of vertices; non-finite moves are rejected."""

from __future__ import annotations

from supple.algebra.matrix3 import dot, select3
from supple.kernels import all_lanes, leads, load, physics, scatter, select, store
from supple.problem.balls import in_ball
from supple.problem.held import put_back

FARTHEST = 1e30
"""Largest |u|² [m²] of an accepted move: a thousand times the largest length, 1e12 m."""


@physics
def move(vertices, batch, u, before, after, rejected):
    """Move the vertices of a batch from `before` to `after` within their trust region.

    A non-finite move is replaced by `before` and counted in rejected (copies, batches, 1, lanes). Constrained
    coordinates do not change.
    """
    after = in_ball(vertices.balls, vertices.own, batch, after)
    finite = dot(after, after) < FARTHEST
    kept = select3(finite, after, before)
    if leads(batch):
        scatter(u, vertices.own, batch, 0, put_back(vertices.held, vertices.own, batch, kept))
        if not all_lanes(finite):
            store(rejected, batch, 0, load(rejected, batch, 0) + select(finite, 0.0 * after[0], 1.0))
