"""Projections: element-wise visits by colour, and a tetrahedron's four corners as tuples."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from supple.algebra.matrix3 import add, dot, matvec, scale
from supple.kernels import (
    chosen_by_type,
    enter,
    gather,
    generic,
    inside,
    kernel,
    leave,
    load,
    number,
    physics,
    proceed,
    row_at,
    scatter,
    store,
)
from supple.solvers.records import begin_step
from supple.terms.tet import deformation_gradient, material_at, own_gradient, shape_gradients

REMEMBERED = ("multipliers", "totals", "stresses", "displacements")
"""Fields in which projections remember what they have done in a step; they start at 0."""


@generic
def project(projection, row, u):
    """Visit the elements in one row: update their vertices' displacement records u and the method's memory of
    them. A projection is a NamedTuple with the fields colour_start, start, own, term and weights
    (rows, k, lanes), W [m/N] of the vertices, and whatever the method remembers, see REMEMBERED."""


@generic
def exert(projection, row, u):
    """Move the vertices of the elements in one row by W times the forces that the method remembers."""


class Exerted(NamedTuple):
    """A projection of which only the remembered forces are exerted, from nothing."""

    colour_start: Any
    start: Any
    projection: Any


@project.of(Exerted)
def _project_exerted(exerted, row, u):
    exert(exerted.projection, row, u)


def rows_of(start: Any, batch: int) -> tuple[int, int]:
    """The first row of a batch, and the one that follows its last: both are in `start`, but where that is ()
    and every batch is one row."""
    return start[batch], start[batch + 1]


@chosen_by_type(rows_of)
def _rows_of(start, batch):
    if isinstance(start, types.BaseTuple):
        return lambda start, batch: (batch, batch + 1)
    return lambda start, batch: (start[batch], start[batch + 1])


def sweep_projections(projections: Any, team: Any, phase: int, u: Any) -> None:
    """Visit every element of every projection once, one projection after the other, colour by colour."""


@chosen_by_type(sweep_projections)
def _sweep_projections(projections, team, phase, u):
    if len(projections) == 0:
        return lambda projections, team, phase, u: None

    def first_then_rest(projections, team, phase, u):
        projection = projections[0]
        colours = len(projection.colour_start) - 1
        first, last = projection.colour_start[0], projection.colour_start[min(1, colours)]
        for colour in range(colours):
            batch = enter(team, phase + colour, first, last)
            while inside(batch, last):
                begin, end = rows_of(projection.start, number(batch))
                for k in range(begin, end):
                    project(projection, row_at(batch, k), u)
                batch = proceed(team, phase + colour, batch, first, last)
            following = projection.colour_start[min(colour + 2, colours)]  # read while others still work
            leave(team, phase + colour, first, last)
            first, last = last, following
        sweep_projections(projections[1:], team, phase + colours, u)

    return first_then_rest


@kernel
def element_sweeps(team, steps, projections, u, sweeps, phases):
    """That many sweeps, each of `phases` phases, in every step."""
    phase = 0
    for _ in range(steps.times):
        phase = begin_step(steps, team, phase)
        for _ in range(sweeps):
            sweep_projections(projections, team, phase, u)
            phase += phases


# A tetrahedron's four corners as tuples, the one that comes first in its row leading.


@physics
def corners(projection, row, u):
    """Displacements of the four corners."""
    others = projection.term.others
    return (
        gather(u, projection.own, row, 0),
        gather(u, others, row, 0),
        gather(u, others, row, 1),
        gather(u, others, row, 2),
    )


@physics
def corner_weights(projection, row):
    """W of the four corners."""
    W = projection.weights
    return (load(W, row, 0), load(W, row, 1), load(W, row, 2), load(W, row, 3))


@physics
def corner_shapes(projection, row):
    """Shape gradients of the four corners [1/m]."""
    g, h, k = shape_gradients(projection.term, row)
    return (own_gradient(g, h, k), g, h, k)


@physics
def tetrahedron(projection, row, u):
    """(x, W, g, V, material): displacements, W and shape gradients of the four corners, volume [m³] and
    material."""
    x, W, g = corners(projection, row, u), corner_weights(projection, row), corner_shapes(projection, row)
    return x, W, g, load(projection.term.rest, row, 9), material_at(projection.term, row)


@physics
def deformation(x, g):
    """F of a tetrahedron from its corners and shape gradients."""
    return deformation_gradient(x[0], x[1], x[2], x[3], g[1], g[2], g[3])


@physics
def spread(M, g):
    """M gᵢ for the four corners: how a derivative M = ∂C/∂F acts on them, ∂C/∂xᵢ = M gᵢ."""
    return (matvec(M, g[0]), matvec(M, g[1]), matvec(M, g[2]), matvec(M, g[3]))


@physics
def weighted_square(W, a, b):
    """Σ Wᵢ aᵢ · bᵢ over the corners."""
    return W[0] * dot(a[0], b[0]) + W[1] * dot(a[1], b[1]) + W[2] * dot(a[2], b[2]) + W[3] * dot(a[3], b[3])


@physics
def plus(x, y):
    """xᵢ + yᵢ for the corners."""
    return (add(x[0], y[0]), add(x[1], y[1]), add(x[2], y[2]), add(x[3], y[3]))


@physics
def times(s, x):
    """s xᵢ for the corners."""
    return (scale(s, x[0]), scale(s, x[1]), scale(s, x[2]), scale(s, x[3]))


@physics
def shifted(x, s, W, a):
    """xᵢ + s Wᵢ aᵢ for the corners."""
    return (
        add(x[0], scale(s * W[0], a[0])),
        add(x[1], scale(s * W[1], a[1])),
        add(x[2], scale(s * W[2], a[2])),
        add(x[3], scale(s * W[3], a[3])),
    )


@physics
def put_corners(projection, row, u, x):
    """Write the displacements of the four corners back."""
    others = projection.term.others
    scatter(u, projection.own, row, 0, x[0])
    scatter(u, others, row, 0, x[1])
    scatter(u, others, row, 1, x[2])
    scatter(u, others, row, 2, x[3])


@physics
def load_corners(data, row, first):
    """Twelve numbers of a row as four corner vectors, from field `first` on."""
    return (
        (load(data, row, first), load(data, row, first + 1), load(data, row, first + 2)),
        (load(data, row, first + 3), load(data, row, first + 4), load(data, row, first + 5)),
        (load(data, row, first + 6), load(data, row, first + 7), load(data, row, first + 8)),
        (load(data, row, first + 9), load(data, row, first + 10), load(data, row, first + 11)),
    )


@physics
def store_corners(data, row, first, x):
    """The reverse of `load_corners`."""
    for axis in range(3):
        store(data, row, first + axis, x[0][axis])
        store(data, row, first + 3 + axis, x[1][axis])
        store(data, row, first + 6 + axis, x[2][axis])
        store(data, row, first + 9 + axis, x[3][axis])
