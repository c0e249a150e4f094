"""Jacobi sweeps: all elements step from the same positions, then every vertex moves by the sum of its
elements' steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import generic, lane_range, load, number, number_at, physics
from supple.solvers.corners import element, store_corners
from supple.solvers.projection import (
    VERTICES_PER_ROW,
    Places,
    new_memory,
    project,
    vertex_places,
)
from supple.terms import Term


class JacobiOptions(NamedTuple):
    """relax (rows, 1, lanes): ω over the number of elements at the fullest of each element's vertices; steps
    (rows, 3 k, lanes): those that elements would take; newton_steps: local ones per visit."""

    newton_steps: Any
    relax: Any
    steps: Any


@generic
def moves_of(projection, row, element, share):
    """How far a projection moves the corners of the elements in a row, if that share of it is made."""


@physics
def propose(projection, row, u):
    """The first half of a Jacobi sweep: the steps that elements would take from the same positions. One
    factor for all corners keeps a step what a force of the element can do; the average at each vertex [GPBD
    section 3.1] would not keep momentum, nor lead to the same positions."""
    options = projection.options
    moves = moves_of(projection, row, element(projection.places, row, u), load(options.relax, row, 0))
    store_corners(options.steps, row, 0, moves)


def jacobi_options(newton_steps: int, omega: float, term: Term, places: Places) -> JacobiOptions:
    (steps,) = new_memory(places, 3 * places.weights.shape[1])
    return JacobiOptions(newton_steps, relaxation(omega, term, places), steps)


class StepSum(NamedTuple):
    """The second half of a Jacobi sweep: every vertex moves by the sum of its elements' steps. Row r is the
    next VERTICES_PER_ROW vertices; entries visit[v] to visit[v + 1] of place tell where among all numbers the
    steps of vertex v lie: that of x, followed by those of y and z one row's lanes further on each."""

    places: Any
    memory: Any
    visit: Any
    place: Any
    steps: Any


@project.of(StepSum)
def _project_step_sum(projection, row, u):
    steps = projection.steps
    lanes = steps.shape[2]
    first, step = lane_range(row, lanes)
    start = number(row) * VERTICES_PER_ROW
    for v in range(start + first, min(len(projection.visit) - 1, start + VERTICES_PER_ROW), step):
        x, y, z = u[v, 0], u[v, 1], u[v, 2]
        for i in range(projection.visit[v], projection.visit[v + 1]):
            k = projection.place[i]
            x += number_at(steps, k)
            y += number_at(steps, k + lanes)
            z += number_at(steps, k + 2 * lanes)
        u[v, 0], u[v, 1], u[v, 2] = x, y, z


def relaxation(omega: float, term: Term, places: Places) -> np.ndarray:
    """(rows, 1, lanes): ω over the number of elements at the fullest of each element's vertices."""
    ids = _ids(places)
    valence = np.maximum(np.bincount(term.vertices.ravel(), minlength=int(ids.max()) + 2), 1)
    return (omega / valence[ids].max(axis=1, keepdims=True)).astype(places.weights.dtype)


def step_sum(places: Places, steps: np.ndarray) -> StepSum:
    """What sums up steps (rows, 3 k, lanes) of the k corners of each element, where there is one that may
    move."""
    ids = _ids(places)
    n, (corners, lanes) = int(ids.max()) + 1, places.weights.shape[1:]
    there = places.rows.rest[:, -1:] > 0
    vertex = np.where(there & (places.weights > 0), ids, -1)
    row, corner, lane = np.nonzero(vertex >= 0)
    flat = (row * corners + corner) * 3 * lanes + lane
    order = np.argsort(vertex[row, corner, lane], kind="stable")
    visit = np.searchsorted(vertex[row, corner, lane][order], np.arange(n + 1))
    return StepSum(vertex_places(n), (), visit, flat[order], steps)


def in_one_colour(places: Places) -> Places:
    """The same elements, all at once."""
    batches = len(places.own) if isinstance(places.start, tuple) else len(places.start) - 1
    return places._replace(colour_start=np.array([0, batches]))


def _ids(places: Places) -> np.ndarray:
    """(rows, k, lanes): the vertices of all corners."""
    return np.concatenate([places.own, places.rows.others], axis=1)
