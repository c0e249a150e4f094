"""How far vertices may go along straight lines before surfaces touch.

Without the mean of its corners' steps, which changes no distance, a pair can lose no more of its distance in
a part t of a step than t times the longest steps of both sides. So it may go on by that, look again, and so
forth: additive continuous collision detection [Li et al. 2021, Codimensional IPC, section 5].
"""

from __future__ import annotations

import math

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact.gaps import Gaps, apart
from supple.contact.things import point
from supple.kernels import kernel, physics

LEFT = 0.1
"""Part of what a pair may lose of its distance that is left of it."""

OF_DISTANCE, ROUNDS = 0.9, 100
"""How much of a distance is used up at once, and how often at most."""


@physics
def _length(v):
    return math.sqrt(dot(v, v))


@physics
def _part(x, step, stencil, crossing, least, whole):
    """The part of a step, at most `whole`, after which a pair is at the end of what it may lose."""
    a, b, c, d = point(x, stencil[0]), point(x, stencil[1]), point(x, stencil[2]), point(x, stencil[3])
    p, q = point(step, stencil[0]), point(step, stencil[1])
    r, s = point(step, stencil[2]), point(step, stencil[3])
    mean = scale(0.25, add(add(p, q), add(r, s)))
    p, q, r, s = sub(p, mean), sub(q, mean), sub(r, mean), sub(s, mean)
    if crossing:
        speed = max(_length(p), _length(q)) + max(_length(r), _length(s))
    else:
        speed = _length(p) + max(_length(q), max(_length(r), _length(s)))
    gap = apart(a, b, c, d, crossing) - least
    if gap <= 0.0 and speed > 0.0:
        return 0.0
    if speed * whole <= (1.0 - LEFT) * gap or speed == 0.0:
        return whole
    t, end = 0.0, LEFT * gap
    for _ in range(ROUNDS):
        further = t + OF_DISTANCE * gap / speed
        if further >= whole:
            return whole
        gap = (
            apart(
                add(a, scale(further, p)), add(b, scale(further, q)),
                add(c, scale(further, r)), add(d, scale(further, s)), crossing,
            )
            - least
        )  # fmt: skip
        if gap < end:
            break
        t = further
    return t


@kernel
def _first(x, step, stencils, crossing, least, whole):
    """The part of a step, at most `whole`, after which the first pair is at the end of what it may lose."""
    for m in range(len(stencils)):
        whole = _part(x, step, stencils[m], crossing[m], least[m], whole)
    return whole


@kernel
def _times(x, step, stencils, crossing, least, times):
    for m in range(len(stencils)):
        times[m] = _part(x, step, stencils[m], crossing[m], least[m], 1.0)


def first_touch(x: np.ndarray, step: np.ndarray, pairs: Gaps, least: np.ndarray, whole: float = 1.0) -> float:
    """Which part of a step (n, 3) [m] vertices at x (n, 3) may take, at most `whole`, so that no pair loses
    more than nine tenths of what its distance is above the least one (m,) [m] that it may have."""
    arrays = (np.ascontiguousarray(array, float) for array in (x, step))
    stencils = np.ascontiguousarray(pairs.vertices, np.int64)
    return float(_first(*arrays, stencils, pairs.crossing, least, whole))


def touch_times(
    corners: np.ndarray, steps: np.ndarray, crossing: np.ndarray, least: np.ndarray
) -> np.ndarray:
    """(m,) the same for each pair alone, with corners (m, 4, 3) [m] and their steps."""
    x, step = (np.ascontiguousarray(array.reshape(-1, 3), float) for array in (corners, steps))
    times = np.ones(len(corners))
    _times(x, step, np.arange(len(x)).reshape(-1, 4), crossing, least, times)
    return times
