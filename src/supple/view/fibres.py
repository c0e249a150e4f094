"""Short lines along material fibers on the surface of bodies."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from supple.fibre_figures import carried_fibres
from supple.meshes.measures import area_vectors
from supple.model import Model
from supple.view.surface import spaced

SPACING = 0.02
"""Smallest distance, and the length, of lines at rest, relative to the model's size."""

COARSE = 0.6
"""Smallest distance of lines relative to the mean edge length."""

FLAT = 0.3
"""Smallest tangential component of a fiber for a line."""


def fibre_lines(model: Model, positions: np.ndarray) -> np.ndarray:
    """(l, 2, 3) ends of lines along the fibers just below the surface [m].

    Fibers that are nearly normal to the surface are omitted.
    """
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
    """Surface triangles (t, 3) of cells with fibers, thinned to the line spacing, and the cells behind."""
    fibrous = np.flatnonzero(np.isfinite(carried_fibres(model, model.rest)[:, 0]))
    tets = model.cells[fibrous] if len(fibrous) else np.empty((0, 4), int)
    faces = tets[:, [(0, 1, 2), (0, 3, 1), (1, 3, 2), (2, 3, 0)]].reshape(-1, 3)
    _, first, counts = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    outer = first[counts == 1]
    kept = spaced(model.rest[faces].mean(axis=1), outer, _width(model))
    return faces[kept], fibrous[kept // 4]


def _width(model: Model) -> float:
    """Spacing and length of lines [m]."""
    return max(SPACING * float(np.linalg.norm(np.ptp(model.rest, axis=0))), COARSE * model.mean_edge)
