"""Initial guess of an implicit step, relative to the inertial target û = uₙ + Δt vₙ.

    coast      u = û
    inertial   u = û + Δt² g of pinned bodies, ΣF/Σk of others: the x̂ of [PBNG section 6]
    adaptive   û + ΣF/Σk of every group of bodies that moves freely, û of all others

Bodies that connectors join form one group. With weak contact between bodies, so do bodies whose boxes are
within an edge of each other. The internal forces of a group sum to zero, so a group without pins, connectors
to fixed points or obstacles in its way accelerates as a whole by ΣF/Σk, with its external forces F and k =
m/τ². Sweeps converge slowly for a common translation, which this initial guess already contains. A group at
rest on a support starts at û, the position without any force, since Δt² g would push it into the support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from supple.collision.obstacles.signed_distance import distances_to
from supple.kernels import RECORD
from supple.problem.vertex_kernels import Displace

if TYPE_CHECKING:
    from supple.problem.problem import Problem

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
    drifts = adaptive_drifts(problem) if guess == "adaptive" else inertial_drifts(problem, time)
    if not drifts.any():
        return
    records = np.zeros((len(drifts), problem.model.vertices + 1, RECORD), problem.dtype)
    for number, (_, own) in enumerate(problem.model.body_vertices):
        records[:, own, :3] = drifts[:, number, None]
    states = problem.states
    problem.device.apply_to_vectors(
        Displace(states.u, records.reshape(-1, RECORD), int(len(drifts) > 1)), states.dirichlet_operation
    )


def inertial_drifts(problem: Problem, time: float) -> np.ndarray:
    """(batch or 1, bodies, 3) ΣF/Σk of bodies without pins, displacements by gravity of all others [m]."""
    model, bodies = problem.model, problem.model.body_vertices
    drifts = group_drifts(problem, np.arange(len(bodies)))
    gravity = model.gravity.fraction(time) * model.gravity.vector
    for number in np.unique(owners(problem)[model.pinned]):
        own = bodies[number][1]
        inertia = problem.loads.inertia[own].sum()
        drifts[:, number] = model.mass[own].sum() / inertia * gravity if inertia > 0 else 0
    return drifts


def adaptive_drifts(problem: Problem) -> np.ndarray:
    """(batch or 1, bodies, 3) ΣF/Σk of groups of bodies that move freely, 0 for all others [m]."""
    group, supported = joined_bodies(problem)
    drifts = group_drifts(problem, group)
    touches = any(not problem.model.terms[k].loads for k, _ in problem.model.dynamic_terms)
    has_obstacles = problem.contacts.obstacles is not None
    if not drifts[:, ~supported].any() or not (touches or has_obstacles):
        drifts[:, supported] = 0
        return drifts
    positions = problem.states.positions
    drifts = np.broadcast_to(drifts, (len(positions), *drifts.shape[1:])).copy()
    for member, x in enumerate(positions):
        groups, drift = group, drifts[member]
        if touches:
            groups = join_neighbors(problem, x, np.where(supported[:, None], 0, drift), group)
            common = group_drifts(problem, groups)
            drift[:] = common[member if len(common) > 1 else 0]
        drift[np.isin(groups, groups[supported])] = 0
        if has_obstacles:
            drift[np.isin(groups, groups[reach_obstacles(problem, x, drift)])] = 0
    return drifts


def owners(problem: Problem) -> np.ndarray:
    """(n,) body index of each vertex."""
    owner = np.zeros(problem.model.vertices, int)
    for number, (_, vertices) in enumerate(problem.model.body_vertices):
        owner[vertices] = number
    return owner


def group_drifts(problem: Problem, group: np.ndarray) -> np.ndarray:
    """(batch or 1, bodies, 3) ΣF/Σk of the group of each body, 0 without inertia [m].

    Args:
        problem: Problem whose step has begun.
        group: (bodies,) group of each body.
    """
    model = problem.model
    bodies = [own for _, own in model.body_vertices]
    vertex_forces = problem.loads.force.reshape(-1, model.vertices, 3)
    force = np.stack([vertex_forces[:, own].sum(axis=1) for own in bodies], axis=1)
    inertia = np.array([problem.loads.inertia[own].sum() for own in bodies])
    drifts = np.zeros_like(force)
    for number in np.unique(group):
        members = group == number
        total = inertia[members].sum()
        if total > 0:
            drifts[:, members] = force[:, members].sum(axis=1, keepdims=True) / total
    return drifts


def joined_bodies(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Group bodies by the connectors between them.

    Contacts do not count: those of the previous step are not part of a saved state, and a resumed motion must
    be bitwise identical.

    Returns:
        (bodies,) group of each body, and (bodies,) True if its group has a pin or a connector to a point.
    """
    model, owner = problem.model, owners(problem)
    count = len(model.body_vertices)
    supported = np.zeros(count, bool)
    supported[owner[model.pinned]] = True
    links = [np.empty((0, 2), int)]
    for term in model.terms:
        if not term.ties or term.family == "contact":
            continue
        stencils = np.asarray(term.vertices)
        bodies = owner[np.where(stencils >= 0, stencils, stencils[:, :1])]
        links += [bodies[:, [0, k]] for k in range(1, bodies.shape[1])]
        supported[bodies[~term.translatable]] = True
    group = connect_bodies(np.concatenate(links), count)
    return group, np.isin(group, group[supported])


