"""Closest points of a body at rest: in the tetrahedron that contains a point, else on the surface; of cloth
always on the surface.

VTK's cell locators do the searching; barycentric coordinates are computed here, in float64.
"""

from __future__ import annotations

import numpy as np

from supple.meshes.mesh import Mesh
from supple.meshes.surface import neighbours

_INSIDE = -1e-9
"""Smallest barycentric coordinate that counts as inside: points on a face belong to the body."""

_STEPS = 20
"""Tets to walk through, at most; nearly all walks end after one."""


def closest_in_body(points: np.ndarray, mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (k, 4) and weights (k, 4) ≥ 0, Σ_j w_j = 1: Σ_j w_j X_j is the point of the body nearest to
    each of the points (k, 3) [m]. On the surface the fourth weight is 0, and cloth has three of them only."""
    if mesh.corners == 3:
        vertices, weights = _on_surface(points, mesh)
        return vertices.astype(np.int64), _sound(weights)
    tet, weights = _containing(points, mesh)
    vertices = mesh.cells[tet].astype(np.int64)
    outside = np.flatnonzero(weights.min(axis=1) < _INSIDE)
    if len(outside):
        corners, coordinates = _on_surface(points[outside], mesh)
        vertices[outside] = corners[:, [0, 1, 2, 0]]
        weights[outside] = np.pad(coordinates, ((0, 0), (0, 1)))
    return vertices, _sound(weights)


def _sound(weights: np.ndarray) -> np.ndarray:
    weights = np.maximum(weights, 0)
    return weights / weights.sum(axis=1, keepdims=True)


def _containing(points: np.ndarray, mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """The tet (k,) that contains each point and barycentric coordinates (k, 4) in it.

    Where there is none, some coordinate is negative. VTK's tets contain their points to a part in a thousand
    only, so from each we walk through its most negative face, until no coordinate is negative.
    """
    import pyvista

    grid = pyvista.UnstructuredGrid({pyvista.CellType.TETRA: mesh.cells}, mesh.points)
    tet = np.atleast_1d(grid.find_containing_cell(points))  # -1 where there is none, which is the last tet
    weights = _barycentric(points, mesh, tet)
    beyond = neighbours(mesh.cells)
    walking = np.flatnonzero((tet >= 0) & (weights.min(axis=1) < _INSIDE))
    for _ in range(_STEPS):
        through = beyond[tet[walking], weights[walking].argmin(axis=1)]
        walking, through = walking[through >= 0], through[through >= 0]
        tet[walking], weights[walking] = through, _barycentric(points[walking], mesh, through)
        walking = walking[weights[walking].min(axis=1) < _INSIDE]
    return tet, weights


def _barycentric(points: np.ndarray, mesh: Mesh, tet: np.ndarray) -> np.ndarray:
    """Coordinates (k, 4) of points (k, 3) in tets (k,)."""
    corners = mesh.points[mesh.cells[tet]]
    edges = np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2)
    last = np.linalg.solve(edges, (points - corners[:, 0])[..., None])[..., 0]
    return np.column_stack([1 - last.sum(axis=1), last])


def _on_surface(points: np.ndarray, mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Surface triangles (k, 3) and barycentric coordinates (k, 3) of the nearest surface points."""
    import pyvista

    surface = pyvista.PolyData.from_regular_faces(mesh.points, mesh.surface)
    triangle, nearest = surface.find_closest_cell(points, return_closest_point=True)
    corners = mesh.points[mesh.surface[triangle]]
    edges = np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2)
    across = np.swapaxes(edges, 1, 2)
    last = np.linalg.solve(across @ edges, across @ (nearest - corners[:, 0])[..., None])[..., 0]
    return mesh.surface[triangle], np.column_stack([1 - last.sum(axis=1), last])
