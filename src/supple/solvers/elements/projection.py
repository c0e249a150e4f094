"""Projections: what an element-wise method does with the elements of a term, and who can do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supple.kernels import generic, lane_range, number
from supple.problem.records import act


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


def remarks(projections: tuple, sweeps: int) -> list[str]:
    """What reports say of projections after so many sweeps of a step; each sentence once."""
    found = [remark for q in projections if hasattr(q, "remark") and (remark := q.remark(sweeps))]
    return list(dict.fromkeys(found))


Maker = Callable[[Any, Any, Places], list]
"""(method, term, places) -> its projections of that term."""

_makers: dict[tuple[type, type], Maker] = {}


def projects(method: type, rows: type) -> Callable[[Maker], Maker]:
    """Registers what a method does with terms of this kind, those of subclasses included."""

    def register(make: Maker) -> Maker:
        _makers[method, rows] = make
        return make

    return register


def maker_for(method: Any, term: Any, rows: Any) -> Maker:
    """Who makes the projections of a term with such rows, or a refusal that says which methods can."""
    make = _maker(type(method), type(rows))
    if make is None:
        raise ValueError(
            f"{method.name} cannot treat {term.name}: it has no projection for them; "
            f"{', '.join(_who_can(type(rows)))} can"
        )
    return make


def require(method: str, material: Any, *functions: Any) -> None:
    """Refuse a material that lacks functions which a method needs."""
    missing = [function.__name__ for function in functions if not function.known(type(material))]
    if missing:
        raise ValueError(
            f"{method} needs {' and '.join(missing)} of a material, and {type(material).__name__} does not "
            "have that; pbng and newton take any material"
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
