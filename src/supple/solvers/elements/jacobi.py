"""Jacobi sweeps: all elements step from the same positions, then every vertex moves by the sum of its
elements' steps, of which there are nᵢ at vertex i. So that these do not add up to too much,

    mass     each element has the share ω/nᵢ of the mass of vertex i: its own problem is solved with nᵢ/ω
             times the mobility and the displacement, and the step is made in full. Forces then act whole,
             momentum and x = x̃ + Σ d hold, and the steps of a vertex are averaged as in the paper;
    vertex   the step is made to the share ω/nᵢ at each vertex [GPBD section 3.1], so that little of soft
             forces acts either, and an element's steps are no longer those of forces that add up to zero;
    element  the step is made to the share ω/n, n of the fullest of the element's vertices: less still acts,
             but momentum holds, and nothing is ever too long.

Near inversion the local problem of a barrier is solved over long ways when masses are small, and elements
take the last of these whatever was asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import det
from supple.kernels import chosen_by_type, each, lane_range, load, number, number_at, physics, select
from supple.solvers.elements.projection import (
    VERTICES_PER_ROW,
    Places,
    new_memory,
    project,
    vertex_places,
)
from supple.terms import Term
from supple.terms.elastic import corner_count, measure

SHARES = ("mass", "vertex", "element")
"""How the steps of elements are kept from adding up to too much."""

NEAR = 0.5
"""Volume ratio below which elements of a material with a barrier count as nearly inverted."""


class JacobiOptions(NamedTuple):
    """newton_steps: local ones per visit; lighter (rows, k, lanes): how many times the mobility of each
    corner an element's own problem has; share (rows, k, lanes): the part of the step that is made; safe
    (rows, 1, lanes): that near inversion, with the mobility as it is; steps (rows, 3 k, lanes): those that
    elements would take."""

    newton_steps: Any
    lighter: Any
    share: Any
    safe: Any
    steps: Any


_of_corners = each("rows, values, row", "load(values, row, i)", load, over="rows", count=corner_count)
_chosen = each("where, one, a", "select(where, one, a[i])", select, over="a")


def nearly_inverted(rows: Any, material: Any, x: Any, g: Any) -> Any:
    """Whether a barrier is near."""


@chosen_by_type(nearly_inverted)
def _nearly_inverted(rows, material, x, g):
    if not getattr(material.instance_class, "barrier", False):
        return lambda rows, material, x, g: 0.0 * x[0][0] > 1.0
    return lambda rows, material, x, g: det(measure(rows, x, g)) < NEAR


@physics
def shares_of(projection, row, x, g, material):
    """(lighter, share) of the corners of the elements in a row: how many times the mobility of each their own
    problem has, and what part of its step is made."""
    options, rows = projection.options, projection.places.rows
    near = nearly_inverted(rows, material, x, g)
    safe = load(options.safe, row, 0)
    lighter = _chosen(near, 0.0 * safe + 1.0, _of_corners(rows, options.lighter, row))
    return lighter, _chosen(near, safe, _of_corners(rows, options.share, row))


def jacobi_options(newton_steps: int, omega: float, shares: str, term: Term, places: Places) -> JacobiOptions:
    (steps,) = new_memory(places, 3 * places.weights.shape[1])
    ids = _ids(places)
    valence = np.maximum(np.bincount(term.vertices.ravel(), minlength=int(ids.max()) + 2), 1)
    each_share = omega / valence[ids]
    safe = omega / valence[ids].max(axis=1, keepdims=True)
    share = np.broadcast_to(safe, each_share.shape) if shares == "element" else each_share
    lighter = 1 / each_share if shares == "mass" else np.ones_like(each_share)
    as_kernels_see = (np.ascontiguousarray(a, places.weights.dtype) for a in (lighter, share, safe))
    lighter, share, safe = as_kernels_see
    return JacobiOptions(newton_steps, lighter, share, safe, steps)


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
    """Places of the elements all at once, in place of colour by colour."""
    batches = len(places.own) if isinstance(places.start, tuple) else len(places.start) - 1
    return places._replace(colour_start=np.array([0, batches]))


def _ids(places: Places) -> np.ndarray:
    """(rows, k, lanes): the vertices of all corners."""
    return np.concatenate([places.own, places.rows.others], axis=1)
