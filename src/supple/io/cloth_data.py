"""What files have of cloth beside what they have of all bodies: how it is folded, where its threads run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.cloth_figures import folds
from supple.meshes import Mesh, TriMesh


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
