"""Initial positions, predicted from earlier samples of the same shard."""

from __future__ import annotations

import numpy as np

MAX_PREDICTION_SAMPLES = 64
"""Maximum number of samples used for a prediction."""

MAX_WEIGHT_SUM = 50
"""Limit on the sum of absolute interpolation weights; larger sums indicate extrapolation."""


class Neighbors:
    """Solved samples of a shard, with design points (d,) and positions (n, 3) [m]."""

    def __init__(self, most: int = 64) -> None:
        self._most, self._count = most, 0
        self._points = self._positions = np.empty((0, 0))

    def add(self, point: np.ndarray, positions: np.ndarray) -> None:
        if not self._count:
            self._points = np.empty((self._most, len(point)))
            self._positions = np.empty((self._most, positions.size))
        self._points[self._count], self._positions[self._count] = point, positions.ravel()
        self._count += 1

    def _distances(self, point: np.ndarray) -> np.ndarray:
        """(k,) squared distances of all samples to a point."""
        away: np.ndarray = ((self._points[: self._count] - point) ** 2).sum(axis=1)
        return away

    def nearest(self, point: np.ndarray) -> np.ndarray | None:
        """Positions (n, 3) [m] of the nearest sample, or None without samples."""
        if not self._count:
            return None
        return self._positions[int(self._distances(point).argmin())].reshape(-1, 3)

    def predict(self, point: np.ndarray) -> np.ndarray | None:
        """Positions (n, 3) [m] at a point, interpolated from nearby samples; None for too few samples.

        Cubic radial basis functions with a linear tail, s(p) = Σ wₖ |p - pₖ|³ + c · (1, p), interpolate the
        samples and reproduce linear functions. The result is a weighted sum of known positions with weights
        that add up to 1, the same for all vertices. It is summed without BLAS, whose rounding may depend on
        the number of threads.
        """
        if self._count < len(point) + 2:
            return None
        chosen = np.sort(np.argsort(self._distances(point), kind="stable")[:MAX_PREDICTION_SAMPLES])
        weights, valid = _weights(self._points[chosen], point[None])
        if not valid[0]:
            return None
        return np.einsum("k,kn->n", weights[0], self._positions[chosen]).reshape(-1, 3)

    def predict_at(self, points: np.ndarray) -> np.ndarray | None:
        """Positions (m, n, 3) [m] at several points, interpolated from all samples.

        Falls back to the nearest sample where interpolation would extrapolate too far; None if there are too
        few samples.
        """
        if self._count < points.shape[1] + 2:
            return None
        weights, valid = _weights(self._points[: self._count], points)
        for row in np.flatnonzero(~valid):
            weights[row] = 0
            weights[row, int(self._distances(points[row]).argmin())] = 1
        return (weights @ self._positions[: self._count]).reshape(len(points), -1, 3)


def _weights(p: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Interpolation weights (m, k) of sample points p (k, d) at points (m, d), and a validity mask (m,)."""
    k, m = len(p), len(points)
    middle = points.mean(axis=0)
    scale = max(float(np.abs(p - middle).max()), 1e-12)
    p, x = (p - middle) / scale, (points - middle) / scale
    moving = np.ptp(p, axis=0) > 1e-9  # ignore constant coordinates
    tail = np.column_stack([np.ones(k), p[:, moving]])
    size = tail.shape[1]
    system, right = np.zeros((k + size, k + size)), np.ones((k + size, m))
    system[:k, :k] = _cubic_kernel(p, p)
    system[:k, k:], system[k:, :k] = tail, tail.T
    right[:k], right[k + 1 :] = _cubic_kernel(p, x), x[:, moving].T
    try:
        weights = np.linalg.solve(system, right)[:k].T.copy()
    except np.linalg.LinAlgError:
        return np.zeros((m, k)), np.zeros(m, bool)
    valid = np.asarray(np.isfinite(weights).all(axis=1))
    valid &= np.abs(np.where(valid[:, None], weights, 0)).sum(axis=1) < MAX_WEIGHT_SUM
    return weights, valid


def _cubic_kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(k, m) |a - b|³ of points (k, d) and (m, d)."""
    distances: np.ndarray = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2))
    return distances**3
