"""Fields of cloth: fold angles and thread strains."""

from __future__ import annotations

import numpy as np

from supple.cloth_figures import CLOTH_FIGURES, folds_at_vertices
from supple.meshes.measures import means_at_vertices
from supple.model import Model, Step


def bending_angle(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Largest dihedral angle at the edges of each vertex [degrees]; NaN on solids."""
    found = np.full(model.vertices, np.nan)
    for body in model.bodies:
        if body.mesh.corners == 3:
            found[body.vertices] = folds_at_vertices(body.mesh.cells, positions[body.vertices])
    return found


def weft_strain(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Strain of the threads along u, averaged over the triangles of each vertex; NaN without cloth or uv."""
    return means(model, positions, "weft_strain")


def warp_strain(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Strain of the threads along v, averaged over the triangles of each vertex; NaN without cloth or uv."""
    return means(model, positions, "warp_strain")


def means(model: Model, positions: np.ndarray, figure: str) -> np.ndarray:
    """Average a `CLOTH_FIGURES` quantity over the triangles of each vertex, weighted by rest area; (n,)."""
    found = np.full(model.vertices, np.nan)
    for body in model.bodies:
        x = positions[body.vertices]
        values = CLOTH_FIGURES[figure](body, x) if body.mesh.corners == 3 else None
        if values is not None:
            found[body.vertices] = means_at_vertices(values, body.mesh.cells, body.rest_measures, len(x))
    return found
