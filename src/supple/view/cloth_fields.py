"""What cloth can be coloured by: how it is folded, and how its threads are stretched."""

from __future__ import annotations

import numpy as np

from supple.cloth_figures import CLOTH_FIGURES, folds_at_vertices
from supple.meshes.measures import means_at_vertices
from supple.model import Model, Step


def bending_angle(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """The largest angle between triangles that meet at an edge of each vertex [degrees]; NaN on solids."""
    found = np.full(model.vertices, np.nan)
    for body in model.bodies:
        if body.mesh.corners == 3:
            found[body.vertices] = folds_at_vertices(body.mesh.cells, positions[body.vertices])
    return found


def weft_strain(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """By what part the threads along u are longer than at rest, the mean over the triangles around each
    vertex; NaN where there is no cloth with uv."""
    return means(model, positions, "weft_strain")


def warp_strain(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """By what part the threads along v are longer than at rest, the mean over the triangles around each
    vertex; NaN where there is no cloth with uv."""
    return means(model, positions, "warp_strain")


def means(model: Model, positions: np.ndarray, figure: str) -> np.ndarray:
    """(n,) one of `CLOTH_FIGURES`, the mean over triangles around each vertex, weighted by area at rest."""
    found = np.full(model.vertices, np.nan)
    for body in model.bodies:
        x = positions[body.vertices]
        values = CLOTH_FIGURES[figure](body, x) if body.mesh.corners == 3 else None
        if values is not None:
            found[body.vertices] = means_at_vertices(values, body.mesh.cells, body.rest_measures, len(x))
    return found
