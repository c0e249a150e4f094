"""Short lines on the surface of bodies, along the fibres of what they are made of."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from supple.fibre_figures import carried_fibres
from supple.meshes.measures import area_vectors
from supple.model import Model
from supple.view.surface import spaced

SPACING = 0.02
"""Lines are at least this part of the model's size apart at rest, and as long."""

COARSE = 0.6
"""And this part of the edges of cells."""

FLAT = 0.3
"""Part of a fibre that is along the surface, at least, where it is drawn."""


def fibre_lines(model: Model, positions: np.ndarray) -> np.ndarray:
    """(l, 2, 3) [m] ends of lines along the fibres just below the surface, and along it: those that run
    straight out of the body are left out."""
    faces, cells = _faces(model)
    along = carried_fibres(model, positions)[cells]
    length = np.linalg.norm(along, axis=1)
    normals = area_vectors(positions, faces)
    with np.errstate(all="ignore"):
        along, normals = along / length[:, None], normals / np.linalg.norm(normals, axis=1, keepdims=True)
    flat = along - np.einsum("ti,ti->t", along, normals)[:, None] * normals
    seen = np.linalg.norm(flat, axis=1) > FLAT
    centres = positions[faces].mean(axis=1)
    reach = 0.45 * _width(model) * length[:, None] * flat
    return np.stack([centres - reach, centres + reach], axis=1)[seen]


@lru_cache(maxsize=2)
def _faces(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Triangles (t, 3) of the surface of cells with fibres, as far apart as lines are, and the number of the
    cell behind each."""
    fibrous = np.flatnonzero(np.isfinite(carried_fibres(model, model.rest)[:, 0]))
    tets = model.cells[fibrous] if len(fibrous) else np.empty((0, 4), int)
    faces = tets[:, [(0, 1, 2), (0, 3, 1), (1, 3, 2), (2, 3, 0)]].reshape(-1, 3)
    _, first, counts = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    outer = first[counts == 1]
    kept = spaced(model.rest[faces].mean(axis=1), outer, _width(model))
    return faces[kept], fibrous[kept // 4]


def _width(model: Model) -> float:
    """[m]"""
    return max(SPACING * float(np.linalg.norm(np.ptp(model.rest, axis=0))), COARSE * model.mean_edge)
