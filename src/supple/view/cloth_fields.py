"""What cloth can be coloured by: how it is folded, and how its threads are stretched."""

from __future__ import annotations

import numpy as np

from supple.meshes.edges import Edges
from supple.meshes.measures import area_vectors, means_at_vertices
from supple.model import Model, Step
from supple.scene.cloth import Cloth
from supple.terms.frames import flattened, pattern_frames, pattern_gradients


def bending_angle(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """The largest angle between triangles that meet at an edge of each vertex [degrees]; NaN on solids."""
    found = np.full(model.vertices, np.nan)
    for body in model.bodies:
        if body.mesh.corners == 3:
            found[body.vertices] = _angles(body.mesh.cells, positions[body.vertices])
    return found


def _angles(triangles: np.ndarray, x: np.ndarray) -> np.ndarray:
    edges = Edges(triangles)
    one, other = area_vectors(x, triangles)[edges.pairs].transpose(1, 0, 2)
    across = np.linalg.norm(np.cross(one, other), axis=1)
    angle = np.degrees(np.arctan2(across, np.einsum("ei,ei->e", one, other)))
    largest = np.zeros(len(x))
    for end in edges.ends[edges.counts == 2].T:
        np.maximum.at(largest, end, angle)
    return largest


def weft_strain(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """By what part the threads along u are longer than at rest, the mean over the triangles around each
    vertex; NaN where there is no cloth with uv."""
    return _strain(model, positions, "u")


def warp_strain(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """The same along v."""
    return _strain(model, positions, "v")


def _strain(model: Model, positions: np.ndarray, axis: str) -> np.ndarray:
    found = np.full(model.vertices, np.nan)
    for body in model.bodies:
        if isinstance(body, Cloth) and body.mesh.uv is not None:
            cells, x = body.mesh.cells, positions[body.vertices]
            flat = flattened(body.rest_corners)
            frames = pattern_frames(body.points[cells], flat)
            along = np.einsum("eij,ei->ej", frames, body.mesh.field(axis))
            F = np.einsum("eai,eaj->eij", x[cells], pattern_gradients(flat))
            stretch = np.linalg.norm(np.einsum("eij,ej->ei", F, along), axis=1)
            found[body.vertices] = means_at_vertices(stretch - 1, cells, body.rest_measures, len(x))
    return found
