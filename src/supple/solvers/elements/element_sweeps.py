"""Sweeps over elements: all projections of all terms in sequence, color by color."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from supple.kernels import chosen_by_type, do, number, row_at
from supple.ordering import colour_bounds, each_colour
from supple.solvers.elements.projection import project
from supple.solvers.iterating import iterate


def rows_of(start: Any, batch: int) -> tuple[int, int]:
    """Row range (first, last) of a batch, last excluded.

    `start` holds both; start = () means that every batch is one row.
    """
    return start[batch], start[batch + 1]


@chosen_by_type(rows_of)
def _rows_of(start, batch):
    if isinstance(start, types.BaseTuple):
        return lambda start, batch: (batch, batch + 1)
    return lambda start, batch: (start[batch], start[batch + 1])


class Visits(NamedTuple):
    """Work item: update one batch of a projection's elements."""

    projection: Any
    u: Any


@do.of(Visits)
def _visit_batch(visits, batch):
    begin, end = rows_of(visits.projection.places.start, number(batch))
    for k in range(begin, end):
        project(visits.projection, row_at(batch, k), visits.u)


def sweep_projections(projections: Any, team: Any, phase: int, u: Any) -> int:
    """Update every element of every projection once, color by color; return the next phase.

    Projections are processed one after another.
    """
    return phase


@chosen_by_type(sweep_projections, leads_on=True)
def _sweep_projections(projections, team, phase, u):
    if len(projections) == 0:
        return lambda projections, team, phase, u: phase

    def first_then_rest(projections, team, phase, u):
        colours = projections[0].places.colour_start
        bounds = colour_bounds(colours, 0)
        following = each_colour(team, phase, colours, bounds, Visits(projections[0], u))
        return sweep_projections(projections[1:], team, following, u)

    return first_then_rest


class ElementSweep(NamedTuple):
    """Iteration of element-wise methods: one sweep over all projections."""

    projections: Any
    u: Any


@iterate.of(ElementSweep)
def _sweep(sweep, team, phase, iteration):
    return sweep_projections(sweep.projections, team, phase, sweep.u)
