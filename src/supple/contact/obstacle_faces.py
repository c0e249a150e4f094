"""Penalty contact between faces and obstacles smaller than the faces.

A point of a triangle inside an obstacle has the energy ½ k d² at the penetration depth d: a constraint
between the corners of the triangle and a point of the obstacle, as in penalty contact between bodies. Contact
points are the points of deepest penetration, updated every few iterations. Earlier points are kept until the
end of the step: an object that lies flat on a face needs several points, since each is deepest if the others
alone have constraints. Faces leave an obstacle on the side of the start of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supple.collision.broad_phase.positions import Points
from supple.collision.obstacles.face_contacts import (
    FacePoints,
    advect_points,
    distances_of,
    exit_points,
    points_inside,
    rotate_directions,
    sides_of,
)
from supple.collision.obstacles.rigid_body import ContactForces
from supple.collision.obstacles.signed_distance import FRICTION, OBSTACLE, POSE, Shapes
from supple.contact.state.face_penetration import surface_triangles
from supple.contact.state.friction_state import owners
from supple.contact.state.obstacle_report import FaceForces
from supple.contact.weak_contact import DETECTION_INTERVAL, unless_equivalent
from supple.kernels import HOST
from supple.model.dynamic_term import DynamicTerm
from supple.model.model import Model
from supple.problem import Problem
from supple.problem.diagnostics import rest_stiffness_of
from supple.problem.reactions import ObstacleContacts
from supple.terms import PenaltyContacts
from supple.terms.contact.penalty import NORMAL, NUMBERS, SLIP, STIFFNESS

STIFFNESS_FACTOR = 30.0
"""Contact stiffness relative to the rest stiffness of vertices."""

MAX_CONTACT_DISTANCE = 0.05
"""Distance from the obstacle, in mean edge lengths, beyond which contact points are discarded."""


MIN_NORMAL_COSINE = 0.5
"""Cosine of the largest rotation of a contact normal in a step; a normal beyond it belongs to another side of
the obstacle."""


@dataclass(frozen=True, eq=False)
class FaceContact(DynamicTerm):
    """Face contact method, a `DynamicTerm` that updates contact points of faces with obstacles.

    Attributes:
        triangles: (t, 3) faces.
        stiffness: (t,) contact stiffnesses [N/m].
        small: (r,) 1 for shapes that are small compared to faces.
        edge: Mean edge length [m].
        every: Iterations between updates.
    """

    triangles: np.ndarray
    stiffness: np.ndarray
    small: np.ndarray
    edge: float
    every: int | None = DETECTION_INTERVAL
    resolves_faces = True

    def update(self, problem: Problem, time: float) -> PenaltyContacts | None:
        """Update contacts at the current positions; None if the existing contacts are equivalent."""
        index, contacts, device = self._index(problem.model), problem.contacts, problem.device
        if device.is_remote:
            device.download(problem.u)
        x = problem.positions
        seen = Points.displaced(problem.model.rest, problem.u, device).x if device.is_remote else x
        previous: FacePoints = problem.dynamic_terms.step_cache.get(index, FacePoints.none())
        points = previous.merge(points_inside(seen, self.triangles, contacts.shapes, self.small, device))
        if len(previous.triangle):
            d, _ = distances_of(contacts.shapes, points.shape, self._interpolate(points, points.deepest, x))
            points = points.where(d < MAX_CONTACT_DISTANCE * self.edge)
        problem.dynamic_terms.step_cache[index] = points
        device.download(contacts.start)
        before = contacts.shapes.rows.copy()
        before[:, POSE : POSE + 12] = contacts.before
        start = problem.model.rest + contacts.start[:-1, :3], contacts.shapes._replace(rows=before)
        old: Any = problem.model.terms[index]
        return unless_equivalent(old, self._term(points, contacts.shapes, problem.model, x, start), problem)

    def evaluate_at(
        self, model: Model, x: np.ndarray, time: float, history: Mapping[str, Any]
    ) -> PenaltyContacts:
        """Contacts at positions x (n, 3) [m] and a time [s], outside of a solve and without slip."""
        assert model.obstacles is not None
        shapes = model.obstacles.shapes(time)
        points = points_inside(np.ascontiguousarray(x), self.triangles, shapes, self.small, HOST)
        return replace(self._term(points, shapes, model, x), capacity=max(1, len(points.triangle)))

    def _index(self, model: Model) -> int:
        """Index of the energy term of this method."""
        return next(k for k, own in model.dynamic_terms if own is self)

    def _interpolate(self, points: FacePoints, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(m, 3) points of faces [m] with weights (m, 3), at positions x (n, 3) [m]."""
        return np.asarray(np.einsum("mk,mki->mi", weights, x[self.triangles[points.triangle]]))

    def _term(
        self,
        points: FacePoints,
        shapes: Shapes,
        model: Model,
        x: np.ndarray,
        start: tuple[np.ndarray, Shapes] | None = None,
    ) -> PenaltyContacts:
        """Contact energy term.

        Args:
            points: Contact points of faces.
            shapes: Obstacle shapes.
            model: Model with this method.
            x: (n, 3) positions [m].
            start: Positions (n, 3) [m] and shapes at the start of the step; None for zero slip.
        """
        w, deepest, shape_ids = points.weights, points.deepest, points.shape
        points_on_faces = self._interpolate(points, deepest, x)
        d, n = distances_of(shapes, shape_ids, points_on_faces)
        moved = self._interpolate(points, w, x - model.rest)
        o = -moved
        if start is not None:
            start_points = self._interpolate(points, w, start[0])
            o += self._interpolate(points, w, x) - advect_points(shapes, shape_ids, start_points)
            side = sides_of(points, start[0], self.triangles, start[1])
            d, n = _correct_sides(
                shapes, shape_ids, points_on_faces, d, n, rotate_directions(shapes, shape_ids, side)
            )
        o -= (n * o).sum(axis=1)[:, None] * n
        numbers = np.empty((len(d), NUMBERS))
        numbers[:, NORMAL:SLIP], numbers[:, SLIP : SLIP + 3] = n, o
        gap, mu = d - (n * moved).sum(axis=1), shapes.rows[points.shape, FRICTION]
        numbers[:, SLIP + 3 :] = np.column_stack([gap, self.stiffness[points.triangle], mu])
        keys = np.column_stack([points.triangle, points.shape])
        vertices = self.triangles[points.triangle].astype(np.int32)
        return PenaltyContacts(vertices, points.weights, numbers, 0, False, keys)

    def contact_force(self, problem: Problem, row: int, stiffness: np.ndarray) -> ContactForces:
        """Contact forces of faces on a rigid body.

        Args:
            problem: Problem with this method.
            row: Shape of the rigid body.
            stiffness: (n,) vertex stiffnesses [N/m].
        """
        term: Any = problem.model.terms[self._index(problem.model)]
        u = problem.states.vectors(problem.u)[0].astype(float)
        forces = term.forces(u)
        own = (term.keys[:, 1] == row) & forces.any(axis=1)
        vertices, weights = term.vertices[own], term.weights[own]
        points = np.einsum("mk,mki->mi", weights, (problem.model.rest + u)[vertices])
        n = np.pad(term.numbers[own, NORMAL:SLIP][:, None], ((0, 0), (0, 2), (0, 0)))
        directions = np.broadcast_to(np.eye(3), (len(n), 3, 3)) if problem.contacts.has_friction else n
        through = (weights**2 * _softness(term, vertices, stiffness)[vertices]).sum(axis=1)
        yields = 1 / term.numbers[own, STIFFNESS] + through
        return ContactForces(points, -forces[own], directions, 1 / yields)

    def obstacle_contacts(self, model: Model, x: np.ndarray) -> ObstacleContacts:
        """Obstacle forces on the corners of faces, at positions x (n, 3) [m]."""
        assert model.obstacles is not None
        term: Any = model.terms[self._index(model)]
        forces = term.weights[:, :, None] * term.forces(x - model.rest)[:, None]
        obstacle = np.repeat(model.obstacles.obstacle[term.keys[:, 1]], 3)
        return ObstacleContacts(model.obstacles.names, term.vertices.ravel(), obstacle, forces.reshape(-1, 3))

    def face_forces(self, problem: Problem) -> FaceForces:
        """Sums of obstacle forces on faces at the current displacements, per obstacle and per body."""
        model, contacts = problem.model, problem.contacts
        assert model.obstacles is not None
        term: Any = model.terms[self._index(model)]
        u = problem.states.vectors(problem.u)[0].astype(float)
        forces, normal_force = term.forces(u), term.response(u).normal_force
        points_on_faces = np.einsum("mk,mki->mi", term.weights, (model.rest + u)[term.vertices])
        d, _ = distances_of(contacts.shapes, term.keys[:, 1], points_on_faces)
        obstacle = contacts.shapes.rows[term.keys[:, 1], OBSTACLE].astype(int)
        body = owners(model)[term.vertices[:, 0]]
        return FaceForces(
            _sums(forces, obstacle, len(model.obstacles.names)),
            np.bincount(obstacle[normal_force > 0], minlength=len(model.obstacles.names)),
            _sums(forces, body, len(model.body_vertices)),
            np.bincount(body, normal_force * np.abs(d), len(model.body_vertices)),
        )


