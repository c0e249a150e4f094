"""Time of impact of vertices on straight paths, by additive continuous collision detection.

Subtraction of the mean step of the four corners changes no distance. In a fraction t of the step, the
distance of a pair then decreases by at most t times the sum of the longest steps on both sides. The pair
advances by that bound, evaluates the distance again, and so on [ACCD, Li et al. 2021, Codimensional IPC,
section 5].
"""

from __future__ import annotations

import math

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.collision.geometry.primitives import point
from supple.collision.narrow_phase.proximity_bounds import ProximityPairs, pair_distance
from supple.kernels import device_function, kernel

REMAINING_FRACTION = 0.1
"""Remaining fraction of the distance above the minimum separation."""

DISTANCE_FRACTION, MAX_STEPS = 0.9, 100
"""Fraction of the distance used in one advancement, and maximum number of advancements."""


@device_function
def _length(v):
    return math.sqrt(dot(v, v))


@device_function
def _time_of_impact(x, step, stencil, crossing, min_separation, limit):
    """Time of impact of a pair, at most `limit`."""
    a, b, c, d = point(x, stencil[0]), point(x, stencil[1]), point(x, stencil[2]), point(x, stencil[3])
    p, q = point(step, stencil[0]), point(step, stencil[1])
    r, s = point(step, stencil[2]), point(step, stencil[3])
    mean = scale(0.25, add(add(p, q), add(r, s)))
    p, q, r, s = sub(p, mean), sub(q, mean), sub(r, mean), sub(s, mean)
    if crossing:
        speed = max(_length(p), _length(q)) + max(_length(r), _length(s))
    else:
        speed = _length(p) + max(_length(q), max(_length(r), _length(s)))
    gap = pair_distance(a, b, c, d, crossing) - min_separation
    if gap <= 0.0 and speed > 0.0:
        return 0.0
    if speed * limit <= (1.0 - REMAINING_FRACTION) * gap or speed == 0.0:
        return limit
    t, end = 0.0, REMAINING_FRACTION * gap
    for _ in range(MAX_STEPS):
        next_time = t + DISTANCE_FRACTION * gap / speed
        if next_time >= limit:
            return limit
        gap = (
            pair_distance(
                add(a, scale(next_time, p)), add(b, scale(next_time, q)),
                add(c, scale(next_time, r)), add(d, scale(next_time, s)), crossing,
            )
            - min_separation
        )  # fmt: skip
        if gap < end:
            break
        t = next_time
    return t


@kernel
def _earliest(x, step, stencils, crossing, min_separation, limit):
    """Earliest time of impact of all pairs, at most `limit`."""
    for m in range(len(stencils)):
        limit = _time_of_impact(x, step, stencils[m], crossing[m], min_separation[m], limit)
    return limit


@kernel
def _times(x, step, stencils, crossing, min_separation, times):
    for m in range(len(stencils)):
        times[m] = _time_of_impact(x, step, stencils[m], crossing[m], min_separation[m], 1.0)


def earliest_impact(
    x: np.ndarray, step: np.ndarray, pairs: ProximityPairs, min_separation: np.ndarray, limit: float = 1.0
) -> float:
    """Earliest time of impact of all pairs.

    Each pair keeps at least a tenth of its distance above the minimum separation.

    Args:
        x: (n, 3) initial positions [m].
        step: (n, 3) steps [m].
        pairs: Proximity pairs.
        min_separation: (m,) minimum separation of each pair [m].
        limit: Upper limit.

    Returns:
        Fraction of the step.
    """
    arrays = (np.ascontiguousarray(array, float) for array in (x, step))
    stencils = np.ascontiguousarray(pairs.vertices, np.int64)
    return float(_earliest(*arrays, stencils, pairs.crossing, min_separation, limit))


def impact_times(
    corners: np.ndarray, steps: np.ndarray, crossing: np.ndarray, min_separation: np.ndarray
) -> np.ndarray:
    """Time of impact of each pair, independent of all others.

    Args:
        corners: (m, 4, 3) initial corners [m].
        steps: (m, 4, 3) steps [m].
        crossing: (m,) True for edge-edge pairs.
        min_separation: (m,) minimum separation of each pair [m].

    Returns:
        (m,) fractions of the step.
    """
    x, step = (np.ascontiguousarray(array.reshape(-1, 3), float) for array in (corners, steps))
    times = np.ones(len(corners))
    _times(x, step, np.arange(len(x)).reshape(-1, 4), crossing, min_separation, times)
    return times
