"""Additional cell data of cloth in files: fold angles and thread directions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.cloth_figures import folds
from supple.meshes import Mesh, TriMesh


def cloth_data(meshes: Sequence[Mesh], positions: np.ndarray) -> dict[str, np.ndarray]:
    """Compute cell data of cloth.

    Args:
        meshes: Meshes of all bodies.
        positions: (n, 3) vertex positions [m].

    Returns:
        `bending_angle`, the largest angle to a neighbor [degrees], and `weft` and `warp`, the directions
        along u and v of cloth with uv, for the cells of all meshes; NaN on solids. Empty without cloth.
    """
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
