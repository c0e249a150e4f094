"""Bounded moves of vertices in the sweeps of PBNG, with rejection of non-finite ones."""

from __future__ import annotations

from supple.algebra.matrix3 import dot, select3
from supple.contact.state.trust_region import clamp_to_bounds
from supple.kernels import all_lanes, device_function, is_leader, load, scatter, store, where
from supple.problem.dirichlet_rows import restore_prescribed

MAX_SQUARE_LENGTH = 1e30
"""Largest |u|² [m²] of an accepted move: a thousand times the largest length, 1e12 m."""


@device_function
def move(vertices, batch, u, before, after, rejected):
    """Move the vertices of a batch from `before` to `after` within their trust region.

    A non-finite move is replaced by `before` and counted in rejected (batch, batches, 1, lanes). Constrained
    coordinates do not change.
    """
    after = clamp_to_bounds(vertices.step_bounds, vertices.own, batch, after)
    finite = dot(after, after) < MAX_SQUARE_LENGTH
    accepted = select3(finite, after, before)
    if is_leader(batch):
        scatter(
            u, vertices.own, batch, 0, restore_prescribed(vertices.constrained, vertices.own, batch, accepted)
        )
        if not all_lanes(finite):
            store(rejected, batch, 0, load(rejected, batch, 0) + where(finite, 0.0 * after[0], 1.0))
