"""A step with everything that touches an obstacle held there: what Newton's method sees of contact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from supple.model import Model
from supple.problem import Problem
from supple.problem.held import SYMMETRIC, normals_of
from supple.problem.materials import with_materials
from supple.problem.states import vectors_of

STICKS = 1 - 1e-6
"""Part of what friction can hold below which a vertex does not slide."""


def touching_twin(problem: Problem, copy: int = 0, sliding: bool = True) -> Problem:
    """Another problem in float64 on the CPU, at the u of a copy: vertices that obstacles push are held along
    the normals, and those that stick wholly; there are no obstacles, but their forces act. sliding: False
    holds vertices that slide with friction wholly, too."""
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
    twin.follower_loads.copy(problem.follower_loads)
    twin.loads.set(twin.loads.force + forces.sum(axis=0))  # of which friction counts where vertices slide
    for array, of_twin in ((problem.u, twin.u), (problem.states.anchor, twin.states.anchor)):
        of_twin[:-1, :3] = vectors_of(problem.states, array, [copy])[0]
    there = np.einsum("kij,kj->ki", held[pinned], twin.u[pinned, :3])
    twin.states.held_at[pinned, :3] = there
    return twin


def _holding(problem: Problem, model: Model, pinned: np.ndarray, held: np.ndarray) -> Problem:
    """A problem of a model whose pinned vertices (k,) are held by (k, 3, 3), without obstacles: the last one
    where that held the same, for which much is prepared already."""
    known: list = problem.shared("touching twin", list)
    if known:
        of, last, twin = known
        same = of is model and last[0].shape == pinned.shape
        if same and np.array_equal(last[0], pinned) and np.array_equal(last[1], held):
            return twin
    loads = tuple((k, each) for k, each in model.followers if k in problem.follower_loads.indices)
    alone = replace(model, pinned=pinned, held=held, obstacles=None, followers=loads)
    twin = Problem(alone, "float64", problem.device.threads if problem.device.name == "cpu" else None)
    known[:] = model, (pinned, held), twin
    return twin
