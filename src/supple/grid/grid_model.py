"""Grid model of one step: nodes as vertices, with masses, velocities and embedded elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from supple.grid.interpolation import Interpolation, interpolate
from supple.model.model import Model
from supple.terms import EmbeddedElasticity, NodeInterpolation

MIN_MASS_FRACTION = {"float32": 1e-6, "float64": 0.0}
"""Smallest mass of an unknown node relative to the mean mass, by precision.

Lighter nodes move at their velocity.
"""


class Forces(NamedTuple):
    """Loads of a step.

    Attributes:
        force: (n, 3) forces on vertices [N].
        pinned: (k, 3) target positions of pinned vertices [m].
        materials: Materials by term number, if different from the model's.
    """

    force: np.ndarray
    pinned: np.ndarray
    materials: dict[int, Any]


@dataclass(frozen=True, eq=False)
class GridModel:
    """Grid model of a step.

    Attributes:
        model: Model of the nodes; their rest positions are those at the start of the step.
        velocities: (q, 3) initial node velocities [m/s].
        prescribed: (k, 3) positions of the pinned nodes at the end of the step [m].
        points: Interpolation of the mesh vertices from the nodes.
    """

    model: Model
    velocities: np.ndarray
    prescribed: np.ndarray
    points: Interpolation


def make_grid_model(
    mesh: Model,
    spacing: float,
    state: tuple[np.ndarray, np.ndarray, np.ndarray],
    acting: Forces,
    dt: float,
    precision: str,
) -> GridModel:
    """Create the grid model of a step.

    Args:
        mesh: Model of the mesh.
        spacing: Edge length of the cells [m].
        state: Positions (n, 3) [m], velocities (n, 3) [m/s] and velocity gradients (n, 3, 3) [1/s] of the
            vertices.
        acting: Loads of the step.
        dt: Time step [s].
        precision: Working precision.
    """
    x, velocity, affine = state
    points = interpolate(x, spacing)
    mass = points.spread(mesh.mass)
    v = points.transfer(mesh.mass, velocity, affine)
    terms = tuple(
        embed_elements(term, points, x - mesh.rest, acting.materials.get(k, term.material))
        for k, term in enumerate(mesh.terms)
    )
    moved = v * dt
    constrained = _constrain_by_pins(mesh, points, x, acting.pinned, moved)
    constrained |= mass < MIN_MASS_FRACTION[precision] * mass.mean()
    pinned = np.flatnonzero(constrained)
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
    return GridModel(model, v, prescribed, points)


def _constrain_by_pins(
    mesh: Model, points: Interpolation, x: np.ndarray, targets: np.ndarray, moved: np.ndarray
) -> np.ndarray:
    """Find the nodes that carry pinned vertices.

    Returns:
        (q,) mask of these nodes; the mean motion of their pinned vertices (q, 3) [m] is written to `moved`.
    """
    if not len(mesh.pinned):
        return np.zeros(len(points.nodes), bool)
    weights, ids = points.weights[mesh.pinned], points.corners[mesh.pinned].ravel()
    count = len(points.nodes)
    total = np.bincount(ids, weights.ravel(), count)
    constrained = total > 0
    steps = targets - x[mesh.pinned]
    for axis in range(3):
        sums = np.bincount(ids, (weights * steps[:, axis, None]).ravel(), count)
        moved[constrained, axis] = sums[constrained] / total[constrained]
    return constrained


def embed_elements(
    term: Any, points: Interpolation, displacements: np.ndarray, material: Any
) -> EmbeddedElasticity:
    """Embed the elements of a term, with vertices displaced by (n, 3) [m], in the grid."""
    assert term.fills
    corners = term.vertices
    ids = points.corners[corners].reshape(len(corners), -1)
    parts = (points.weights[corners][..., None] * term.gradients[:, :, None]).reshape(*ids.shape, 3)
    nodes, gradients = _merge_nodes(ids, parts)
    interpolation = NodeInterpolation(corners, term.gradients, points.corners, points.weights)
    return EmbeddedElasticity(
        nodes, gradients, term.volume, material, term.deformations(displacements), interpolation
    )


def _merge_nodes(ids: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge repeated nodes of each element.

    Args:
        ids: (m, c) nodes.
        parts: (m, c, 3) vectors.

    Returns:
        Distinct nodes (m, k), padded with the first one, and sums (m, k, 3) of their vectors.
    """
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
