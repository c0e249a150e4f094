"""How much nearer to each other surfaces can have come, body by body.

What a body does as a whole brings none of its own parts nearer to each other, and nearer to another body by
no more than the two move against each other; the rest is what its vertices do beside that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from supple.kernels import kernel

if TYPE_CHECKING:
    from supple.contact.pairs import Surfaces


@kernel
def _most(x, step, own, body, margin, count, mean, away, lower, upper):
    """count, mean, away, lower and upper (bodies, ...) are where it works."""
    for v in own:
        b = body[v]
        count[b] += 1
        for axis in range(3):
            mean[b, axis] += step[v, axis]
            here, there = x[v, axis], x[v, axis] + step[v, axis]
            lower[b, axis] = min(lower[b, axis], min(here, there) - 0.5 * margin)
            upper[b, axis] = max(upper[b, axis], max(here, there) + 0.5 * margin)
    for b in range(len(count)):
        for axis in range(3):
            mean[b, axis] /= max(count[b], 1)
    for v in own:
        b, square = body[v], 0.0
        for axis in range(3):
            square += (step[v, axis] - mean[b, axis]) ** 2
        away[b] = max(away[b], math.sqrt(square))
    between = 0.0
    for a in range(len(count)):
        for b in range(a + 1, len(count)):
            square, meet = 0.0, True
            for axis in range(3):
                square += (mean[a, axis] - mean[b, axis]) ** 2
                meet = meet and lower[a, axis] <= upper[b, axis] and lower[b, axis] <= upper[a, axis]
            if meet:
                between = max(between, math.sqrt(square) + away[a] + away[b])
    return between


def approaches(
    surfaces: Surfaces, x: np.ndarray, step: np.ndarray, margin: float
) -> tuple[np.ndarray, float]:
    """At most so much [m] nearer to each other are surfaces within each body (b,), and of two, after a step
    (n, 3) [m] from x (n, 3), where they are within a margin [m] of each other before or after it."""
    bodies = len(surfaces.flat)
    x, step = (np.ascontiguousarray(array, float) for array in (x, step))
    away = np.zeros(bodies)
    work = np.zeros(bodies, np.int64), np.zeros((bodies, 3)), away
    ends = np.full((bodies, 3), math.inf), np.full((bodies, 3), -math.inf)
    between = _most(x, step, surfaces.own, surfaces.body, margin, *work, *ends)
    return 2 * away, float(between)


def approach(surfaces: Surfaces, x: np.ndarray, step: np.ndarray, margin: float) -> float:
    """The largest of all."""
    within, between = approaches(surfaces, x, step, margin)
    return max(float(within.max(initial=0)), between)


@kernel
def _moments(x, y, own, body, count, a, b, moments):
    """a, b (bodies, 3) get the middles of bodies at x and y, moments (bodies, 9) Σ (x - a) (y - b)ᵀ; count
    (bodies,) is where it works."""
    for v in own:
        count[body[v]] += 1
        for axis in range(3):
            a[body[v], axis] += x[v, axis]
            b[body[v], axis] += y[v, axis]
    for k in range(len(count)):
        for axis in range(3):
            a[k, axis] /= max(count[k], 1)
            b[k, axis] /= max(count[k], 1)
    for v in own:
        k = body[v]
        for i in range(3):
            for j in range(3):
                moments[k, 3 * i + j] += (x[v, i] - a[k, i]) * (y[v, j] - b[k, j])


@kernel
def _farthest(x, y, own, body, a, b, turn, most):
    """most (bodies,): how far vertices are at most from where they would be in a body that turns (bodies, 3,
    3) only."""
    for v in own:
        k, square = body[v], 0.0
        for j in range(3):
            off = y[v, j] - b[k, j]
            for i in range(3):
                off -= (x[v, i] - a[k, i]) * turn[k, i, j]
            square += off * off
        most[k] = max(most[k], math.sqrt(square))


def stretch(surfaces: Surfaces, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(b,) at most so much [m] nearer to each other are surfaces within a body with vertices at y (n, 3)
    instead of x (n, 3): twice what they are off the turned body that fits best [Kabsch 1976]."""
    bodies, own, body = len(surfaces.flat), surfaces.own, surfaces.body
    x, y = (np.ascontiguousarray(points, float) for points in (x, y))
    a, b, moments = np.zeros((bodies, 3)), np.zeros((bodies, 3)), np.zeros((bodies, 9))
    _moments(x, y, own, body, np.zeros(bodies, np.int64), a, b, moments)
    U, _, Vt = np.linalg.svd(moments.reshape(-1, 3, 3))
    U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    most = np.zeros(bodies)
    _farthest(x, y, own, body, a, b, U @ Vt, most)
    return 2 * most


def come_nearer(surfaces: Surfaces, x: np.ndarray, y: np.ndarray, margin: float, enough: float) -> float:
    """As `approach`, from x to y (n, 3), where only the end counts: less than `enough` [m] where that can be
    told, for bodies that turn."""
    within, between = approaches(surfaces, x, y - x, margin)
    if within.max(initial=0) > enough >= between:
        within = np.minimum(within, stretch(surfaces, x, y))
    return max(float(within.max(initial=0)), between)


@kernel
def _boxes(x, own, body, box):
    for v in own:
        for axis in range(3):
            box[body[v], axis] = min(box[body[v], axis], x[v, axis])
            box[body[v], 3 + axis] = max(box[body[v], 3 + axis], x[v, axis])


@kernel
def _neighbours(box, margin, start, others):
    """Numbers of the bodies whose boxes are within a margin of each; while others is empty they are counted
    only."""
    count = 0
    for a in range(len(box)):
        start[a] = count
        for b in range(len(box)):
            meet = a != b
            for axis in range(3):
                meet = meet and box[a, axis] <= box[b, 3 + axis] + margin
                meet = meet and box[b, axis] <= box[a, 3 + axis] + margin
            if meet:
                if len(others) > 0:
                    others[count] = b
                count += 1
    start[len(box)] = count


def crowd(surfaces: Surfaces, x: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes (b, 6) of bodies, lower and upper ends [m], with vertices at x (n, 3); and start (b + 1,) and
    others (k,): the numbers of those that are within a margin [m] of each."""
    bodies = len(surfaces.flat)
    box = np.tile([math.inf] * 3 + [-math.inf] * 3, (bodies, 1))
    _boxes(x, surfaces.own, surfaces.body, box)
    start, others = np.zeros(bodies + 1, np.int64), np.zeros(0, np.int64)
    _neighbours(box, margin, start, others)
    others = np.zeros(start[-1], np.int64)
    _neighbours(box, margin, start, others)
    return box, start, others
