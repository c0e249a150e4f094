"""Where a solve begins: at what the samples that were solved before it in its shard say."""

from __future__ import annotations

import numpy as np

NEAREST = 64
"""Samples that a prediction is made from."""


class Neighbours:
    """The solved samples of a shard: where they are in the design, (d,) each, and their positions (n, 3)
    [m]."""

    def __init__(self) -> None:
        self._points: list[np.ndarray] = []
        self._positions: list[np.ndarray] = []

    def add(self, point: np.ndarray, positions: np.ndarray) -> None:
        self._points.append(point)
        self._positions.append(positions)

    def nearest(self, point: np.ndarray) -> np.ndarray | None:
        """Positions of the nearest one; None where there is none yet."""
        if not self._points:
            return None
        distance = ((np.stack(self._points) - point) ** 2).sum(axis=1)
        return self._positions[int(distance.argmin())]

    def predicted(self, point: np.ndarray) -> np.ndarray | None:
        """Positions (n, 3) [m] at a point, interpolated from the nearest ones; None where they are too few.

        s(p) = Σ wₖ |p - pₖ|³ + c · (1, p), which has the values given and is exact where they are linear. It
        is a sum of what is known with weights that add up to 1, the same for all vertices. Summed without
        BLAS: what it gives may depend on its number of threads, and with it the bits of a sample.
        """
        d = len(point)
        if len(self._points) < d + 2:
            return None
        distance = ((np.stack(self._points) - point) ** 2).sum(axis=1)
        chosen = np.sort(np.argsort(distance, kind="stable")[:NEAREST])
        p = np.stack([self._points[k] for k in chosen])
        weights = _weights(p, point)
        if weights is None:
            return None
        known = np.stack([self._positions[k].ravel() for k in chosen])
        return np.einsum("k,kn->n", weights, known).reshape(-1, 3)


def _weights(p: np.ndarray, point: np.ndarray) -> np.ndarray | None:
    """(k,) how much each of the points p (k, d) counts for another one."""
    k, d = p.shape
    scale = max(float(np.abs(p - point).max()), 1e-12)
    p, x = (p - point) / scale, np.zeros(d)
    radius = np.sqrt(((p[:, None] - p[None]) ** 2).sum(axis=2))
    moving = np.ptp(p, axis=0) > 1e-9  # what is the same for all says nothing
    tail = np.column_stack([np.ones(k), p[:, moving]])
    size = tail.shape[1]
    system = np.zeros((k + size, k + size))
    system[:k, :k] = radius**3
    system[:k, k:], system[k:, :k] = tail, tail.T
    right = np.concatenate([np.sqrt(((p - x) ** 2).sum(axis=1)) ** 3, [1.0], x[moving]])
    try:
        weights = np.linalg.solve(system, right)[:k]
    except np.linalg.LinAlgError:
        return None
    sound = np.isfinite(weights).all() and float(np.abs(weights).sum()) < 50
    return weights if sound else None
