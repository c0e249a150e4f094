"""Passage of points through obstacles on straight paths, by sphere tracing.

A path is straight in the frame of the shape, which may move. A point advances by a fraction of its distance,
evaluates the distance again, and so on [Hart 1996, sphere tracing]; close to the surface, by a fraction of
the thickness. A path that enters a shape passes through it if its end is below the tangent plane at the entry
by more than half of the thickness, or has a normal that points away from the one at the entry: a projection
onto the closest point need not return to the side from which the path came.
"""

from __future__ import annotations

import math

from supple.algebra.matrix3 import dot, sub
from supple.collision.obstacles.signed_distance import distance_in_frame
from supple.kernels import device_function

DISTANCE_FRACTION, THICKNESS_FRACTION, MAX_STEPS = 0.9, 0.25, 1000
"""Step relative to the distance, which may be 10 % too large far from a mesh; smallest step relative to half
of the thickness; and maximum number of steps, after which a path counts as free."""

CONTACT_DEPTH = 0.1
"""Depth of a starting point in contact, relative to half of the thickness. Paths from deeper points do not
count, because their side at the start is undefined."""


@device_function
def to_frame(frames, k, first, x):
    """World point x in the frame at column `first` of row k: columns of a rotation, then the origin."""
    p, q, r = x[0] - frames[k, first + 9], x[1] - frames[k, first + 10], x[2] - frames[k, first + 11]
    return (
        frames[k, first] * p + frames[k, first + 1] * q + frames[k, first + 2] * r,
        frames[k, first + 3] * p + frames[k, first + 4] * q + frames[k, first + 5] * r,
        frames[k, first + 6] * p + frames[k, first + 7] * q + frames[k, first + 8] * r,
    )


@device_function
def from_frame(frames, k, first, x):
    """World point of x in the frame at column `first` of row k."""
    return (
        frames[k, first] * x[0]
        + frames[k, first + 3] * x[1]
        + frames[k, first + 6] * x[2]
        + frames[k, first + 9],
        frames[k, first + 1] * x[0]
        + frames[k, first + 4] * x[1]
        + frames[k, first + 7] * x[2]
        + frames[k, first + 10],
        frames[k, first + 2] * x[0]
        + frames[k, first + 5] * x[1]
        + frames[k, first + 8] * x[2]
        + frames[k, first + 11],
    )


@device_function
def passage_fraction(shapes, k, p, q, half_thickness):
    """Fraction of a path at which it enters a shape that it passes through.

    Args:
        shapes: Obstacle shapes.
        k: Shape, not inverted.
        p: Start in the frame of the shape [m], a 3-tuple.
        q: End in the frame of the shape [m].
        half_thickness: Half of the thickness of its thin parts [m].

    Returns:
        Fraction of the last sampled point outside; 1 if the path does not pass through the shape.
    """
    step = sub(q, p)
    length = math.sqrt(dot(step, step))
    if not length > half_thickness:
        return 1.0
    d, nx, ny, nz = distance_in_frame(shapes, k, p[0], p[1], p[2])
    if d < -CONTACT_DEPTH * half_thickness or DISTANCE_FRACTION * d >= length:
        return 1.0
    end, mx, my, mz = distance_in_frame(shapes, k, q[0], q[1], q[2])
    least = THICKNESS_FRACTION * half_thickness
    outside, s, count = 0.0, max(DISTANCE_FRACTION * d, least), 0
    while s < length and count < MAX_STEPS:
        part = s / length
        d, ax, ay, az = distance_in_frame(
            shapes, k, p[0] + part * step[0], p[1] + part * step[1], p[2] + part * step[2]
        )
        if d < 0.0:
            break
        outside, nx, ny, nz = part, ax, ay, az
        s += max(DISTANCE_FRACTION * d, least)
        count += 1
    entered = (s < length and count < MAX_STEPS) or end < 0.0
    height = (1.0 - outside) * (nx * step[0] + ny * step[1] + nz * step[2])
    passes = height < -half_thickness or nx * mx + ny * my + nz * mz < 0.0
    return outside if entered and passes else 1.0