def reach_obstacles(problem: Problem, x: np.ndarray, drifts: np.ndarray) -> np.ndarray:
    """(bodies,) True for bodies that would reach an obstacle.

    Args:
        problem: Problem with obstacles.
        x: (n, 3) positions [m].
        drifts: (bodies, 3) displacements of the bodies [m].
    """
    reach = np.zeros(len(drifts), bool)
    for number, (_, own) in enumerate(problem.model.body_vertices):
        if drifts[number].any():
            gap = distances_to(problem.contacts.shapes, x[own] + drifts[number])[0]
            reach[number] = (gap < np.linalg.norm(drifts[number])).any()
    return reach


def join_neighbors(problem: Problem, x: np.ndarray, drifts: np.ndarray, group: np.ndarray) -> np.ndarray:
    """(bodies,) groups, of which those with neighboring bodies are joined.

    Args:
        problem: Problem with contact between bodies.
        x: (n, 3) positions [m].
        drifts: (bodies, 3) displacements of the bodies [m].
        group: (bodies,) group of each body.
    """
    bodies = [own for _, own in problem.model.body_vertices]
    paths: list[tuple[np.ndarray, ...]] = [
        (x[own], x[own] + drift) for own, drift in zip(bodies, drifts, strict=True)
    ]
    numbers = np.arange(len(bodies))
    members = [numbers[group == number] for number in np.unique(group)]
    chains = [np.column_stack([own[:-1], own[1:]]) for own in members]
    near = np.argwhere(neighbors(paths, problem.model.mean_edge))
    return connect_bodies(np.concatenate([*chains, near]), len(bodies))


def neighbors(paths: list[tuple[np.ndarray, ...]], margin: float) -> np.ndarray:
    """(bodies, bodies) True for bodies whose bounding boxes are within a margin [m] of each other.

    Args:
        paths: For each body, positions (n, 3) [m] that its box has to hold.
        margin: Gap between boxes below which bodies are neighbors.
    """
    low = np.stack([np.min([x.min(axis=0) for x in each], axis=0) for each in paths])
    high = np.stack([np.max([x.max(axis=0) for x in each], axis=0) for each in paths])
    gaps = np.maximum(low[:, None] - high[None], low[None] - high[:, None]).max(axis=2)
    return np.asarray(gaps < margin)


def connect_bodies(links: np.ndarray, count: int) -> np.ndarray:
    """(bodies,) group of each of `count` bodies, for links (m, 2) between bodies."""
    first, second = links.T
    graph = coo_array((np.ones(len(links), bool), (first, second)), (count, count))
    return np.asarray(connected_components(graph, directed=False)[1])
