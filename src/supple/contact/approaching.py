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
    within, between = 0.0, 0.0
    for a in range(len(count)):
        within = max(within, 2.0 * away[a])
        for b in range(a + 1, len(count)):
            square, meet = 0.0, True
            for axis in range(3):
                square += (mean[a, axis] - mean[b, axis]) ** 2
                meet = meet and lower[a, axis] <= upper[b, axis] and lower[b, axis] <= upper[a, axis]
            if meet:
                between = max(between, math.sqrt(square) + away[a] + away[b])
    return within, between


def approaches(surfaces: Surfaces, x: np.ndarray, step: np.ndarray, margin: float) -> tuple[float, float]:
    """At most so much [m] nearer to each other are surfaces of one body, and of two, after a step (n, 3) [m]
    from x (n, 3), where they are within a margin [m] of each other before or after it."""
    bodies = len(surfaces.flat)
    x, step = (np.ascontiguousarray(array, float) for array in (x, step))
    work = np.zeros(bodies, np.int64), np.zeros((bodies, 3)), np.zeros(bodies)
    ends = np.full((bodies, 3), math.inf), np.full((bodies, 3), -math.inf)
    own = np.ascontiguousarray(surfaces.vertices[:, 0])
    within, between = _most(x, step, own, surfaces.body, margin, *work, *ends)
    return float(within), float(between)


def approach(surfaces: Surfaces, x: np.ndarray, step: np.ndarray, margin: float) -> float:
    """The larger of both."""
    return max(approaches(surfaces, x, step, margin))


def stretch(surfaces: Surfaces, x: np.ndarray, y: np.ndarray) -> float:
    """At most so much [m] nearer to each other are surfaces of one body with vertices at y (n, 3) instead of
    x (n, 3): twice what they are off the turned body that fits best [Kabsch 1976]."""
    own = surfaces.vertices[:, 0]
    body, bodies = surfaces.body[own], len(surfaces.flat)
    count = np.maximum(np.bincount(body, minlength=bodies), 1)

    def sums(values: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(body, column, bodies) for column in values.T], axis=1)

    a, b = (points[own] - (sums(points[own]) / count[:, None])[body] for points in (x, y))
    moments = sums(np.einsum("vi,vj->vij", a, b).reshape(-1, 9)).reshape(-1, 3, 3)
    U, _, Vt = np.linalg.svd(moments)
    U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    off = b - np.einsum("vi,vij->vj", a, (U @ Vt)[body])
    return 2 * float(np.sqrt((off * off).sum(axis=1).max(initial=0)))


def come_nearer(surfaces: Surfaces, x: np.ndarray, y: np.ndarray, margin: float, enough: float) -> float:
    """As `approach`, from x to y (n, 3), where only the end counts: less than `enough` [m] where that can be
    told, for bodies that turn."""
    within, between = approaches(surfaces, x, y - x, margin)
    if within > enough >= between:
        within = min(within, stretch(surfaces, x, y))
    return max(within, between)


@kernel
def _beside(x, things, body, margin, lower, upper, kept):
    """Whether the box of a thing is within a margin of that of another body."""
    for m in range(len(things)):
        own = body[things[m, 0]]
        kept[m] = False
        for b in range(len(lower)):
            meet = b != own
            for axis in range(3):
                low = high = x[things[m, 0], axis]
                for corner in range(1, things.shape[1]):
                    low, high = min(low, x[things[m, corner], axis]), max(high, x[things[m, corner], axis])
                meet = meet and low <= upper[b, axis] + margin and high >= lower[b, axis] - margin
            if meet:
                kept[m] = True
                break


def beside_others(surfaces: Surfaces, x: np.ndarray, things: np.ndarray, margin: float) -> np.ndarray:
    """The numbers of those things (m, k) that are within a margin [m] of the box of another body, with
    vertices at x (n, 3)."""
    bodies, own = len(surfaces.flat), surfaces.vertices[:, 0]
    lower, upper = np.full((bodies, 3), math.inf), np.full((bodies, 3), -math.inf)
    np.minimum.at(lower, surfaces.body[own], x[own])
    np.maximum.at(upper, surfaces.body[own], x[own])
    kept = np.zeros(len(things), bool)
    _beside(x, things, surfaces.body, margin, lower, upper, kept)
    return np.flatnonzero(kept)
