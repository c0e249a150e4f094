"""Stencils that come and go: a problem goes over to other stencils of a term without being built anew."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.kernels import chosen_by_type, do, each_item, kernel, number, records_at_once, strides
from supple.model import with_term
from supple.ordering import changes, row_arrays
from supple.problem.device import for_all_copies
from supple.words import counted

if TYPE_CHECKING:
    from supple.model import Model
    from supple.ordering.changing import Changes
    from supple.problem.problem import Problem
    from supple.terms import Term

LASTING = ("workplaces of element-wise methods", "elements of term", "Anderson memory", "no links")
"""What solvers have prepared that serves other stencils too: names that begin so."""

BY_BATCH = "rejected"
"""The name of what serves other stencils as long as the batches stay."""


def refresh(problem: Problem, index: int, term: Term) -> None:
    """Exchange the stencils of a term of the problem's model for those of another."""
    model, old = problem.model, problem.model.terms[index]
    _check(model, old, term)
    before = capacity = old.capacity or 0
    while capacity < len(term.vertices):
        capacity = max(1, 2 * capacity)
    term = replace(term, capacity=capacity)  # type: ignore[type-var]
    problem.device.wait()  # what it has yet to do is for the stencils that there were
    problem.model = with_term(model, index, term)
    problem.layout.exchange(index, term)
    if capacity > before:
        _grow(problem, 1)
    take_stencils(problem)


def _check(model: Model, old: Term, term: Term) -> None:
    if not changes(old):
        raise ValueError(f"{old.name} of a term without a capacity stay; give it one when the model is made")
    corners, ids = old.vertices.shape[1], term.vertices
    if type(term) is not type(old) or ids.shape[1] != corners:
        raise ValueError(
            f"{old.name} of {counted(corners, 'vertex', 'vertices')} can be exchanged for others of their "
            f"kind only, not for {term.name} of {ids.shape[1]}"
        )
    if ids.size and not (ids.min() >= 0 and ids.max() < model.vertices):
        raise ValueError(
            f"there are vertices 0 to {model.vertices - 1}, and {term.name} between others: "
            f"{ids.min()} to {ids.max()}"
        )


def take_stencils(problem: Problem) -> None:
    """Let kernels see the stencils of the problem's model; with more room where they need it."""
    layout, device = problem.layout, problem.device
    done = layout.take_stencils()
    while done is None:
        _grow(problem, 2)
        done = layout.take_stencils()
    _move_visits(problem, done)
    for array, rows in done.written:
        device.push(array, rows)
    problem.loads.follow(done.batches)
    problem.measures.forget_stiffness()
    problem.forget_but(*LASTING, BY_BATCH)


def _grow(problem: Problem, times: int) -> None:
    """Everything by batches anew, with that many times the room."""
    layout, loads = problem.layout, problem.loads
    layout.lay_out(times * (layout.room.growth if layout.room else 1))
    loads.lay_out(layout.vertices, len(loads.rows.force))
    loads.hold_at(problem.states.held_at)
    loads.touch(problem.contacts.planes)
    loads.stay_in(problem.room.balls)
    problem.measures.forget()
    problem.forget_but(*LASTING)


def _move_visits(problem: Problem, done: Changes) -> None:
    """Let the visits of terms that last follow the vertices, where the kernels' copies of them are."""
    device, layout = problem.device, problem.layout
    pairs = zip(problem.model.terms, layout.terms, strict=True)
    lasting = [rows for term, rows in pairs if not changes(term)]
    with for_all_copies(device):
        for rows, groups in zip(lasting, done.moves, strict=True):
            if groups:
                bounds = np.cumsum([0, *map(len, groups)])
                moves = np.ascontiguousarray(np.concatenate(groups))
                device.run(move_visits, len(groups), row_arrays(rows), moves, bounds)


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


class Moves(NamedTuple):
    """Moves begin, ..., end - 1 of visits, in blocks of `size`."""

    arrays: Any
    moves: Any
    begin: Any
    end: Any
    size: Any


@do.of(Moves)
def _move_block(work, block):
    first, step = strides(block)
    start = work.begin + number(block) * work.size
    for k in range(start + first, min(work.end, start + work.size), step):
        copy_visit(work.arrays, work.moves, k)


@kernel
def move_visits(team, arrays, moves, bounds):
    """Moves bounds[g] to bounds[g + 1] of visits at the same time, one group g after the other."""
    size = records_at_once(team)
    for group in range(len(bounds) - 1):
        begin, end = bounds[group], bounds[group + 1]
        each_item(team, group, 0, -(-(end - begin) // size), Moves(arrays, moves, begin, end, size))
