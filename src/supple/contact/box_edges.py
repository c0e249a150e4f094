"""Edges of two boxes that cross: where boxes meet that do not touch each other with corners.

Along n = a × b of an edge of each, one box ends with its edge where the other begins with its own, if these
two are what comes first there. Boxes are convex, so that nothing overlaps while any direction separates them:
of all directions, those count that separate them best [Gottschalk et al. 1996].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from supple.contact.shapes import POSE, SIZE

SLACK = 0.02
"""Of the shortest half edge: how far edges may be from what comes first, and directions from the best one, so
that boxes that lie on each other nearly flat have more than one point there."""

PARALLEL = 1e-3
"""|a × b| below which edges count as parallel."""


class Block(NamedTuple):
    """A box: centre (3,), axes (3, 3) as rows, halves (3,) of its edges; and of its twelve edges the middles
    (12, 3) and which axis each is along (12,)."""

    centre: np.ndarray
    axes: np.ndarray
    halves: np.ndarray
    middles: np.ndarray
    along: np.ndarray

    def reach(self, n: np.ndarray) -> np.ndarray:
        """(...) how far it goes from its centre along unit vectors (..., 3)."""
        return np.abs(n @ self.axes.T) @ self.halves


def block_of(row: np.ndarray) -> Block:
    axes, centre = row[POSE : POSE + 9].reshape(3, 3), row[POSE + 9 : POSE + 12]
    halves, along = np.asarray(row[SIZE : SIZE + 3], float), np.repeat(np.arange(3), 4)
    signs = np.zeros((12, 3))
    for axis in range(3):
        others = [k for k in range(3) if k != axis]
        signs[4 * axis : 4 * axis + 4, others] = [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    return Block(centre, axes, halves, centre + (signs * halves) @ axes, along)


def separations(a: Block, b: Block) -> tuple[np.ndarray, np.ndarray]:
    """(6,) and (k,) distances [m] between two boxes along face normals of the first and of the second, and
    along products of their edges; negative where they overlap."""
    cross = np.cross(a.axes[:, None], b.axes[None]).reshape(9, 3)
    length = np.sqrt((cross * cross).sum(axis=1))
    crossing = cross[length > PARALLEL] / length[length > PARALLEL, None]
    return np.concatenate([_apart(a, b, a.axes), _apart(a, b, b.axes)]), _apart(a, b, crossing)


def crossing_edges(one: np.ndarray, other: np.ndarray) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Points, gaps and directions that push the one away, where edges of two boxes, rows of shapes, cross."""
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
    """[m] how far apart boxes are along unit vectors n (..., 3), negative where they overlap."""
    return np.abs(n @ (a.centre - b.centre)) - a.reach(n) - b.reach(n)


def _crossings(
    a: Block, b: Block, i: int, j: int, n: np.ndarray, slack: float
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Of edges along axis i of a and j of b, those that come first along n, which leads from b to a."""
    first, last = n @ a.centre - a.reach(n), n @ b.centre + b.reach(n)
    d, e = a.axes[i], b.axes[j]
    c = float(d @ e)
    for p in a.middles[(a.along == i) & (a.middles @ n <= first + slack)]:
        for q in b.middles[(b.along == j) & (b.middles @ n >= last - slack)]:
            w = p - q
            s, t = (c * (e @ w) - d @ w) / (1 - c * c), (e @ w - c * (d @ w)) / (1 - c * c)
            if abs(s) <= a.halves[i] and abs(t) <= b.halves[j]:
                yield 0.5 * (p + s * d + q + t * e), float(n @ w), n
