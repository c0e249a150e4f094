"""Active-set problem of contact with obstacles: vertices in contact become Dirichlet conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from supple.model import Model
from supple.problem import Problem
from supple.problem.held import SYMMETRIC, normals_of
from supple.problem.materials import with_materials
from supple.problem.states import vectors_of

STICKS = 1 - 1e-6
"""Fraction of the friction limit below which a vertex sticks."""


def touching_twin(problem: Problem, copy: int = 0, sliding: bool = True) -> Problem:
    """Return the active-set problem in float64 on the CPU at the u of a batch member.

    Vertices in contact with obstacles are constrained along the contact normals, sticking vertices fully.
    Obstacles are absent, but their forces act.

    Args:
        problem: Problem with obstacles.
        copy: Batch member.
        sliding: False to constrain sliding vertices with friction fully, too.
    """
    problem.measures.balances()
    model, layout = problem.model, problem.layout
    if layout.varied:
        model = with_materials(model, layout.materials[copy])
    N = np.zeros((model.vertices, 3, 3))
    N[..., *SYMMETRIC] = normals_of(model)[:-1]
    N[..., *SYMMETRIC[::-1]] = N[..., *SYMMETRIC]
    normals, _, forces, _ = problem.contacts.found(copy)
    mu = problem.contacts.coefficients(copy)
    push = np.einsum("pni,pni->pn", normals, forces)
    rub = np.linalg.norm(forces - push[..., None] * normals, axis=2)
    for n, λ, t, limit in zip(normals, push, rub, mu * push, strict=True):
        sticks = (λ > 0) & (limit > 0) & ((t < STICKS * limit) | (not sliding))
        N[λ > 0] += n[λ > 0, :, None] * n[λ > 0, None, :]
        N[sticks] += np.eye(3)
    values, vectors = np.linalg.eigh(N)
    held = np.einsum("kia,ka,kja->kij", vectors, values > 1e-9, vectors)
    pinned = np.flatnonzero((values > 1e-9).any(axis=1))
    twin = _holding(problem, model, pinned, held[pinned])
    twin.loads.copy(problem.loads, copy)
    twin.loads.set(twin.loads.force + forces.sum(axis=0))  # friction matters for sliding vertices only
    for array, of_twin in ((problem.u, twin.u), (problem.states.anchor, twin.states.anchor)):
        of_twin[:-1, :3] = vectors_of(problem.states, array, [copy])[0]
    there = np.einsum("kij,kj->ki", held[pinned], twin.u[pinned, :3])
    twin.states.held_at[pinned, :3] = there
    return twin


def _holding(problem: Problem, model: Model, pinned: np.ndarray, held: np.ndarray) -> Problem:
    """Return a problem without obstacles with constrained vertices; reuse the last one if unchanged.

    Args:
        problem: Problem with obstacles.
        model: Its model.
        pinned: (k,) constrained vertices.
        held: (k, 3, 3) projections onto the constrained directions.
    """
    known: list = problem.shared("touching twin", list)
    if known:
        of, last, twin = known
        same = of is model and last[0].shape == pinned.shape
        if same and np.array_equal(last[0], pinned) and np.array_equal(last[1], held):
            return twin
    alone = replace(model, pinned=pinned, held=held, obstacles=None, followers=())
    twin = Problem(alone, "float64", problem.device.threads if problem.device.name == "cpu" else None)
    known[:] = model, (pinned, held), twin
    return twin
