"""Updates of dynamic stencils in an existing problem."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from supple.model import with_term
from supple.ordering import changes
from supple.words import counted

if TYPE_CHECKING:
    from supple.model import Model
    from supple.problem.problem import Problem
    from supple.terms import Term

LASTING = ("workplaces of element-wise methods", "elements of term", "Anderson memory", "no links")
"""Prefixes of prepared solver data that does not depend on stencils."""

BY_BATCH = "rejected"
"""Prefix of prepared solver data that depends on vertex batches but not on stencils."""


def refresh(problem: Problem, index: int, term: Term) -> None:
    """Replace the stencils of a term; the capacity grows by factors of two."""
    model, old = problem.model, problem.model.terms[index]
    _check(model, old, term)
    before = capacity = old.capacity or 0
    while capacity < len(term.vertices):
        capacity = max(1, 2 * capacity)
    term = replace(term, capacity=capacity)  # type: ignore[type-var]
    problem.device.wait()  # pending kernels use the old stencils
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
    """Pack the present stencils of the model, with a larger capacity if needed."""
    layout = problem.layout
    done = layout.take_stencils()
    while done is None:
        _grow(problem, 2)
        done = layout.take_stencils()
    problem.loads.follow(done.places)
    problem.measures.forget_stiffness()
    problem.forget_but(*LASTING, BY_BATCH)


def _grow(problem: Problem, times: int) -> None:
    """Rebuild all vertex batches with a multiple of the capacity."""
    layout, loads = problem.layout, problem.loads
    layout.lay_out(times * (layout.room.growth if layout.room else 1))
    loads.lay_out(layout.vertices, len(loads.rows.force))
    loads.hold_at(problem.states.held_at)
    loads.touch(problem.contacts.planes)
    loads.stay_in(problem.room.balls)
    problem.measures.forget()
    problem.forget_but(*LASTING)
