"""Support of a scene: rigid motions that pins and fixed points leave to its connected parts."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from supple.scene.constraints.connector_methods import make_user_terms
from supple.scene.errors import SceneError
from supple.scene.scene import Scene


class Support:
    """Support of connected scene parts, reusable for many load vectors.

    Args:
        scene: The scene.
        pinned: (k,) constrained vertices of its model.
        constrained: (k, 3, 3) projections onto their constrained directions, None for all directions.
    """

    def __init__(self, scene: Scene, pinned: np.ndarray, constrained: np.ndarray | None) -> None:
        self._bodies = list(scene.bodies)
        self._part = _connected_parts(scene)
        vertices, N = _support(scene, pinned, constrained)
        self._supported = np.zeros((self._part.max() + 1, 3, 3))
        np.add.at(self._supported, self._part[vertices], N)
        stiffness, self._directions = np.linalg.eigh(self._supported)
        self._loose = stiffness < 1e-9

    def check_equilibrium(self, force: np.ndarray) -> None:
        """Refuse forces that accelerate a part along unsupported directions.

        Args:
            force: (n, 3) forces on the vertices [N].

        Raises:
            SceneError: The forces on a part do not sum to zero along an unsupported direction, so that it has
                no equilibrium.
        """
        if not self._loose.any() or not force.any():
            return
        part, directions = self._part, self._directions
        total = np.column_stack([np.bincount(part, axis) for axis in force.T])
        net_force = np.where(self._loose, np.einsum("pij,pi->pj", directions, total), 0)
        magnitude = np.bincount(part, np.linalg.norm(force, axis=1))
        falling = np.linalg.norm(net_force, axis=1) > 1e-9 * magnitude
        if falling.any():
            names = [repr(body.name) for body in self._bodies if falling[part[body.vertices]].any()]
            worst = int(falling.argmax())
            raise SceneError(
                f"Nothing holds {' and '.join(names)} against the forces on "
                f"it{_describe_direction(directions[worst] @ net_force[worst], self._supported[worst])}: "
                "it would fall forever and has no quasistatic equilibrium. Pin some of its "
                "vertices, attach it to a supported body, remove the load (gravity=(0, 0, 0)), or "
                "make the scene dynamic with quasistatic=False."
            )


def _describe_direction(net_force: np.ndarray, supported: np.ndarray) -> str:
    """Name the unsupported direction of a part; empty for completely unsupported parts."""
    x, y, z = net_force / np.linalg.norm(net_force)
    return f" along ({x:.3g}, {y:.3g}, {z:.3g})" if supported.any() else ""


def rigid_motions_left(scene: Scene, pinned: np.ndarray, constrained: np.ndarray | None) -> int:
    """Count infinitesimal rigid motions permitted by supports, summed over connected parts.

    An unsupported part has six, x ↦ t + ω × x; a part that is pinned at one point has three.
    """
    part = _connected_parts(scene)
    vertices, N = _support(scene, pinned, constrained)
    rest = np.concatenate([body.points for body in scene.bodies])
    sizes = np.bincount(part)
    center = np.column_stack([np.bincount(part, axis) for axis in rest.T]) / sizes[:, None]
    r = rest[vertices] - center[part[vertices]]
    r /= np.ptp(rest, axis=0).max()
    turn = np.cross(np.eye(3)[None], r[:, None])  # rows e × r
    motions = np.concatenate([np.broadcast_to(np.eye(3), turn.shape), turn], axis=1)
    gram = np.zeros((len(sizes), 6, 6))
    np.add.at(gram, part[vertices], np.einsum("kai,kij,kbj->kab", motions, N, motions))
    return int((6 - np.linalg.matrix_rank(gram, tol=1e-9, hermitian=True)).sum())


def _support(
    scene: Scene, pinned: np.ndarray, constrained: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the supported vertices and directions.

    Returns:
        Vertices (k,) with pins, or with attachments or springs to fixed points, and projections (k, 3, 3)
        onto the supported directions. A spring counts as support in all directions, since it rotates.
    """
    fixed = [np.empty(0, np.int64)]
    for attachment in scene.attachments:
        to_fixed_point = np.abs(attachment.weights.sum(axis=1)) > 0.5
        fixed.append(attachment.vertices[to_fixed_point, 0])
    fixed += [springs.vertices[:, 0] for springs in scene.springs if springs.points is not None]
    fixed += [term.vertices[~term.translatable, 0] for term in make_user_terms(scene)]
    N = np.tile(np.eye(3), (len(pinned), 1, 1)) if constrained is None else constrained
    vertices = np.concatenate([pinned, *fixed])
    return vertices, np.concatenate([N, np.tile(np.eye(3), (len(vertices) - len(pinned), 1, 1))])


def _connected_parts(scene: Scene) -> np.ndarray:
    """Label vertices (n,) by connected part.

    Cells, attachments, springs and user-defined terms connect vertices.
    """
    stencils = [body.cells for body in scene.bodies]
    stencils += [attachment.vertices for attachment in scene.attachments]
    stencils += [springs.vertices for springs in scene.springs]
    stencils += [term.vertices for term in make_user_terms(scene)]
    start = np.concatenate([np.repeat(s[:, 0], s.shape[1] - 1) for s in stencils])
    end = np.concatenate([s[:, 1:].ravel() for s in stencils])
    n = scene.bodies[-1].vertices.stop
    graph = coo_array((np.ones(len(start), bool), (start, end)), shape=(n, n))
    return connected_components(graph, directed=False)[1]
