"""Data of deformed meshes: directions and tensors rotate with the deformation."""

from __future__ import annotations

import numpy as np

from supple.meshes.data import turned, turns
from supple.meshes.measures import means_at_vertices
from supple.meshes.mesh import Mesh


def deformation_gradients(mesh: Mesh, positions: np.ndarray) -> np.ndarray:
    """F (m, 3, 3) of every cell at positions (n, 3) [m]; triangles keep their thickness."""
    return np.linalg.solve(_edges(mesh.points, mesh.cells), _edges(positions, mesh.cells)).transpose(0, 2, 1)


def _edges(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(m, 3, 3) rows: three edges of a tet; two edges of a triangle and its unit normal."""
    edges = points[cells[:, 1:]] - points[cells[:, :1]]
    if edges.shape[1] == 3:
        return edges
    normal = np.cross(edges[:, 0], edges[:, 1])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    return np.concatenate([edges, normal[:, None]], axis=1)


def deformed_data(mesh: Mesh, positions: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Cell and point data of a mesh at positions (n, 3) [m].

    Vectors follow F v with their rest length, tensors the rotation of F; vertices use the mean F of their
    cells.
    """
    cells, vertices = dict(mesh.cell_data), dict(mesh.point_data)
    if positions is mesh.points or not any(map(turns, (*cells.values(), *vertices.values()))):
        return cells, vertices
    F = deformation_gradients(mesh, positions)
    cells = turned(cells, F)
    if any(map(turns, vertices.values())):
        mean = means_at_vertices(F, mesh.cells, mesh.measures, mesh.n_vertices)
        vertices = turned(vertices, mean)
    return cells, vertices
