"""How far vertices may go along straight lines before surfaces touch.

Without the mean of its corners' steps, which changes no distance, a pair can lose no more of its distance in
a part t of a step than t times the longest steps of both sides. So it may go on by that, look again, and so
forth: additive continuous collision detection [Li et al. 2021, Codimensional IPC, section 5].
"""

from __future__ import annotations

import math

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact.closest import between, on_edges, on_triangle
from supple.contact.gaps import Gaps
from supple.contact.grid import point
from supple.kernels import kernel, physics

LEFT = 0.1
"""Part of what a pair may lose of its distance that is left of it."""

OF_DISTANCE, ROUNDS = 0.9, 100
"""How much of a distance is used up at once, and how often at most."""


@physics
def _length(v):
    return math.sqrt(dot(v, v))


@physics
def _apart(a, b, c, d, crossing):
    if crossing:
        s, t = on_edges(a, b, c, d)
        return _length(sub(between(s, a, b), between(t, c, d)))
    u, v, w = on_triangle(a, b, c, d)
    return _length(sub(a, add(add(scale(u, b), scale(v, c)), scale(w, d))))


@kernel
def _first(x, step, stencils, crossing, least, whole):
    """The part of a step, at most `whole`, after which the first pair is at the end of what it may lose."""
    for m in range(len(stencils)):
        a, b = point(x, stencils[m, 0]), point(x, stencils[m, 1])
        c, d = point(x, stencils[m, 2]), point(x, stencils[m, 3])
        p, q = point(step, stencils[m, 0]), point(step, stencils[m, 1])
        r, s = point(step, stencils[m, 2]), point(step, stencils[m, 3])
        mean = scale(0.25, add(add(p, q), add(r, s)))
        p, q, r, s = sub(p, mean), sub(q, mean), sub(r, mean), sub(s, mean)
        if crossing[m]:
            speed = max(_length(p), _length(q)) + max(_length(r), _length(s))
        else:
            speed = _length(p) + max(_length(q), max(_length(r), _length(s)))
        gap = _apart(a, b, c, d, crossing[m]) - least[m]
        if gap <= 0.0:
            whole = 0.0
        if speed * whole <= (1.0 - LEFT) * gap:
            continue
        t, end = 0.0, LEFT * gap
        for _ in range(ROUNDS):
            further = t + OF_DISTANCE * gap / speed
            if further >= whole:
                t = whole
                break
            gap = (
                _apart(
                    add(a, scale(further, p)), add(b, scale(further, q)),
                    add(c, scale(further, r)), add(d, scale(further, s)), crossing[m],
                )
                - least[m]
            )  # fmt: skip
            if gap < end:
                break
            t = further
        whole = t
    return whole


def first_touch(x: np.ndarray, step: np.ndarray, pairs: Gaps, least: np.ndarray, whole: float = 1.0) -> float:
    """Which part of a step (n, 3) [m] vertices at x (n, 3) may take, at most `whole`, so that no pair loses
    more than nine tenths of what its distance is above the least one (m,) [m] that it may have."""
    arrays = (np.ascontiguousarray(array, float) for array in (x, step))
    stencils = np.ascontiguousarray(pairs.vertices, np.int64)
    return float(_first(*arrays, stencils, pairs.crossing, least, whole))
