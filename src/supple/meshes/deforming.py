"""Data of a mesh that has deformed: directions and tensors turn with the deformation."""

from __future__ import annotations

import numpy as np

from supple.meshes.data import turned, turns
from supple.meshes.tetmesh import TetMesh


def deformation_gradients(mesh: TetMesh, positions: np.ndarray) -> np.ndarray:
    """F (m, 3, 3) of every tet, whose corners are now at positions (n, 3) [m]."""
    rest = mesh.points[mesh.tets[:, 1:]] - mesh.points[mesh.tets[:, :1]]
    now = positions[mesh.tets[:, 1:]] - positions[mesh.tets[:, :1]]
    return np.linalg.solve(rest, now).transpose(0, 2, 1)


def deformed_data(
    mesh: TetMesh, positions: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The cell and point data of a mesh at positions (n, 3) [m]: vectors along F v with the length that they
    have at rest, tensors turned by the rotation of F; at vertices, by the mean F of the tets around."""
    cells, vertices = dict(mesh.cell_data), dict(mesh.point_data)
    if positions is mesh.points or not any(map(turns, (*cells.values(), *vertices.values()))):
        return cells, vertices
    F = deformation_gradients(mesh, positions)
    cells = turned(cells, F)
    if any(map(turns, vertices.values())):
        weights = np.repeat(mesh.volumes, 4)
        around = np.bincount(mesh.tets.ravel(), weights, mesh.n_vertices)
        sums = [
            np.bincount(mesh.tets.ravel(), weights * np.repeat(entry, 4), mesh.n_vertices)
            for entry in F.reshape(-1, 9).T
        ]
        vertices = turned(vertices, (np.stack(sums, axis=1) / around[:, None]).reshape(-1, 3, 3))
    return cells, vertices
