"""Initial guess of an implicit step, relative to the inertial target û = uₙ + Δt vₙ.

    coast      u = û
    inertial   u = û + Δt² g, the x̂ of [PBNG section 6]
    adaptive   û + ΣF/Σk of every body that moves freely, û of all others

A body without pins, connectors or obstacles in its way accelerates as a whole by its external forces F, where
k = m/τ² is its inertia. Sweeps converge slowly for a common translation, which this initial guess already
contains. A body at rest on a support starts at û, since Δt² g would push it into the support. With contact
between bodies, bodies whose boxes are within an edge of each other form one group, which moves as a whole if
nothing supports any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from supple.collision.obstacles.signed_distance import distances_to
from supple.kernels import RECORD
from supple.problem.vertex_kernels import Displace

if TYPE_CHECKING:
    from supple.problem.problem import Problem

MAX_DRIFT_DIFFERENCE = 1e-9
"""Relative difference of the drifts of neighbors up to which they move as one."""

INITIAL_GUESSES = ("adaptive", "inertial", "coast")


def predict_fall(problem: Problem, guess: str, time: float) -> None:
    """Move the start of a step from û by the displacement due to external forces.

    Args:
        problem: Problem whose step has begun, with u = û.
        guess: One of `INITIAL_GUESSES`.
        time: End of the step [s].
    """
    if guess == "coast":
        return
    drift = body_drifts(problem, guess, time)
    if guess == "adaptive":
        drift[:, supported_bodies(problem)[owners(problem)]] = 0
        drift = stop_at_obstacles(problem, drift)
        drift = stop_mixed_groups(problem, drift)
    if not drift.any():
        return
    records = np.zeros((len(drift), problem.model.vertices + 1, RECORD), problem.dtype)
    records[:, :-1, :3] = drift
    states = problem.states
    problem.device.on_records(
        Displace(states.u, records.reshape(-1, RECORD), int(len(drift) > 1)), states.dirichlet_operation
    )


def owners(problem: Problem) -> np.ndarray:
    """(n,) body index of each vertex."""
    owner = np.zeros(problem.model.vertices, int)
    for number, (_, vertices) in enumerate(problem.model.body_vertices):
        owner[vertices] = number
    return owner


def body_drifts(problem: Problem, guess: str, time: float) -> np.ndarray:
    """Displacements due to external forces: ΣF/Σk of bodies without pins.

    For bodies with pins, they are those of gravity alone if `guess` is "inertial", otherwise 0.

    Returns:
        (batch or 1, n, 3) [m].
    """
    model, inertia = problem.model, problem.loads.inertia
    force = problem.loads.force.reshape(-1, model.vertices, 3)
    drift = np.zeros_like(force)
    pinned = np.zeros(model.vertices, bool)
    pinned[model.pinned] = True
    gravity = model.gravity.fraction(time) * model.gravity.vector
    for _, own in model.body_vertices:
        total = inertia[own].sum()
        if total > 0 and not pinned[own].any():
            drift[:, own] = (force[:, own].sum(axis=1) / total)[:, None]
        elif total > 0 and guess == "inertial":
            drift[:, own] = (model.mass[own].sum() / total) * gravity
    return drift


def supported_bodies(problem: Problem) -> np.ndarray:
    """(bodies,) bool: True for bodies that are pinned, or tied to other bodies or fixed points."""
    model, owner = problem.model, owners(problem)
    supported = np.zeros(len(model.body_vertices), bool)
    supported[owner[model.pinned]] = True
    for term in model.terms:
        if not term.ties:
            continue
        stencils = np.asarray(term.vertices)
        real = (stencils >= 0) & (stencils < model.vertices)
        bodies = np.where(real, owner[np.where(real, stencils, 0)], -1)
        first = bodies.max(axis=1, initial=-1)
        joins = ((bodies != first[:, None]) & real).any(axis=1)
        if term.ties and term.capacity is None and term.vertices.shape[1] != 2:
            joins[:] = True  # attachments to points, cables and similar connectors
        joined = bodies[joins]
        supported[joined[joined >= 0]] = True
    return supported


def stop_at_obstacles(problem: Problem, drift: np.ndarray) -> np.ndarray:
    """Zero the drift of bodies that would reach an obstacle."""
    if problem.contacts.obstacles is None or not drift.any():
        return drift
    positions, shapes = problem.states.positions, problem.contacts.shapes
    drift = np.broadcast_to(drift, positions.shape).copy()
    for member, x in enumerate(positions):
        for _, own in problem.model.body_vertices:
            if drift[member, own].any():
                gap = distances_to(shapes, x[own] + drift[member, own])[0]
                if (gap < np.linalg.norm(drift[member, own], axis=1)).any():
                    drift[member, own] = 0
    return drift


def stop_mixed_groups(problem: Problem, drift: np.ndarray) -> np.ndarray:
    """Keep the drift of groups of neighboring bodies that move alike; set that of the others to 0.

    It applies to scenes with contact between bodies. Only positions are used, not the contacts of the
    previous step, so that a restarted motion is bitwise identical.
    """
    model = problem.model
    if not drift.any() or not any(not model.terms[k].loads for k, _ in model.dynamic_terms):
        return drift
    drift = np.broadcast_to(drift, problem.states.positions.shape).copy()
    bodies = [own for _, own in model.body_vertices]
    for x, moves in zip(problem.states.positions, drift, strict=True):
        of_bodies = np.stack([moves[own][0] for own in bodies])
        group = neighbor_groups([(x[own], x[own] + moves[own]) for own in bodies], model.mean_edge)
        for number in np.unique(group):
            members = np.flatnonzero(group == number)
            common = of_bodies[members].mean(axis=0)
            deviation = np.abs(of_bodies[members] - common).max()
            moves_as_one = (
                deviation <= MAX_DRIFT_DIFFERENCE * np.abs(common).max()
                and of_bodies[members].any(axis=1).all()
            )
            for member in members:
                moves[bodies[member]] = common if moves_as_one else 0.0
    return drift


def neighbor_groups(paths: list[tuple[np.ndarray, ...]], margin: float) -> np.ndarray:
    """(bodies,) numbers of groups of bodies whose bounding boxes are within a margin [m] of each other.

    Args:
        paths: For each body, positions (n, 3) [m] that its box has to hold.
        margin: Gap between boxes below which bodies are neighbors.
    """
    low = np.stack([np.min([x.min(axis=0) for x in each], axis=0) for each in paths])
    high = np.stack([np.max([x.max(axis=0) for x in each], axis=0) for each in paths])
    gaps = np.maximum(low[:, None] - high[None], low[None] - high[:, None]).max(axis=2)
    return np.asarray(connected_components(csr_matrix(gaps < margin), directed=False)[1])
