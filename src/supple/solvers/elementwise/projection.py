"""Projections (a method's element updates for each class of terms) and their registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supple.kernels import generic, item_number, lane_range
from supple.problem.vertex_kernels import apply_operation


class WeightedElements(NamedTuple):
    """Packed elements of a term.

    Attributes:
        color_start: (colors + 1,) first batch of each color.
        start: First row of each batch, or () if every batch is one row.
        own: (rows, 1, lanes) first corner of each element.
        rows: Packed element data of the term.
        weights: (rows, k, lanes) W of all corners, starting with the first one [m/N].
        constrained: (rows, 6 k, lanes) N of all corners, or () if no vertex is constrained along
            some directions only.
    """

    color_start: Any
    start: Any
    own: Any
    rows: Any
    weights: Any
    constrained: Any = ()


class Projection(NamedTuple):
    """Element update of a method for the elements of a term. Each method defines subclasses.

    Attributes:
        elements: Packed elements.
        memory: Arrays (rows, fields, lanes) of history variables, 0 at the start of a step.
        options: Further data.
    """

    elements: Any
    memory: Any = ()
    options: Any = ()


@generic
def project(projection, row, u):
    """Update the elements in one row: the displacements u of their corners and the history variables."""


@generic
def apply_stored_forces(projection, row, u):
    """Move the corners of the elements in one row by W times the stored forces."""


class StoredForces(NamedTuple):
    """Application of another projection's stored forces at the start of a step."""

    elements: Any
    projection: Any


@project.of(StoredForces)
def _project_stored_forces(exerted, row, u):
    apply_stored_forces(exerted.projection, row, u)


VERTICES_PER_ROW = 32
"""Vertices per row in projections of vertices instead of elements."""


class VertexRows(NamedTuple):
    """Vertices of one color, VERTICES_PER_ROW per row."""

    color_start: Any
    start: Any


def vertex_rows(count: int) -> VertexRows:
    return VertexRows(np.array([0, -(-count // VERTICES_PER_ROW)]), ())


class PrescribedCoordinates(NamedTuple):
    """Last projection of a sweep: restore prescribed coordinates, which rounding may have changed.

    Attributes:
        vertices: (h,) vertices that are constrained along some directions.
        prescribe: Operation on the padded vectors that prescribes the coordinates.
    """

    elements: Any
    memory: Any
    vertices: Any
    prescribe: Any


@project.of(PrescribedCoordinates)
@apply_stored_forces.of(PrescribedCoordinates)
def _restore_prescribed(projection, row, u):
    first, step = lane_range(row, VERTICES_PER_ROW)
    start = item_number(row) * VERTICES_PER_ROW
    for j in range(start + first, min(len(projection.vertices), start + VERTICES_PER_ROW), step):
        apply_operation(projection.prescribe, row, projection.vertices[j])


def collect_remarks(projections: tuple, sweeps: int) -> list[str]:
    """Report remarks of the projections after `sweeps` sweeps of a step, without duplicates."""
    remarks = [remark for q in projections if hasattr(q, "remark") and (remark := q.remark(sweeps))]
    return list(dict.fromkeys(remarks))


Maker = Callable[[Any, Any, WeightedElements], list]
"""(method, term, elements) -> projections of the method for the term."""

_makers: dict[tuple[type, type], Maker] = {}


def projects(method: type, rows: type) -> Callable[[Maker], Maker]:
    """Register the projections of a method for terms with a class of packed data, subclasses included."""

    def register(make: Maker) -> Maker:
        _makers[method, rows] = make
        return make

    return register


def maker_for(method: Any, term: Any, rows: Any) -> Maker:
    """Return the function that creates the projections of a term.

    Raises:
        ValueError: The method has no projection for the term; the message names methods that have.
    """
    make = _maker(type(method), type(rows))
    if make is None:
        raise ValueError(
            f"{method.name} does not support {term.name}; use {', '.join(_capable_solvers(type(rows)))}"
        )
    return make


def require(method: str, material: Any, *functions: Any) -> None:
    """Check that a material implements the functions that a method needs.

    Raises:
        ValueError: A function is missing.
    """
    missing = [function.__name__ for function in functions if not function.has_implementation(type(material))]
    if missing:
        raise ValueError(
            f"{method} needs {' and '.join(missing)} of a material, which {type(material).__name__} does "
            "not implement; use pbng or newton, which support every material"
        )


def _maker(method: type, rows: type) -> Maker | None:
    pairs = ((m, r) for m in method.__mro__ for r in rows.__mro__)
    return next((_makers[pair] for pair in pairs if pair in _makers), None)


def _capable_solvers(rows: type) -> list[str]:
    """Names of solvers that treat a class of packed terms, by a projection or in general."""
    from supple.solvers import SOLVERS

    able = (solver for solver in SOLVERS.values() if solver.any_term or _maker(solver, rows) is not None)
    return [solver.name for solver in able]


def new_memory(elements: WeightedElements, *fields: int) -> tuple[np.ndarray, ...]:
    """Allocate zero arrays (rows, fields, lanes), one for each number of fields."""
    rows, _, lanes = elements.weights.shape
    return tuple(np.zeros((rows, count, lanes), elements.weights.dtype) for count in fields)
