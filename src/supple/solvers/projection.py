"""Projections: how an element-wise method visits the elements of a term, colour by colour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from supple.algebra.holding import free_part
from supple.algebra.matrix3 import add, dot, matvec, scale
from supple.kernels import (
    chosen_by_type,
    do,
    each,
    gather,
    generic,
    kernel,
    lane_range,
    load,
    number,
    physics,
    row_at,
    scatter,
    store,
    total,
    unrolled,
)
from supple.ordering import colour_bounds, each_colour
from supple.problem.held import six
from supple.problem.records import act, begin_step
from supple.terms.elastic import (
    corner_count,
    corners,
    from_start,
    material_at,
    rest_volume,
    shape_gradients,
)


class Places(NamedTuple):
    """Where the elements of a term are: colour_start (colours + 1,) the first batch of each colour; start the
    first row of each batch, or () where every batch is one row; own (rows, 1, lanes) the first corner of each
    element; rows: the term's data; weights (rows, k, lanes): W [m/N] of all corners, the first one's
    leading; held (rows, 6 k, lanes): N of all corners, or () where none is held along some directions."""

    colour_start: Any
    start: Any
    own: Any
    rows: Any
    weights: Any
    held: Any = ()


class Projection(NamedTuple):
    """A method's way with the elements of a term, a subclass for each. memory: arrays (rows, fields, lanes)
    of what it remembers of them, 0 when a step begins; options: whatever else it needs."""

    places: Any
    memory: Any = ()
    options: Any = ()


@generic
def project(projection, row, u):
    """Visit the elements in one row: update the displacement records u of their corners and the method's
    memory of them."""


@generic
def exert(projection, row, u):
    """Move the corners of the elements in one row by W times the forces that the method remembers."""


class Exerted(NamedTuple):
    """A projection of which only the remembered forces are exerted, from nothing."""

    places: Any
    projection: Any


@project.of(Exerted)
def _project_exerted(exerted, row, u):
    exert(exerted.projection, row, u)


VERTICES_PER_ROW = 32
"""Vertices that projections of vertices, not of elements, take together."""


class VertexPlaces(NamedTuple):
    """Vertices in one colour, VERTICES_PER_ROW in every row."""

    colour_start: Any
    start: Any


def vertex_places(count: int) -> VertexPlaces:
    return VertexPlaces(np.array([0, -(-count // VERTICES_PER_ROW)]), ())


class PutBack(NamedTuple):
    """The end of a sweep for vertices (h,) that are held along some directions: their held coordinates, which
    rounding may have moved, are prescribed anew."""

    places: Any
    memory: Any
    vertices: Any
    put: Any


@project.of(PutBack)
@exert.of(PutBack)
def _put_back(projection, row, u):
    first, step = lane_range(row, VERTICES_PER_ROW)
    start = number(row) * VERTICES_PER_ROW
    for j in range(start + first, min(len(projection.vertices), start + VERTICES_PER_ROW), step):
        act(projection.put, row, projection.vertices[j])


Maker = Callable[[Any, Any, Places], list]
"""(method, term, places) -> its projections of that term."""

_makers: dict[tuple[type, type], Maker] = {}


def projects(method: type, rows: type) -> Callable[[Maker], Maker]:
    """Registers what a method does with terms of this kind, those of subclasses included."""

    def register(make: Maker) -> Maker:
        _makers[method, rows] = make
        return make

    return register


def make_projections(method: Any, term: Any, places: Places) -> list:
    """The projections of a term, or a refusal that says who can."""
    make = _maker(type(method), type(places.rows))
    if make is None:
        raise ValueError(
            f"{method.name} cannot treat {term.name}: it has no projection for them; "
            f"{', '.join(_who_can(type(places.rows)))} can"
        )
    return make(method, term, places)


def require(method: str, material: Any, *functions: Any) -> None:
    """Refuse a material that lacks functions which a method needs."""
    missing = [function.__name__ for function in functions if not function.known(type(material))]
    if missing:
        raise ValueError(
            f"{method} needs {' and '.join(missing)} of a material, and {type(material).__name__} does not "
            "have that; pbng and newton take any material"
        )


def require_isotropic(method: str, material: Any) -> None:
    """Refuse a material that is not the same in all directions."""
    if not material.isotropic:
        raise ValueError(
            f"{method} is for materials that are the same in all directions, and "
            f"{type(material).__name__} is not; pbng and newton take any material"
        )


def _maker(method: type, rows: type) -> Maker | None:
    pairs = ((m, r) for m in method.__mro__ for r in rows.__mro__)
    return next((_makers[pair] for pair in pairs if pair in _makers), None)


def _who_can(rows: type) -> list[str]:
    """Solvers for terms of a kind: those that treat any, and all that have a projection."""
    from supple.solvers import SOLVERS

    able = (kind for kind in SOLVERS.values() if kind.any_term or _maker(kind, rows) is not None)
    return [kind.name for kind in able]


def new_memory(places: Places, *fields: int) -> tuple[np.ndarray, ...]:
    """An array for each number of fields."""
    rows, _, lanes = places.weights.shape
    return tuple(np.zeros((rows, count, lanes), places.weights.dtype) for count in fields)


def rows_of(start: Any, batch: int) -> tuple[int, int]:
    """The first row of a batch, and the one that follows its last: both are in `start`, but where that is ()
    and every batch is one row."""
    return start[batch], start[batch + 1]


@chosen_by_type(rows_of)
def _rows_of(start, batch):
    if isinstance(start, types.BaseTuple):
        return lambda start, batch: (batch, batch + 1)
    return lambda start, batch: (start[batch], start[batch + 1])


class Sweep(NamedTuple):
    """Visit all elements of a projection."""

    projection: Any
    u: Any


@do.of(Sweep)
def _sweep_batch(sweep, batch):
    begin, end = rows_of(sweep.projection.places.start, number(batch))
    for k in range(begin, end):
        project(sweep.projection, row_at(batch, k), sweep.u)


def sweep_projections(projections: Any, team: Any, phase: int, u: Any) -> int:
    """Visit every element of every projection once, one projection after the other, colour by colour; returns
    the phase that follows."""
    return phase


@chosen_by_type(sweep_projections, leads_on=True)
def _sweep_projections(projections, team, phase, u):
    if len(projections) == 0:
        return lambda projections, team, phase, u: phase

    def first_then_rest(projections, team, phase, u):
        colours = projections[0].places.colour_start
        bounds = colour_bounds(colours, 0)
        following = each_colour(team, phase, colours, bounds, Sweep(projections[0], u))
        return sweep_projections(projections[1:], team, following, u)

    return first_then_rest


@kernel
def element_sweeps(team, steps, projections, u, sweeps):
    """That many sweeps in every step."""
    phase = 0
    for _ in range(steps.times):
        phase = begin_step(steps, team, phase)
        for _ in range(sweeps):
            phase = sweep_projections(projections, team, phase, u)


# An element's corners as tuples, the one that comes first in its row leading.

spread = each("M, g", "matvec(M, g[i])", matvec, over="g")
"""M gᵢ for all corners: how a derivative M = ∂C/∂F acts on them, ∂C/∂xᵢ = M gᵢ."""

weighted_square = total("W, a, b", "W[i] * dot(a[i], b[i])", dot, over="a")
"""Σ Wᵢ aᵢ · bᵢ."""

plus = each("x, y", "add(x[i], y[i])", add, over="x")
"""xᵢ + yᵢ."""

times = each("s, x", "scale(s, x[i])", scale, over="x")
"""s xᵢ."""

weighted = each("W, a", "scale(W[i], a[i])", scale, over="a")
"""Wᵢ aᵢ."""

shifted = each("x, s, W, a", "add(x[i], scale(s * W[i], a[i]))", add, scale, over="x")
"""xᵢ + s Wᵢ aᵢ."""

outer_sum = unrolled(
    "a, b",
    lambda n: ", ".join(
        " + ".join(f"a[{k}][{p}] * b[{k}][{q}]" for k in range(n)) for p in range(3) for q in range(3)
    ),
    over="a",
)
"""Σ aᵢ bᵢᵀ, a 9-tuple."""

_corner_weights = each("rows, W, row", "load(W, row, i)", load, over="rows", count=corner_count)


@physics
def mobility(W, g):
    """Γ = Σ Wᵢ gᵢ gᵢᵀ: forces -V P gᵢ at the corners change F by -V P Γ."""
    return outer_sum(weighted(W, g), g)


_six_each = each("rows, held, row", "six(held, row, 6 * i)", six, over="rows", count=corner_count)


def held_corners(places: Any, row: Any) -> Any:
    """N of each corner, or () where no vertex is held along some directions."""


@chosen_by_type(held_corners)
def _held_corners(places, row):
    if isinstance(places[Places._fields.index("held")], types.BaseTuple):
        return lambda places, row: ()
    return lambda places, row: _six_each(places.rows, places.held, row)


_free_each = each("N, a", "free_part(N[i], a[i])", free_part, over="N")


def free_corners(N: Any, a: Any) -> Any:
    """aᵢ - Nᵢ aᵢ: what vectors of the corners, such as gradients, have across the directions that are held.
    W then stands for Wᵢ (I - Nᵢ)."""


@chosen_by_type(free_corners)
def _free_corners(N, a):
    if len(N) == 0:
        return lambda N, a: a
    return lambda N, a: _free_each(N, a)


def free_corner(held: Any, row: Any, corner: int, v: Any) -> Any:
    """v - N v of one corner, N as in `Places.held`: what v has across the directions that are held there."""


@chosen_by_type(free_corner)
def _free_corner(held, row, corner, v):
    if isinstance(held, types.BaseTuple):
        return lambda held, row, corner, v: v
    return lambda held, row, corner, v: free_part(six(held, row, 6 * corner), v)


@physics
def corners_of(places, row, u):
    """(x, W): displacements and W of all corners."""
    x = corners(places.rows, row, u, gather(u, places.own, row, 0))
    return x, _corner_weights(places.rows, places.weights, row)


@physics
def element(places, row, u):
    """(x, W, g, V, material): displacements, W and shape gradients of the corners, volume [m³] and
    material."""
    x, W = corners_of(places, row, u)
    rows = places.rows
    return x, W, shape_gradients(rows, row), rest_volume(rows, row), material_at(rows, row)


@physics
def _store_vector(data, row, first, x):
    store(data, row, first, x[0])
    store(data, row, first + 1, x[1])
    store(data, row, first + 2, x[2])


@physics
def load_vector(data, row, first):
    return load(data, row, first), load(data, row, first + 1), load(data, row, first + 2)


_put_others = each(
    "u, others, row, x",
    "scatter(u, others, row, i, x[i + 1])",
    scatter,
    over="x",
    count=lambda x: len(x) - 1,
)


@physics
def put_corners(places, row, u, x):
    """Write the displacements of the corners back."""
    x = from_start(places.rows, row, x)
    scatter(u, places.own, row, 0, x[0])
    _put_others(u, places.rows.others, row, x)


load_corners = each("x, data, row, first", "load_vector(data, row, first + 3 * i)", load_vector, over="x")
"""The numbers of a row from field `first` on, as a vector for each of the corners x."""

store_corners = each(
    "data, row, first, x", "_store_vector(data, row, first + 3 * i, x[i])", _store_vector, over="x"
)
"""The reverse of `load_corners`."""
