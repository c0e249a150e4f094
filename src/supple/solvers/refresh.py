"""Stencils that come and go: a problem goes over to other stencils of a term without being built anew."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.kernels import (
    chosen_by_type,
    enter,
    inside,
    kernel,
    leave,
    number,
    proceed,
    records_at_once,
    strides,
)
from supple.ordering import ChangingBatches, batch_elements, changes, row_arrays
from supple.words import counted

if TYPE_CHECKING:
    from supple.ordering.changing import Changes, Moves
    from supple.solvers.problem import Problem
    from supple.terms import Term

STALE = ("links", "rows of links", "assembly")
"""What solvers have prepared for all steps, and must prepare again for other stencils."""

BY_BATCH = ("rejected",)
"""What has to do with how many batches there are."""


def make_layout(problem: Problem, growth: int = 1) -> ChangingBatches | None:
    """Batches with room for the stencils of terms that change; None where none does."""
    model = problem.model
    if not any(changes(term) for term in model.terms):
        return None
    sizes = problem.dtype, problem.lanes, problem._at_once
    return ChangingBatches(model.terms, model.free, *sizes, growth=growth)


def refresh(problem: Problem, index: int, term: Term) -> None:
    """Exchange the stencils of a term of the problem's model for those of another."""
    model, old = problem.model, problem.model.terms[index]
    if not changes(old):
        raise ValueError(f"{old.name} of a term without a capacity stay; give it one when the model is made")
    if type(term) is not type(old) or term.vertices.shape[1] != old.vertices.shape[1]:
        raise ValueError(
            f"{old.name} of {counted(old.vertices.shape[1], 'vertex', 'vertices')} can be exchanged for "
            f"others of their kind only, not for {term.name} of {term.vertices.shape[1]}"
        )
    ids = term.vertices
    if ids.size and not (ids.min() >= 0 and ids.max() < model.vertices):
        raise ValueError(
            f"there are vertices 0 to {model.vertices - 1}, and {term.name} between others: "
            f"{ids.min()} to {ids.max()}"
        )
    before = old.capacity or 0
    capacity = before
    while capacity < len(ids):
        capacity = max(1, 2 * capacity)
    term = replace(term, capacity=capacity)  # type: ignore[type-var]
    terms = (*model.terms[:index], term, *model.terms[index + 1 :])
    problem.wait()  # what a device has yet to do is for the stencils that there were
    problem.model = replace(model, terms=terms)
    if capacity > before:
        _lay_out_again(problem, 1)
    take_stencils(problem)


def take_stencils(problem: Problem) -> None:
    """Let kernels see the stencils of the problem's model; with more room where they need it."""
    layout = problem.layout
    assert layout is not None
    done = layout.take(problem.model.terms)
    while done is None:
        layout = _lay_out_again(problem, 2)
        done = layout.take(problem.model.terms)
    problem.batch_colours = layout.colours
    _move_visits(problem, done)
    vertices, batches = problem.vertices, done.batches
    vertices.force[..., batches, :, :] = problem._force_by_batch(vertices.own[batches])
    vertices.inertia[batches] = problem._by_batch(vertices.own[batches])
    for array, rows in [*done.written, (vertices.force, None), (vertices.inertia, None)]:
        problem.push(array, rows)
    for k, term in enumerate(problem.model.terms):
        if changes(term):
            _put_elements(problem, k, term)
    for name in STALE:
        problem._shared.pop(name, None)
    for name in ("_rest_stiffness", "_softness", "widest"):
        problem.__dict__.pop(name, None)
    problem._energies = None


def _lay_out_again(problem: Problem, times: int) -> ChangingBatches:
    """Everything by batches anew, with that many times the room."""
    copies = problem.vertices.force.shape[:-3]
    before = problem.layout.growth if problem.layout is not None else 1
    layout = problem.layout = make_layout(problem, times * before)
    assert layout is not None
    problem._arrange()
    force = problem.vertices.force
    force = np.broadcast_to(force, (*copies, *force.shape[-3:])).copy()
    problem.vertices = problem.vertices._replace(force=force)
    problem.growths += 1
    stale = [name for name in problem._shared if name in BY_BATCH or "values for each of" in name]
    for name in stale:
        del problem._shared[name]
    problem.__dict__.pop("_sizes", None)
    return layout


def _put_elements(problem: Problem, k: int, term: Term) -> None:
    """The stencils of a term as elements, in the arrays that have room for them."""
    there = problem.elements[k]
    new = batch_elements(term, problem.dtype, problem.model.vertices, problem.lanes)
    for array, values in zip(
        (there.own, *row_arrays(there.rows)), (new.own, *row_arrays(new.rows)), strict=True
    ):
        array[:] = values
        problem.push(array)


def _move_visits(problem: Problem, done: Changes) -> None:
    """Let the visits of terms that last follow the vertices, where the kernels' copies of them are."""
    lasting = [
        rows for term, rows in zip(problem.model.terms, problem.terms, strict=True) if not changes(term)
    ]
    active, problem.active = problem.active, np.zeros(1, np.int32)  # all copies of the state share the rows
    for rows, groups in zip(lasting, done.moves, strict=True):
        if groups:
            bounds = np.cumsum([0, *map(len, groups)])
            moves: Moves = np.concatenate(groups)
            problem.run(move_visits, len(groups), row_arrays(rows), moves, bounds)
    problem.wait()
    problem.active = active


def copy_visit(arrays: Any, moves: Any, k: int) -> None:
    """Copy what all arrays (rows, fields, lanes) have at a row and a lane to another."""


@chosen_by_type(copy_visit)
def _copy_visit(arrays, moves, k):
    if len(arrays) == 0:
        return lambda arrays, moves, k: None

    def first_then_rest(arrays, moves, k):
        array = arrays[0]
        row, lane, new_row, new_lane = moves[k, 0], moves[k, 1], moves[k, 2], moves[k, 3]
        for field in range(array.shape[1]):
            array[new_row, field, new_lane] = array[row, field, lane]
        copy_visit(arrays[1:], moves, k)

    return first_then_rest


@kernel
def move_visits(team, arrays, moves, bounds):
    """Moves bounds[g] to bounds[g + 1] of visits at the same time, one group g after the other."""
    size = records_at_once(team)
    for group in range(len(bounds) - 1):
        begin, end = bounds[group], bounds[group + 1]
        blocks = -(-(end - begin) // size)
        block = enter(team, group, 0, blocks)
        while inside(block, blocks):
            first, step = strides(block)
            k = begin + number(block) * size + first
            last = min(end, begin + (number(block) + 1) * size)
            while k < last:
                copy_visit(arrays, moves, k)
                k += step
            block = proceed(team, group, block, 0, blocks)
        leave(team, group, 0, blocks)
