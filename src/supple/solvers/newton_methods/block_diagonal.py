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

MAX_VERTICES, MAX_MEMBERS = 65_536, 64
"""Limits of one block-diagonal problem; larger ones take longer to prepare than they save."""


class MemberBody(NamedTuple):
    """Body of one batch member.

    Attributes:
        name: Name of the body.
        vertices: Vertex range of the body in the block-diagonal problem.
    """

    name: str
    vertices: slice


SMALL_BATCH = 8
"""Up to this number of batch members, a smaller block-diagonal problem is used."""


def block_capacity(problem: Problem) -> int:
    """Return the number of batch members in one block-diagonal problem.

    It is 1 for problems with contacts, or with terms that cannot be replicated.
    """
    return min(problem.batch_size, max_block_members(problem))


def max_block_members(problem: Problem) -> int:
    """Return the largest number of batch members of a block-diagonal problem, whatever the batch size."""
    model = problem.model
    able = all(term.fills for term in model.terms)
    if not able or problem.contacts or problem.trust_region or model.dynamic_terms:
        return 1
    return max(1, min(MAX_MEMBERS, MAX_VERTICES // model.vertices))


def padded_block_size(problem: Problem, members: int) -> int:
    """Return the size of the block-diagonal problem used for a number of batch members."""
    capacity = block_capacity(problem)
    return SMALL_BATCH if members <= SMALL_BATCH < capacity else capacity


def join_members(problem: Problem, members: Sequence[int]) -> Problem:
    """Return a problem with batch size 1 whose state contains the states of several batch members in a row.

    The problem is kept and reused for later calls with the same number of members.
    """
    materials = problem.layout.materials
    varied = problem.layout.varied
    materials_of_all = join_materials(
        [materials[member if varied else 0] for member in members], problem.model, varied
    )
    block_problem = _cached_block_problem(problem, len(members), materials_of_all)
    states, own = problem.states, block_problem.states
    pairs = [(own.u, states.u)]
    if problem.loads.inertia.any():
        pairs.append((own.anchor, states.anchor))
    if problem.model.constraint_projection is not None:
        pairs.append((own.constrained_at, states.constrained_at))
    for records, source in pairs:
        records[:-1, :3] = vectors_of(states, source, members).reshape(-1, 3)
        block_problem.device.upload(records)
    _update_loads(block_problem, problem, members)
    return block_problem


def _update_loads(block_problem: Problem, problem: Problem, members: Sequence[int]) -> None:
    """Update external forces and inertia of the block-diagonal problem if those of the members differ."""
    force, inertia = problem.loads.force, np.tile(problem.loads.inertia, len(members))
    forces = (force[list(members)] if force.ndim == 3 else np.stack([force] * len(members))).reshape(-1, 3)
    if np.array_equal(inertia, block_problem.loads.inertia):
        inertia = block_problem.loads.inertia
    if inertia is not block_problem.loads.inertia or not np.array_equal(forces, block_problem.loads.force):
        block_problem.loads.set_forces_and_inertia(forces, inertia)


def _cached_block_problem(problem: Problem, members: int, materials: tuple) -> Problem:
    """Return the cached block-diagonal problem with these materials, or a new one if incompatible."""

    def make() -> Problem:
        model = with_materials(replicate_model(problem.model, members), materials)
        device = problem.device.clone(np.dtype(float), model.vertices + 1)
        made = Problem(model, "float64", device=device)
        made.keeps_prepared = True
        return made

    block_problem: Problem = problem.get_shared(f"block-diagonal {members}", make)
    if not have_same_layout(block_problem.model, materials):
        return problem.get_shared(f"block-diagonal {members}", make, recompute=True)
    if problem.layout.varied:
        block_problem.use_materials([materials])
    return block_problem


def replicate_model(model: Model, members: int) -> Model:
    """Return a model with `members` repetitions of all bodies."""
    n, every = model.vertices, np.arange(members)

    def offset_ids(ids: np.ndarray) -> np.ndarray:
        offset = ids[None] + (every * n).astype(ids.dtype).reshape(-1, *[1] * ids.ndim)
        return offset.reshape(-1, *ids.shape[1:])

    def repeat(values: np.ndarray) -> np.ndarray:
        return np.tile(values, (members, *[1] * (values.ndim - 1)))

    def replicate_term(term: Any) -> Any:
        materials = _concatenate_materials([term.material] * members, len(term.vertices))
        return replace(
            term,
            vertices=offset_ids(term.vertices),
            gradients=repeat(term.gradients),
            volume=repeat(term.volume),
            material=materials,
        )

    bodies = [
        MemberBody(name, slice(own.start + k * n, own.stop + k * n))
        for k in every
        for name, own in model.body_vertices
    ]
    return Model(
        repeat(model.rest),
        repeat(model.mass),
        repeat(model.force),
        offset_ids(model.pinned),
        lambda time: repeat(model.prescribed(time)),
        tuple(map(replicate_term, model.terms)),
        offset_ids(model.tets),
        tuple(bodies),  # type: ignore[arg-type]
        constraint_projection=None
        if model.constraint_projection is None
        else repeat(model.constraint_projection),
    )


def join_materials(materials: Sequence[tuple], model: Model, varied: bool) -> tuple:
    """Concatenate the materials of all batch members, one result per term.

    Args:
        materials: Materials of each batch member, one for each term that has a material.
        model: Model of one batch member.
        varied: True if materials differ between batch members and may change.
    """
    sizes = [len(term.vertices) for term in model.terms if term.material is not None]
    each = zip(zip(*materials, strict=True), sizes, strict=True)
    return tuple(_concatenate_materials(same, count, varied) for same, count in each)


def _concatenate_materials(materials: Sequence[Any], count: int, varied: bool = False) -> Any:
    """Concatenate materials of `count` elements each into one per-element material.

    Unless `varied`, parameters that are not given per element stay numbers.
    """

    def join(values: tuple) -> Any:
        if not varied and not is_per_element(values[0]):
            return values[0]
        table = np.concatenate([table_of(value, count) for value in values])
        return table[:, 0] if table.shape[1] == 1 else table

    return type(materials[0])._make(map(join, zip(*materials, strict=True)))
