"""What files have of cloth beside what they have of all bodies: how it is folded, where its threads run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.meshes import Mesh, TriMesh
from supple.meshes.edges import Edges
from supple.meshes.measures import area_vectors


def cloth_data(meshes: Sequence[Mesh], positions: np.ndarray) -> dict[str, np.ndarray]:
    """For the cells of all meshes, one after the other, with vertices at positions (n, 3): `bending_angle`,
    the largest angle to a neighbour [degrees]; `weft` and `warp`, the directions along u and v where cloth
    has uv; NaN on solids. Nothing where there is no cloth."""
    if not any(isinstance(mesh, TriMesh) for mesh in meshes):
        return {}
    angle: list[np.ndarray] = []
    threads: dict[str, list[np.ndarray]] = {"weft": [], "warp": []}
    first = 0
    for mesh in meshes:
        x = positions[first : first + mesh.n_vertices]
        first += mesh.n_vertices
        sheet = isinstance(mesh, TriMesh)
        angle.append(folds(mesh.cells, x) if sheet else np.full(mesh.n_cells, np.nan))
        for name, axis in (("weft", "u"), ("warp", "v")):
            known = sheet and mesh.uv is not None
            threads[name].append(mesh.field(axis) if known else np.full((mesh.n_cells, 3), np.nan))
    found = {name: np.concatenate(parts) for name, parts in threads.items()}
    woven = {name: values for name, values in found.items() if not np.isnan(values).all()}
    return {"bending_angle": np.concatenate(angle), **woven}


def folds(triangles: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(m,) the largest angle of each triangle to a neighbour [degrees]."""
    edges = Edges(triangles)
    one, other = area_vectors(x, triangles)[edges.pairs].transpose(1, 0, 2)
    across = np.linalg.norm(np.cross(one, other), axis=1)
    angle = np.degrees(np.arctan2(across, np.einsum("ei,ei->e", one, other)))
    largest = np.zeros(len(triangles))
    for side in edges.pairs.T:
        np.maximum.at(largest, side, angle)
    return largest
