"""Edge-edge contacts of two boxes.

Along n = a × b of one edge of each, the boxes touch with these edges if both are extreme in that direction.
Boxes are convex, so they are disjoint if any direction separates them. Directions of largest separation count
[Gottschalk et al. 1996].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from supple.contact.shapes import POSE, SIZE

SLACK = 0.02
"""Tolerance relative to the shortest half edge: distance of an edge from the extreme, and of a direction from
the best separation. Boxes in nearly flat contact then have several contact points."""

PARALLEL = 1e-3
"""|a × b| below which edges are parallel."""


class Block(NamedTuple):
    """Geometry of a box.

    Attributes:
        centre: (3,) center [m].
        axes: (3, 3) unit axes as rows.
        halves: (3,) half edge lengths [m].
        middles: (12, 3) midpoints of the edges [m].
        along: (12,) axis of each edge.
    """

    centre: np.ndarray
    axes: np.ndarray
    halves: np.ndarray
    middles: np.ndarray
    along: np.ndarray

    def reach(self, n: np.ndarray) -> np.ndarray:
        """Support width (...): extent from the center along unit vectors n (..., 3) [m]."""
        return np.abs(n @ self.axes.T) @ self.halves


def block_of(row: np.ndarray) -> Block:
    """Geometry of the box in a parameter row of `Shapes`."""
    axes, centre = row[POSE : POSE + 9].reshape(3, 3), row[POSE + 9 : POSE + 12]
    halves, along = np.asarray(row[SIZE : SIZE + 3], float), np.repeat(np.arange(3), 4)
    signs = np.zeros((12, 3))
    for axis in range(3):
        others = [k for k in range(3) if k != axis]
        signs[4 * axis : 4 * axis + 4, others] = [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    return Block(centre, axes, halves, centre + (signs * halves) @ axes, along)


def separations(a: Block, b: Block) -> tuple[np.ndarray, np.ndarray]:
    """Separations of two boxes along all candidate axes [m], negative for overlap.

    Returns:
        (6,) along the face normals of a, then of b; (k,) along cross products of edges, without parallel
        edges.
    """
    cross = np.cross(a.axes[:, None], b.axes[None]).reshape(9, 3)
    length = np.sqrt((cross * cross).sum(axis=1))
    crossing = cross[length > PARALLEL] / length[length > PARALLEL, None]
    return np.concatenate([_apart(a, b, a.axes), _apart(a, b, b.axes)]), _apart(a, b, crossing)


def crossing_edges(one: np.ndarray, other: np.ndarray) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Edge-edge contacts of two boxes.

    Args:
        one: Row of the first box in `Shapes`.
        other: Row of the second box.

    Yields:
        Contact point [m], gap [m] and unit normal toward the first box.
    """
    a, b = block_of(one), block_of(other)
    slack = SLACK * min(a.halves.min(), b.halves.min())
    cross = np.cross(a.axes[:, None], b.axes[None])
    length = np.linalg.norm(cross, axis=2)
    crossing = cross[length > PARALLEL] / length[length > PARALLEL][:, None]
    best = max(_apart(a, b, n).max(initial=-np.inf) for n in (a.axes, b.axes, crossing))
    for i, j in zip(*np.nonzero(length > PARALLEL), strict=True):
        n = cross[i, j] / length[i, j]
        n = n if n @ (a.centre - b.centre) >= 0 else -n
        if _apart(a, b, n) >= best - slack:
            yield from _crossings(a, b, i, j, n, slack)


def _apart(a: Block, b: Block, n: np.ndarray) -> np.ndarray:
    """Separation [m] of two boxes along unit vectors n (..., 3), negative for overlap."""
    return np.abs(n @ (a.centre - b.centre)) - a.reach(n) - b.reach(n)


def _crossings(
    a: Block, b: Block, i: int, j: int, n: np.ndarray, slack: float
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Edge pairs along axis i of a and axis j of b, both extreme along n, which points from b to a."""
    first, last = n @ a.centre - a.reach(n), n @ b.centre + b.reach(n)
    d, e = a.axes[i], b.axes[j]
    c = float(d @ e)
    for p in a.middles[(a.along == i) & (a.middles @ n <= first + slack)]:
        for q in b.middles[(b.along == j) & (b.middles @ n >= last - slack)]:
            w = p - q
            s, t = (c * (e @ w) - d @ w) / (1 - c * c), (e @ w - c * (d @ w)) / (1 - c * c)
            if abs(s) <= a.halves[i] and abs(t) <= b.halves[j]:
                yield 0.5 * (p + s * d + q + t * e), float(n @ w), n
