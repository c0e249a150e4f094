"""Frictional contact of vertices with obstacles in element-wise methods: the last projections of a sweep."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.state.obstacle_kernels import ApplyStoredForces, ProjectOntoPlane
from supple.kernels import item_number, lane_range
from supple.problem import Problem
from supple.problem.vertex_kernels import apply_operation
from supple.solvers.elementwise.projection import (
    VERTICES_PER_ROW,
    VertexRows,
    apply_stored_forces,
    project,
    vertex_rows,
)


class ContactProjection(NamedTuple):
    """Obstacle contact of the movable vertices with their k-th contact planes.

    Attributes:
        memory: Contact forces, padded vectors [N].
        vertices: (f,) vertices that may touch an obstacle.
        update_forces: Operation that updates the forces and moves the vertices.
        apply_forces: Operation that applies the stored forces.
    """

    elements: Any
    memory: Any
    vertices: Any
    update_forces: Any
    apply_forces: Any


def contact_projections(problem: Problem, weights: np.ndarray) -> list[ContactProjection]:
    """Create one projection for each plane that a vertex may touch simultaneously.

    Args:
        problem: Problem.
        weights: (n + 1,) W [m/N].
    """
    vertices = np.flatnonzero(weights[:-1] > 0)
    elements: VertexRows = vertex_rows(len(vertices))
    W = weights.astype(problem.dtype)
    projections = []
    planes = problem.contacts.planes
    for k in range(len(planes.normal) if planes else 0):
        memory = problem.zeros(problem.u.shape)
        update_forces, apply_forces = (
            ProjectOntoPlane(problem.u, W, planes, k, memory),
            ApplyStoredForces(problem.u, W, memory),
        )
        projections.append(ContactProjection(elements, (memory,), vertices, update_forces, apply_forces))
    return projections


@project.of(ContactProjection)
def _project_contact(projection, row, u):
    first, step = lane_range(row, VERTICES_PER_ROW)
    start = item_number(row) * VERTICES_PER_ROW
    for j in range(start + first, min(len(projection.vertices), start + VERTICES_PER_ROW), step):
        apply_operation(projection.update_forces, row, projection.vertices[j])


@apply_stored_forces.of(ContactProjection)
def _apply_contact_forces(projection, row, u):
    first, step = lane_range(row, VERTICES_PER_ROW)
    start = item_number(row) * VERTICES_PER_ROW
    for j in range(start + first, min(len(projection.vertices), start + VERTICES_PER_ROW), step):
        apply_operation(projection.apply_forces, row, projection.vertices[j])
