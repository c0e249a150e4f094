"""Bounding box tree over the cells of a mesh, for proximity queries of points.

Cells are sorted along a Morton curve through their centers; recursive halves of that order are the nodes of a
complete binary tree. All points descend together, level by level, as pairs of point and node.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

LEAF = 4
"""Largest number of cells per leaf, up to rounding. Larger leaves: fewer levels, more candidate cells."""

BITS = 20
"""Bits per coordinate in a Morton code."""

TOGETHER = 8192
"""Number of points that descend the tree together."""

MOST_PAIRS = 1_000_000
"""Number of point-node pairs above which fewer points descend together: the center of a sphere is close to
all of its cells."""

ROUNDING = 1e-9
"""Relative margin of search distances and of cell sizes."""


class BoxTree:
    """Bounding box tree over cells with corners (m, k, 3) [m]."""

    def __init__(self, corners: np.ndarray) -> None:
        low, high = corners.min(axis=1), corners.max(axis=1)
        margin = ROUNDING * np.linalg.norm(high - low, axis=1)[:, None]
        self._order = np.argsort(_morton_codes(low + (high - low) / 2), kind="stable")
        self._low, self._high = (low - margin)[self._order], (high + margin)[self._order]
        self._levels = max(0, (len(corners) // LEAF).bit_length() - 1)
        self._starts = (np.arange((1 << self._levels) + 1) * len(corners)) >> self._levels
        least = np.minimum.reduceat(self._low, self._starts[:-1])
        most = np.maximum.reduceat(self._high, self._starts[:-1])
        self._boxes = [(least, most)]
        for _ in range(self._levels):
            least, most = least.reshape(-1, 2, 3).min(axis=1), most.reshape(-1, 2, 3).max(axis=1)
            self._boxes.insert(0, (least, most))

    def near(self, points: np.ndarray, reach: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs of points and cells whose boxes are within the search distance.

        All pairs of a point are in the same item.

        Args:
            points: (k, 3) points [m].
            reach: (k,) search distances [m].

        Yields:
            Point indices (p,) and cell indices (p,).
        """
        squares = (reach * (1 + ROUNDING)) ** 2
        ranges = [(k, min(k + TOGETHER, len(points))) for k in range(0, len(points), TOGETHER)]
        while ranges:
            first, last = ranges.pop()
            found = self._pairs(np.arange(first, last), points, squares)
            if found is None:
                middle = (first + last) // 2
                ranges += [(first, middle), (middle, last)]
            else:
                yield found

    def _pairs(
        self, chosen: np.ndarray, points: np.ndarray, squares: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Pairs of points and nearby cells; None if they exceed the memory limit."""
        alone, node = len(chosen) == 1, np.zeros(len(chosen), np.int64)
        for least, most in self._boxes[1:]:
            if len(chosen) > MOST_PAIRS and not alone:
                return None
            chosen, node = np.repeat(chosen, 2), np.stack([2 * node, 2 * node + 1], axis=1).ravel()
            near = _squared_distances(points[chosen], least[node], most[node]) <= squares[chosen]
            chosen, node = chosen[near], node[near]
        counts = self._starts[node + 1] - self._starts[node]
        before = np.cumsum(counts) - counts
        cells = np.arange(counts.sum()) + np.repeat(self._starts[node] - before, counts)
        chosen = np.repeat(chosen, counts)
        near = _squared_distances(points[chosen], self._low[cells], self._high[cells]) <= squares[chosen]
        return chosen[near], self._order[cells[near]]


def _squared_distances(points: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Squared distances (p,) [m²] of points (p, 3) from boxes; 0 inside."""
    beyond = np.maximum(np.maximum(low - points, points - high), 0)
    return np.einsum("pi,pi->p", beyond, beyond)


def _morton_codes(points: np.ndarray) -> np.ndarray:
    """Morton codes (m,) of points (m, 3): interleaved bits of their coordinates."""
    low, size = points.min(axis=0), np.ptp(points, axis=0).max()
    scaled = (points - low) * ((2**BITS - 1) / size if size > 0 else 0.0)
    codes = np.zeros(len(points), np.int64)
    for axis, column in enumerate(scaled.astype(np.int64).T):
        for bit in range(BITS):
            codes |= ((column >> bit) & 1) << (3 * bit + axis)
    return codes
