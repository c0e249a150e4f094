"""Obstacle contact in element-wise methods: contact forces act on single vertices after each sweep."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import lane_range, number
from supple.problem import Problem
from supple.problem.contact_records import Exert, Press
from supple.problem.records import act
from supple.solvers.elements.projection import VERTICES_PER_ROW, VertexPlaces, exert, project, vertex_places


class Touching(NamedTuple):
    """Obstacle contact of the movable vertices with their k-th contact planes.

    Attributes:
        memory: Contact forces, padded vectors [N].
        vertices: (f,) vertices that may touch an obstacle.
        press: Operation that updates the forces and moves the vertices.
        exertion: Operation that applies the stored forces.
    """

    places: Any
    memory: Any
    vertices: Any
    press: Any
    exertion: Any


def touching(problem: Problem, weights: np.ndarray) -> list[Touching]:
    """Create one projection for each plane that a vertex may touch simultaneously.

    Args:
        problem: Problem.
        weights: (n + 1,) W [m/N].
    """
    vertices = np.flatnonzero(weights[:-1] > 0)
    places: VertexPlaces = vertex_places(len(vertices))
    W = weights.astype(problem.dtype)
    found = []
    planes = problem.contacts.planes
    for k in range(len(planes.normal) if planes else 0):
        memory = problem.zeros(problem.u.shape)
        press, exertion = Press(problem.u, W, planes, k, memory), Exert(problem.u, W, memory)
        found.append(Touching(places, (memory,), vertices, press, exertion))
    return found


@project.of(Touching)
def _project_touching(projection, row, u):
    first, step = lane_range(row, VERTICES_PER_ROW)
    start = number(row) * VERTICES_PER_ROW
    for j in range(start + first, min(len(projection.vertices), start + VERTICES_PER_ROW), step):
        act(projection.press, row, projection.vertices[j])


@exert.of(Touching)
def _exert_touching(projection, row, u):
    first, step = lane_range(row, VERTICES_PER_ROW)
    start = number(row) * VERTICES_PER_ROW
    for j in range(start + first, min(len(projection.vertices), start + VERTICES_PER_ROW), step):
        act(projection.exertion, row, projection.vertices[j])
