"""Edges of triangle meshes: adjacent triangles and consistency of their orientation."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components


class Sides(NamedTuple):
    """Directed sides of all triangles, sorted by edge.

    Attributes:
        triangle, start, end: (3 m,) triangle, first and last vertex of each side.
        first: (e + 1,) first side of each edge.
    """

    triangle: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first: np.ndarray


class Edges:
    """Undirected edges of triangles (m, 3); `len` is their number e."""

    def __init__(self, triangles: np.ndarray) -> None:
        start, end = (
            triangles.ravel().astype(np.int64),
            np.roll(triangles, -1, axis=1).ravel().astype(np.int64),
        )
        low, high = np.minimum(start, end), np.maximum(start, end)
        order = np.lexsort((high, low))
        new = np.ones(len(order) + 1, bool)
        new[1:-1] = (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)
        self.sides = Sides(order // 3, start[order], end[order], np.flatnonzero(new))

    def __len__(self) -> int:
        return len(self.sides.first) - 1

    @cached_property
    def ends(self) -> np.ndarray:
        """(e, 2) vertices."""
        at = self.sides.first[:-1]
        return np.stack([self.sides.start[at], self.sides.end[at]], axis=1)

    @cached_property
    def counts(self) -> np.ndarray:
        """(e,) number of triangles at each edge."""
        return np.diff(self.sides.first)

    @cached_property
    def pairs(self) -> np.ndarray:
        """(k, 2) triangles of every edge shared by exactly two."""
        at = self.sides.first[:-1][self.counts == 2]
        return np.stack([self.sides.triangle[at], self.sides.triangle[at + 1]], axis=1)

    @cached_property
    def inconsistent(self) -> np.ndarray:
        """(k,) True if both triangles of a pair traverse their edge in the same direction: opposite
        orientations."""
        at = self.sides.first[:-1][self.counts == 2]
        return self.sides.start[at] == self.sides.start[at + 1]

    @cached_property
    def one_sided(self) -> bool:
        """True for a one-sided surface such as a Möbius strip, which has no consistent orientation.

        The test graph contains each triangle twice, once per side.
        """
        count = int(self.sides.triangle.max()) + 1
        (one, other), back = self.pairs.T, self.inconsistent * count
        start, end = np.concatenate([one, one + count]), np.concatenate([other + back, other + count - back])
        links = coo_matrix((np.ones(len(start)), (start, end)), (2 * count, 2 * count))
        _, side = connected_components(links, directed=False)
        return bool((side[:count] == side[count:]).any())
