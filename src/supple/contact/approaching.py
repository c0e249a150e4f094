"""Upper bounds on the mutual approach of surfaces, per body.

The mean displacement of a body leaves all distances within the body unchanged. Between two bodies it reduces
distances by at most the relative displacement. The remainder is bounded by the largest deviation of vertex
displacements from the mean.
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
    """Bound the mutual approach of any two bodies whose swept boxes overlap [m].

    count, mean, away, lower and upper (bodies, ...) are scratch arrays; away (bodies,) returns the largest
    deviation from the mean displacement of each body [m].
    """
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
    """Bound the approach of surfaces within each body, and between any two bodies.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) positions [m].
        step: (n, 3) displacements from x [m].
        margin: Pairs of bodies count if their swept boxes are within this distance [m].

    Returns:
        Largest decrease of any distance [m]: within each body (b,), and between two bodies.
    """
    bodies = len(surfaces.flat)
    x, step = (np.ascontiguousarray(array, float) for array in (x, step))
    away = np.zeros(bodies)
    work = np.zeros(bodies, np.int64), np.zeros((bodies, 3)), away
    ends = np.full((bodies, 3), math.inf), np.full((bodies, 3), -math.inf)
    between = _most(x, step, surfaces.own, surfaces.body, margin, *work, *ends)
    return 2 * away, float(between)


def approach(surfaces: Surfaces, x: np.ndarray, step: np.ndarray, margin: float) -> float:
    """Bound the approach of all surfaces, within and between bodies [m]; see `approaches`."""
    within, between = approaches(surfaces, x, step, margin)
    return max(float(within.max(initial=0)), between)


@kernel
def _moments(x, y, own, body, count, a, b, moments):
    """Compute centroids of bodies at x and y and their cross-covariance.

    a, b (bodies, 3) return the centroids, moments (bodies, 9) Σ (x - a) (y - b)ᵀ; count (bodies,) is scratch.
    """
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
    """Compute the largest distance of vertices from the rigidly moved body [m].

    most (bodies,) returns the distances for rotations `turn` (bodies, 3, 3) and centroids a and b.
    """
    for v in own:
        k, square = body[v], 0.0
        for j in range(3):
            off = y[v, j] - b[k, j]
            for i in range(3):
                off -= (x[v, i] - a[k, i]) * turn[k, i, j]
            square += off * off
        most[k] = max(most[k], math.sqrt(square))


def stretch(surfaces: Surfaces, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Bound the approach of surfaces within each body from x to y, independent of rotation.

    The bound is twice the largest deviation from the best-fit rigid motion [Kabsch 1976].

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) initial positions [m].
        y: (n, 3) final positions [m].

    Returns:
        (b,) bounds [m].
    """
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
    """Bound the approach of surfaces from x to y, with rotations removed if that helps.

    In contrast to `approach`, only the final positions count, not the path.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) initial positions [m].
        y: (n, 3) final positions [m].
        margin: Pairs of bodies count if their swept boxes are within this distance [m].
        enough: Threshold [m]: the tighter bound of `stretch` is computed only if it can fall below this
            value.

    Returns:
        Largest decrease of any distance [m].
    """
    within, between = approaches(surfaces, x, y - x, margin)
    if within.max(initial=0) > enough >= between:
        within = np.minimum(within, stretch(surfaces, x, y))
    return max(float(within.max(initial=0)), between)


@kernel
def _boxes(x, own, body, box):
    """Extend the bounding box (6,) of each body by its vertices."""
    for v in own:
        for axis in range(3):
            box[body[v], axis] = min(box[body[v], axis], x[v, axis])
            box[body[v], 3 + axis] = max(box[body[v], 3 + axis], x[v, axis])


@kernel
def _neighbours(box, margin, start, others):
    """List neighbors of each body by box distance; an empty `others` only counts them."""
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
    """Compute bounding boxes and neighbor lists of all bodies.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) positions [m].
        margin: Largest distance of neighbor boxes along each axis [m].

    Returns:
        Boxes (b, 6), lower then upper bounds [m]; start (b + 1,) and others (k,): the neighbors of body i are
        others[start[i]:start[i + 1]].
    """
    bodies = len(surfaces.flat)
    box = np.tile([math.inf] * 3 + [-math.inf] * 3, (bodies, 1))
    _boxes(x, surfaces.own, surfaces.body, box)
    start, others = np.zeros(bodies + 1, np.int64), np.zeros(0, np.int64)
    _neighbours(box, margin, start, others)
    others = np.zeros(start[-1], np.int64)
    _neighbours(box, margin, start, others)
    return box, start, others
