"""Obstacle contact on a grid: bounds on node motion that keep all embedded vertices outside.

A vertex at the distance d from an obstacle with the normal n moves by n · Σ wᵢ uᵢ. If every node satisfies n
· uᵢ ≥ -δᵢ, with δᵢ the smallest d of the vertices it carries, this is at least -Σ wᵢ δᵢ ≥ -d: the vertex
stays outside, exactly so for flat obstacles. Nodes therefore have contact planes like vertices, at the
distance δᵢ, although they may be inside the obstacle themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.collision import Obstacles, Planes, Shapes, distances_to
from supple.collision.obstacles.signed_distance import FRICTION, STEP
from supple.contact.state.obstacle_contact import Contacts
from supple.grid.interpolation import Interpolation


class NodePlanes(Contacts):
    """Contact planes of the grid nodes in one step, which stay those of `planes_of_nodes`."""

    def __init__(self, shapes: Shapes, node_planes: tuple[np.ndarray, ...], *parts: Any) -> None:
        super().__init__(*parts)
        self.shapes = shapes
        self._planes_of_nodes = node_planes

    def begin_step(self, time: float, dt: float = np.inf, damping: float = 0.0) -> None:
        self._damping = damping

    def arrive(self) -> None:
        """Set the planes, and project out nodes that the inertial prediction has moved inside."""
        planes = self.planes
        assert isinstance(planes, Planes)
        which, gap, normal, anchor, friction = self._planes_of_nodes
        nodes, count = slice(0, -1), len(which)
        planes.normal[:count, nodes, :3] = normal
        planes.closest_point[:count, nodes, :3] = -gap[..., None] * normal
        self.which[nodes, : len(which)] = which.T
        arrays = [planes.normal, planes.closest_point, self.which]
        if planes.friction:
            planes.friction.anchor[:count, nodes, :3] = anchor
            planes.friction.coefficient[:count, nodes, 0] = friction
            arrays += [planes.friction.anchor, planes.friction.coefficient]
        for array in arrays:
            self.device.upload(array)
        self.detect()

    def _detect(self, free: np.ndarray) -> None:
        self.device.apply_to_vectors(*self.clamp())


def shapes_after(obstacles: Obstacles, begin: float, end: float) -> Shapes:
    """Shapes at the end of a step between two times [s], with their motion during it."""
    shapes = obstacles.shapes(begin)
    obstacles.advance(shapes, obstacles.poses(end).copy(), end)
    return shapes


def planes_of_nodes(
    obstacles: Obstacles, shapes: Shapes, points: Interpolation, x: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Contact planes of the nodes for the shapes nearest to their vertices.

    Args:
        obstacles: Obstacles.
        shapes: Shapes at the end of the step.
        points: Interpolation of the vertices.
        x: (n, 3) vertex positions [m].

    Returns:
        Shape numbers (planes, q), δ (planes, q) [m], normals (planes, q, 3), displacements of nodes that
        stick to the shapes (planes, q, 3) [m], and friction coefficients (planes, q).
    """
    each = [
        _nearest_vertices(Shapes(shapes.rows[s : s + 1], shapes.values), points, x)
        for s in range(len(shapes.rows))
    ]
    gaps = np.stack([gap for gap, _ in each])
    which = np.argsort(gaps, axis=0, kind="stable")[: obstacles.planes]
    column = np.arange(gaps.shape[1])
    normal = np.stack([normal for _, normal in each])[which, column]
    R = shapes.rows[which, STEP : STEP + 9].reshape(*which.shape, 3, 3)
    advected = np.einsum("pqij,qj->pqi", R, points.nodes) + shapes.rows[which, STEP + 9 : STEP + 12]
    return which, gaps[which, column], normal, advected - points.nodes, shapes.rows[which, FRICTION]


def _nearest_vertices(shape: Shapes, points: Interpolation, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest distance (q,) from a shape among the vertices of each node [m], and its normal (q, 3)."""
    d, normals, _ = distances_to(shape, x)
    nodes, vertices = points.corners.ravel(), np.repeat(np.arange(len(x)), 8)
    order = np.lexsort([vertices, d[vertices], nodes])
    first = order[np.searchsorted(nodes[order], np.arange(len(points.nodes)))]
    nearest = vertices[first]
    return d[nearest], normals[nearest]