def _softness(term: PenaltyContacts, vertices: np.ndarray, stiffness: np.ndarray) -> np.ndarray:
    """(n,) compliance of vertices without their contacts [m/N].

    The contacts are part of the vertex stiffness (n,) [N/m]. A vertex is weighted by its number of
    occurrences in vertices (m, 3), which share the compliance.
    """
    own = np.zeros(len(stiffness))
    np.add.at(own, term.vertices, term.weights**2 * term.numbers[:, STIFFNESS, None] / 3)
    shared = np.bincount(vertices.ravel(), minlength=len(stiffness))
    return shared / np.maximum(stiffness - own, 1e-3 * np.maximum(stiffness, 1e-300))


def _correct_sides(
    shapes: Shapes,
    shape_ids: np.ndarray,
    points_on_faces: np.ndarray,
    d: np.ndarray,
    n: np.ndarray,
    side: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Correct distances and normals of points closer to another side of an obstacle.

    Deep points receive the distance and normal of the side on which they started the step.

    Args:
        shapes: Obstacle shapes.
        shape_ids: (m,) shape of each point.
        points_on_faces: (m, 3) points [m].
        d: (m,) distances [m].
        n: (m, 3) normals.
        side: (m, 3) directions of the initial side.

    Returns:
        Distances (m,) [m] and normals (m, 3).
    """
    past = np.flatnonzero((d < 0) & ((n * side).sum(axis=1) < MIN_NORMAL_COSINE))
    closest = exit_points(shapes, shape_ids[past], points_on_faces[past], side[past])
    normal = distances_of(shapes, shape_ids[past], closest)[1]
    d, n = d.copy(), n.copy()
    d[past], n[past] = ((points_on_faces[past] - closest) * normal).sum(axis=1), normal
    return d, n


def _sums(forces: np.ndarray, shape_ids: np.ndarray, count: int) -> np.ndarray:
    """Sums (count, 3) of forces (m, 3) [N] by index."""
    return np.stack([np.bincount(shape_ids, axis, count) for axis in forces.T], axis=1)


def with_face_contact(model: Model, small: np.ndarray, edge: float) -> Model:
    """Add face contact to a model.

    Args:
        model: Model without it.
        small: (r,) nonzero for obstacle shapes that are small compared to faces.
        edge: Mean edge length of the surfaces [m].
    """
    triangles = surface_triangles(model)
    bare = replace(model, dynamic_terms=(), obstacles=None, velocities=None, grid=None)
    stiffness = rest_stiffness_of(Problem(bare, "float64", 1).diagnostics) / 3
    contact = FaceContact(triangles, STIFFNESS_FACTOR * stiffness[triangles].max(axis=1), small, edge)
    empty = np.empty((0, 3))
    none = PenaltyContacts(
        empty.astype(np.int32), empty, np.empty((0, NUMBERS)), 64, False, np.empty((0, 2), np.int64)
    )
    dynamic_terms = (*model.dynamic_terms, (len(model.terms), contact))
    return replace(model, terms=(*model.terms, none), dynamic_terms=dynamic_terms)
