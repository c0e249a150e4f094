"""Edges of triangles: which triangles meet there, and whether they agree on what is outside."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components


class Sides(NamedTuple):
    """All (directed) sides of triangles, those of the same edge one after the other: triangle (3 m,), start
    and end (3 m,) vertices; first (e + 1,): where the sides of each edge begin."""

    triangle: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first: np.ndarray


class Edges:
    """The e edges of triangles (m, 3)."""

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
        """(e,) how many triangles meet at each."""
        return np.diff(self.sides.first)

    @cached_property
    def pairs(self) -> np.ndarray:
        """(k, 2) the two triangles of every edge where two meet."""
        at = self.sides.first[:-1][self.counts == 2]
        return np.stack([self.sides.triangle[at], self.sides.triangle[at + 1]], axis=1)

    @cached_property
    def turned(self) -> np.ndarray:
        """(k,) bool for the `pairs`: whether both run along their edge the same way, so that what is outside
        for one is inside for the other."""
        at = self.sides.first[:-1][self.counts == 2]
        return self.sides.start[at] == self.sides.start[at + 1]

    @cached_property
    def one_sided(self) -> bool:
        """Whether a way along the surface leads to its back, as on a Möbius strip: no order of the vertices
        of its triangles can agree on what is outside. Each triangle counts twice, for its two sides."""
        count = int(self.sides.triangle.max()) + 1
        (one, other), back = self.pairs.T, self.turned * count
        start, end = np.concatenate([one, one + count]), np.concatenate([other + back, other + count - back])
        links = coo_matrix((np.ones(len(start)), (start, end)), (2 * count, 2 * count))
        _, side = connected_components(links, directed=False)
        return bool((side[:count] == side[count:]).any())
