"""Obstacles on a grid: how far each node may move, so that no vertex that it carries enters one.

A vertex at the distance d from an obstacle with the normal n moves by n · Σ wᵢ uᵢ. Where every node keeps
n · uᵢ ≥ -δᵢ, with δᵢ the least d of the vertices that it carries, that is at least -Σ wᵢ δᵢ ≥ -d: it stays
outside, of flat obstacles exactly. So nodes have planes as vertices do, a distance δᵢ away, though they may
be inside of the obstacle themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.contact import Obstacles, Planes, Shapes, distances_to
from supple.contact.shapes import FRICTION, STEP
from supple.grid.interpolation import Interpolation
from supple.problem.contacts import Contacts


class NodePlanes(Contacts):
    """What the nodes of a grid touch in one step: `found` of `planes_of_nodes`, frozen in it."""

    def __init__(self, shapes: Shapes, found: tuple[np.ndarray, ...], *parts: Any) -> None:
        super().__init__(*parts)
        self.shapes = shapes
        self._found = found

    def begin_step(self, time: float, dt: float = np.inf, damping: float = 0.0) -> None:
        self._damping = damping

    def arrive(self) -> None:
        """Take the planes, and put out of them what coasting has taken inside."""
        planes = self.planes
        assert isinstance(planes, Planes)
        which, gap, normal, anchor, friction = self._found
        there, count = slice(0, -1), len(which)
        planes.normal[:count, there, :3] = normal
        planes.foot[:count, there, :3] = -gap[..., None] * normal
        self.which[there, : len(which)] = which.T
        arrays = [planes.normal, planes.foot, self.which]
        if planes.friction:
            planes.friction.anchor[:count, there, :3] = anchor
            planes.friction.coefficient[:count, there, 0] = friction
            arrays += [planes.friction.anchor, planes.friction.coefficient]
        for array in arrays:
            self.device.push(array)
        self.detect()

    def _detect(self, free: np.ndarray) -> None:
        self.device.on_records(*self.clamp())


def shapes_after(obstacles: Obstacles, begin: float, end: float) -> Shapes:
    """The shapes at the end of a step from one time [s] to another, which know how they moved in it."""
    shapes = obstacles.shapes(begin)
    obstacles.advance(shapes, obstacles.poses(end).copy(), end)
    return shapes


def planes_of_nodes(
    obstacles: Obstacles, shapes: Shapes, points: Interpolation, x: np.ndarray
) -> tuple[np.ndarray, ...]:
    """For vertices at x (n, 3) [m], of each node and the shapes that its vertices are nearest to: the numbers
    of the shapes (planes, q), δ (planes, q) [m], normals (planes, q, 3), where friction would leave the nodes
    (planes, q, 3), as displacements [m], and its coefficients (planes, q)."""
    each = [
        _nearest_vertices(Shapes(shapes.rows[s : s + 1], shapes.values), points, x)
        for s in range(len(shapes.rows))
    ]
    gaps = np.stack([gap for gap, _ in each])
    which = np.argsort(gaps, axis=0, kind="stable")[: obstacles.planes]
    column = np.arange(gaps.shape[1])
    normal = np.stack([normal for _, normal in each])[which, column]
    R = shapes.rows[which, STEP : STEP + 9].reshape(*which.shape, 3, 3)
    carried = np.einsum("pqij,qj->pqi", R, points.nodes) + shapes.rows[which, STEP + 9 : STEP + 12]
    return which, gaps[which, column], normal, carried - points.nodes, shapes.rows[which, FRICTION]


def _nearest_vertices(shape: Shapes, points: Interpolation, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least distance (q,) [m] from a shape of the vertices that each node carries, and the normal (q, 3)
    of that vertex."""
    d, normals, _ = distances_to(shape, x)
    nodes, vertices = points.corners.ravel(), np.repeat(np.arange(len(x)), 8)
    order = np.lexsort([vertices, d[vertices], nodes])
    first = order[np.searchsorted(nodes[order], np.arange(len(points.nodes)))]
    nearest = vertices[first]
    return d[nearest], normals[nearest]
