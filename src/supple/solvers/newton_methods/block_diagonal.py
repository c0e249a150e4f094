"""Several batch members as one block-diagonal problem in float64.

Each member becomes a set of disconnected bodies, so that one linear solve serves all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from supple.materials import is_per_element, table_of
from supple.model.model import Model
from supple.problem import Problem
from supple.problem.material_update import have_same_layout, with_materials
from supple.problem.states import vectors_of

MOST_VERTICES, MOST_COPIES = 65_536, 64
"""Limits of one gathered problem; larger ones take longer to prepare than they save."""


class Gathered(NamedTuple):
    """Body of one batch member.

    Attributes:
        name: Name of the body.
        vertices: Vertex range of the body in the gathered problem.
    """

    name: str
    vertices: slice


FEW = 8
"""Up to this number of batch members, a smaller gathered problem is used."""


def room_for(problem: Problem) -> int:
    """Return the number of batch members gathered at a time.

    It is 1 for problems with contacts, or with terms that cannot be gathered.
    """
    return min(problem.batch_size, most_gathered(problem))


def most_gathered(problem: Problem) -> int:
    """Return the largest number of batch members that can be gathered, whatever the batch size."""
    model = problem.model
    able = all(term.fills for term in model.terms)
    if not able or problem.contacts or problem.room or model.followers:
        return 1
    return max(1, min(MOST_COPIES, MOST_VERTICES // model.vertices))


def size_for(problem: Problem, members: int) -> int:
    """Return the size of the gathered problem used for a number of batch members."""
    room = room_for(problem)
    return FEW if members <= FEW < room else room


def gather(problem: Problem, members: Sequence[int]) -> Problem:
    """Return a problem with batch size 1 whose state contains the states of several batch members in a row.

    The problem is kept and reused for later calls with the same number of members.
    """
    materials = problem.layout.materials
    varied = problem.layout.varied
    together = joined([materials[member if varied else 0] for member in members], problem.model, varied)
    gathered = _made_of(problem, len(members), together)
    states, own = problem.states, gathered.states
    pairs = [(own.u, states.u)]
    if problem.loads.inertia.any():
        pairs.append((own.anchor, states.anchor))
    if problem.model.held is not None:
        pairs.append((own.constrained_at, states.constrained_at))
    for records, copied in pairs:
        records[:-1, :3] = vectors_of(states, copied, members).reshape(-1, 3)
        gathered.device.upload(records)
    _load(gathered, problem, members)
    return gathered


def _load(gathered: Problem, problem: Problem, members: Sequence[int]) -> None:
    """Update external forces and inertia of the gathered problem if those of the members differ."""
    force, inertia = problem.loads.force, np.tile(problem.loads.inertia, len(members))
    forces = (force[list(members)] if force.ndim == 3 else np.stack([force] * len(members))).reshape(-1, 3)
    if np.array_equal(inertia, gathered.loads.inertia):
        inertia = gathered.loads.inertia
    if inertia is not gathered.loads.inertia or not np.array_equal(forces, gathered.loads.force):
        gathered.loads.set_forces_and_inertia(forces, inertia)


def _made_of(problem: Problem, members: int, materials: tuple) -> Problem:
    """Return the cached gathered problem with these materials, or a new one if incompatible."""

    def make() -> Problem:
        model = with_materials(repeated(problem.model, members), materials)
        device = problem.device.clone(np.dtype(float), model.vertices + 1)
        made = Problem(model, "float64", device=device)
        made.keeps_prepared = True
        return made

    gathered: Problem = problem.shared(f"gathered {members}", make)
    if not have_same_layout(gathered.model, materials):
        return problem.shared(f"gathered {members}", make, anew=True)
    if problem.layout.varied:
        gathered.use_materials([materials])
    return gathered


def repeated(model: Model, members: int) -> Model:
    """Return a model with `members` repetitions of all bodies."""
    n, every = model.vertices, np.arange(members)

    def shifted(ids: np.ndarray) -> np.ndarray:
        moved = ids[None] + (every * n).astype(ids.dtype).reshape(-1, *[1] * ids.ndim)
        return moved.reshape(-1, *ids.shape[1:])

    def tiled(values: np.ndarray) -> np.ndarray:
        return np.tile(values, (members, *[1] * (values.ndim - 1)))

    def again(term: Any) -> Any:
        many = _many([term.material] * members, len(term.vertices))
        return replace(
            term,
            vertices=shifted(term.vertices),
            gradients=tiled(term.gradients),
            volume=tiled(term.volume),
            material=many,
        )

    each = [
        Gathered(name, slice(own.start + k * n, own.stop + k * n))
        for k in every
        for name, own in model.body_vertices
    ]
    return Model(
        tiled(model.rest),
        tiled(model.mass),
        tiled(model.force),
        shifted(model.pinned),
        lambda time: tiled(model.prescribed(time)),
        tuple(map(again, model.terms)),
        shifted(model.tets),
        tuple(each),  # type: ignore[arg-type]
        held=None if model.held is None else tiled(model.held),
    )


def joined(materials: Sequence[tuple], model: Model, varied: bool) -> tuple:
    """Concatenate the materials of all batch members, one result per term.

    Args:
        materials: Materials of each batch member, one for each term that has a material.
        model: Model of one batch member.
        varied: True if materials differ between batch members and may change.
    """
    sizes = [len(term.vertices) for term in model.terms if term.material is not None]
    each = zip(zip(*materials, strict=True), sizes, strict=True)
    return tuple(_many(same, count, varied) for same, count in each)


def _many(materials: Sequence[Any], count: int, varied: bool = False) -> Any:
    """Concatenate materials of `count` elements each into one per-element material.

    Unless `varied`, parameters that are not given per element stay numbers.
    """

    def join(values: tuple) -> Any:
        if not varied and not is_per_element(values[0]):
            return values[0]
        table = np.concatenate([table_of(value, count) for value in values])
        return table[:, 0] if table.shape[1] == 1 else table

    return type(materials[0])._make(map(join, zip(*materials, strict=True)))
