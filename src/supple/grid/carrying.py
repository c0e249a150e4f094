"""The step of a grid that carries a model: its nodes as vertices, with masses, velocities and elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from supple.grid.interpolation import Interpolation, interpolate
from supple.model import Model
from supple.terms import Carriage, EmbeddedElasticity

LIGHT = {"float32": 1e-6, "float64": 0.0}
"""Parts of the mean mass of a node: lighter ones are not solved for, but go where their velocity takes
them."""


class Forces(NamedTuple):
    """What acts in a step: force (n, 3) [N] on vertices; pinned (k, 3) [m]: where those go that are held;
    materials by the number of their term, where they differ from the model's."""

    force: np.ndarray
    pinned: np.ndarray
    materials: dict[int, Any]


@dataclass(frozen=True, eq=False)
class Carried:
    """model: of the nodes, the first of whose rest positions are where they are when the step begins;
    velocities (q, 3) [m/s] they have then; prescribed (k, 3) [m] where the pinned ones go; points: how the
    vertices of the mesh hang on them."""

    model: Model
    velocities: np.ndarray
    prescribed: np.ndarray
    points: Interpolation


def carry(
    mesh: Model,
    spacing: float,
    state: tuple[np.ndarray, np.ndarray, np.ndarray],
    acting: Forces,
    dt: float,
    precision: str,
) -> Carried:
    """The step of dt [s] from a state of the mesh: positions (n, 3) [m], velocities (n, 3) [m/s] and their
    gradients (n, 3, 3) [1/s] of vertices."""
    x, velocity, affine = state
    points = interpolate(x, spacing)
    mass = points.spread(mesh.mass)
    v = points.transfer(mesh.mass, velocity, affine)
    terms = tuple(
        embedded(term, points, x - mesh.rest, acting.materials.get(k, term.material))
        for k, term in enumerate(mesh.terms)
    )
    moved = v * dt
    held = _held_by_pins(mesh, points, x, acting.pinned, moved)
    held |= mass < LIGHT[precision] * mass.mean()
    pinned = np.flatnonzero(held)
    prescribed = points.nodes[pinned] + moved[pinned]
    model = Model(
        rest=points.nodes,
        mass=mass,
        force=points.spread(acting.force),
        pinned=pinned,
        prescribed=lambda t: prescribed,
        terms=terms,
        tets=np.empty((0, 4), np.int32),
        obstacles=mesh.obstacles,
    )
    return Carried(model, v, prescribed, points)


def _held_by_pins(
    mesh: Model, points: Interpolation, x: np.ndarray, targets: np.ndarray, moved: np.ndarray
) -> np.ndarray:
    """(q,) whether each node carries a pinned vertex; what these nodes move by (q, 3) [m], the mean of what
    their pinned vertices do, is written into `moved`."""
    if not len(mesh.pinned):
        return np.zeros(len(points.nodes), bool)
    weights, ids = points.weights[mesh.pinned], points.corners[mesh.pinned].ravel()
    count = len(points.nodes)
    total = np.bincount(ids, weights.ravel(), count)
    held = total > 0
    steps = targets - x[mesh.pinned]
    for axis in range(3):
        sums = np.bincount(ids, (weights * steps[:, axis, None]).ravel(), count)
        moved[held, axis] = sums[held] / total[held]
    return held


def embedded(
    term: Any, points: Interpolation, displacements: np.ndarray, material: Any
) -> EmbeddedElasticity:
    """The elements of a term, with vertices displaced by (n, 3) [m], on the nodes that carry them."""
    assert term.fills
    corners = term.vertices
    ids = points.corners[corners].reshape(len(corners), -1)
    parts = (points.weights[corners][..., None] * term.gradients[:, :, None]).reshape(*ids.shape, 3)
    nodes, gradients = _merged(ids, parts)
    carriage = Carriage(corners, term.gradients, points.corners, points.weights)
    return EmbeddedElasticity(
        nodes, gradients, term.volume, material, term.deformations(displacements), carriage
    )


def _merged(ids: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each of ids (m, c) once, (m, k), the first again where there are fewer than k; and the sums (m, k, 3)
    of the parts (m, c, 3) of each."""
    order = np.argsort(ids, axis=1, kind="stable")
    sorted_ids = np.take_along_axis(ids, order, axis=1)
    new = np.diff(sorted_ids, axis=1, prepend=sorted_ids[:, :1]) > 0
    slot = np.cumsum(new, axis=1, dtype=np.int64)
    m, k = len(ids), int(slot.max()) + 1
    nodes = np.repeat(sorted_ids[:, :1], k, axis=1)
    np.put_along_axis(nodes, slot, sorted_ids, axis=1)
    where = (np.arange(m)[:, None] * k + slot).ravel()
    ordered = np.take_along_axis(parts, order[..., None], axis=1)
    sums = [np.bincount(where, ordered[..., i].ravel(), m * k) for i in range(3)]
    return nodes.astype(np.int32), np.stack(sums, axis=1).reshape(m, k, 3)
