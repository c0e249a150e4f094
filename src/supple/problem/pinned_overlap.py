"""Overlaps of dynamic rigid bodies with pinned parts of bodies; pinned vertices do not push rigid bodies.

A rigid body overlaps a pinned part if a fully pinned face of its surface is deeper inside than a hundredth of
the mean edge, or if its center is in a fully pinned tetrahedron.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from supple.contact.faces import DEPTHS, deepest
from supple.contact.shapes import distance
from supple.kernels import kernel
from supple.problem.pierced import SLIGHT

if TYPE_CHECKING:
    from supple.problem.contacts import Contacts


@dataclass(frozen=True)
class PinnedOverlap:
    """A pinned part of a body that a rigid body overlaps.

    Attributes:
        body: Name of the body.
        depth: Depth of the overlap [m].
    """

    body: str
    depth: float

    def sentence(self, obstacle: str) -> str:
        return (
            f"the rigid body {obstacle!r} is {self.depth:.2g} m deep in a pinned part of {self.body!r}: "
            "pinned vertices do not push rigid bodies; pin only vertices that it cannot reach, or put an "
            "obstacle there"
        )


@kernel
def _measure_depths(shapes, k, corners, depths):
    """Depths (t,) [m] of the k-th shape in triangles with corners (t, 3, 3) [m]; 0 outside."""
    for i in range(len(corners)):
        a = (corners[i, 0, 0], corners[i, 0, 1], corners[i, 0, 2])
        b = (corners[i, 1, 0], corners[i, 1, 1], corners[i, 1, 2])
        c = (corners[i, 2, 0], corners[i, 2, 1], corners[i, 2, 2])
        depths[i] = -deepest(shapes, k, a, b, c, 0.0, DEPTHS).distance


@kernel
def _depth_at(shapes, k, x, depths):
    """Depth (1,) [m] of a point x (3,) in the k-th shape."""
    d, _ = distance(shapes, k, (x[0], x[1], x[2]))
    depths[0] = -d


def find_pinned_overlaps(contacts: Contacts) -> list[tuple[int, PinnedOverlap]]:
    """Return the deepest overlap of every rigid body with pinned parts, with its obstacle index."""
    model, states = contacts.model, contacts.states
    if not contacts.rigid or contacts.obstacles is None or model.free.all():
        return []
    contacts.device.pull(states.u)
    x = model.rest + states.vectors(states.u)[0].astype(float)
    faces, tets = _pinned_cells(contacts)
    overlaps = []
    for motion in contacts.rigid:
        row = motion.body.row
        depths = np.zeros(len(faces))
        _measure_depths(contacts.shapes, row, x[faces], depths)
        holding = tets[_contains(x[tets], motion.centre)]
        depth, vertex = 0.0, -1
        if len(faces) and depths.max() > SLIGHT * model.mean_edge:
            depth, vertex = float(depths.max()), int(faces[depths.argmax(), 0])
        if len(holding):
            inside = np.zeros(1)
            _depth_at(contacts.shapes, row, motion.centre, inside)
            depth, vertex = max(depth, float(inside[0])), int(holding[0, 0])
        if vertex >= 0:
            body = next(name for name, own in model.body_vertices if own.start <= vertex < own.stop)
            overlaps.append((int(contacts.obstacles.obstacle[row]), PinnedOverlap(body, depth)))
    return overlaps


def _pinned_cells(contacts: Contacts) -> tuple[np.ndarray, np.ndarray]:
    """(t, 3) surface triangles and (m, 4) tetrahedra whose corners are all pinned."""
    model = contacts.model
    own = [np.asarray(body.mesh.surface) + body.vertices.start for body in model.bodies]
    faces = np.concatenate([np.empty((0, 3), np.int64), *own])
    pinned = ~model.free
    return faces[pinned[faces].all(axis=1)], model.tets[pinned[model.tets].all(axis=1)]


def _contains(corners: np.ndarray, point: np.ndarray) -> np.ndarray:
    """(m,) True if a tetrahedron with corners (m, 4, 3) [m] contains a point (3,) [m]."""
    edges = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    sound = np.abs(np.linalg.det(edges)) > 0
    weights = np.full((len(corners), 3), -1.0)
    weights[sound] = np.linalg.solve(edges[sound], (point - corners[sound, 0])[..., None])[..., 0]
    return (weights >= 0).all(axis=1) & (weights.sum(axis=1) <= 1)
