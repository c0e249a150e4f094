"""Jacobi sweeps: all elements compute steps from the same positions, then every vertex moves by their sum.

Vertex i has nᵢ elements. Three kinds of shares keep the sum of their steps from overshooting:

    mass     each element has the share ω/nᵢ of the mass of vertex i: its own problem is solved with nᵢ/ω
             times the mobility and the displacement, and the step is made in full. Forces then act fully,
             momentum and x = x̃ + Σ d are conserved, and the steps of a vertex are averaged as in the paper;
    vertex   each vertex takes the fraction ω/nᵢ of the step [GPBD section 3.1]. Soft forces, too, then act
             by a small fraction only, and an element's steps no longer follow from forces with zero sum;
    element  the element takes the fraction ω/n of its step, n the largest nᵢ of its vertices. Forces act by a
             still smaller fraction, but momentum is conserved, and no step is ever too long.

Near inversion, the local problem of a barrier material takes long steps if masses are small. Such elements
use the shares of "element" whatever the option.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import det
from supple.kernels import (
    device_function,
    each,
    item_number,
    lane_range,
    load,
    number_at,
    overload_by_type,
    where,
)
from supple.solvers.elementwise.projection import (
    VERTICES_PER_ROW,
    WeightedElements,
    new_memory,
    project,
    vertex_rows,
)
from supple.terms import Term
from supple.terms.base.elastic import corner_count, measure

JACOBI_WEIGHTS = ("mass", "vertex", "element")
"""Kinds of shares, see above."""

NEAR_INVERSION = 0.5
"""Volume ratio below which elements of barrier materials count as nearly inverted."""


class JacobiOptions(NamedTuple):
    """Options of Jacobi projections.

    Attributes:
        newton_steps: Local Newton steps per visit.
        mobility_factor: (rows, k, lanes) factor of the mobility of each corner in the element's own problem.
        share: (rows, k, lanes) fraction of the step that is made.
        safe: (rows, 1, lanes) fraction near inversion, with unscaled mobility.
        steps: (rows, 3 k, lanes) proposed steps of the corners [m].
    """

    newton_steps: Any
    mobility_factor: Any
    share: Any
    safe: Any
    steps: Any


_of_corners = each("rows, values, row", "load(values, row, i)", load, over="rows", count=corner_count)
_where_each = each("mask, one, a", "where(mask, one, a[i])", where, over="a")


def nearly_inverted(rows: Any, material: Any, x: Any, g: Any) -> Any:
    """True for elements of barrier materials with a volume ratio below `NEAR_INVERSION`."""


@overload_by_type(nearly_inverted)
def _nearly_inverted(rows, material, x, g):
    if not getattr(material.instance_class, "barrier", False):
        return lambda rows, material, x, g: 0.0 * x[0][0] > 1.0
    return lambda rows, material, x, g: det(measure(rows, x, g)) < NEAR_INVERSION


@device_function
def load_shares(projection, row, x, g, material):
    """(mobility_factor, share) of the corners of the elements in a row, see `JacobiOptions`.

    Nearly inverted elements have the mobility factor 1 and the share `safe`.
    """
    options, rows = projection.options, projection.elements.rows
    near = nearly_inverted(rows, material, x, g)
    safe = load(options.safe, row, 0)
    mobility_factor = _where_each(near, 0.0 * safe + 1.0, _of_corners(rows, options.mobility_factor, row))
    return mobility_factor, _where_each(near, safe, _of_corners(rows, options.share, row))


def jacobi_options(
    newton_steps: int, omega: float, shares: str, term: Term, elements: WeightedElements
) -> JacobiOptions:
    (steps,) = new_memory(elements, 3 * elements.weights.shape[1])
    ids = _ids(elements)
    valence = np.maximum(np.bincount(term.vertices.ravel(), minlength=int(ids.max()) + 2), 1)
    each_share = omega / valence[ids]
    safe = omega / valence[ids].max(axis=1, keepdims=True)
    share = np.broadcast_to(safe, each_share.shape) if shares == "element" else each_share
    mobility_factor = 1 / each_share if shares == "mass" else np.ones_like(each_share)
    converted = (np.ascontiguousarray(a, elements.weights.dtype) for a in (mobility_factor, share, safe))
    mobility_factor, share, safe = converted
    return JacobiOptions(newton_steps, mobility_factor, share, safe, steps)


class StepSum(NamedTuple):
    """Second half of a Jacobi sweep: every vertex moves by the sum of its elements' steps.

    Row r of the projection is a run of VERTICES_PER_ROW vertices.

    Attributes:
        start: (n + 1,) first entry of each vertex in `entry`.
        entry: Flat index of the x component of each step; y and z follow at distances of one row's lanes.
        steps: (rows, 3 k, lanes) proposed steps of the corners [m].
    """

    elements: Any
    memory: Any
    start: Any
    entry: Any
    steps: Any


@project.of(StepSum)
def _project_step_sum(projection, row, u):
    steps = projection.steps
    lanes = steps.shape[2]
    first, step = lane_range(row, lanes)
    start = item_number(row) * VERTICES_PER_ROW
    for v in range(start + first, min(len(projection.start) - 1, start + VERTICES_PER_ROW), step):
        x, y, z = u[v, 0], u[v, 1], u[v, 2]
        for i in range(projection.start[v], projection.start[v + 1]):
            k = projection.entry[i]
            x += number_at(steps, k)
            y += number_at(steps, k + lanes)
            z += number_at(steps, k + 2 * lanes)
        u[v, 0], u[v, 1], u[v, 2] = x, y, z


def step_sum(elements: WeightedElements, steps: np.ndarray) -> StepSum:
    """Create the sum of steps (rows, 3 k, lanes) over all corners that exist and may move."""
    ids = _ids(elements)
    n, (corners, lanes) = int(ids.max()) + 1, elements.weights.shape[1:]
    exists = elements.rows.rest[:, -1:] > 0
    vertex = np.where(exists & (elements.weights > 0), ids, -1)
    row, corner, lane = np.nonzero(vertex >= 0)
    flat = (row * corners + corner) * 3 * lanes + lane
    order = np.argsort(vertex[row, corner, lane], kind="stable")
    start = np.searchsorted(vertex[row, corner, lane][order], np.arange(n + 1))
    return StepSum(vertex_rows(n), (), start, flat[order], steps)


def merge_colors(elements: WeightedElements) -> WeightedElements:
    """Assign all elements to one color."""
    batches = len(elements.own) if isinstance(elements.start, tuple) else len(elements.start) - 1
    return elements._replace(color_start=np.array([0, batches]))


def _ids(elements: WeightedElements) -> np.ndarray:
    """(rows, k, lanes) vertices of all corners."""
    return np.concatenate([elements.own, elements.rows.others], axis=1)
