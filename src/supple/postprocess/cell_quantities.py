"""Derived cell quantities other than stress: fiber stretch, and folds and thread strains of cloth."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from supple.algebra.triangle_frames import flatten_triangle, pattern_frames, pattern_gradients
from supple.materials import table_of
from supple.meshes.edges import Edges
from supple.meshes.measures import area_vectors, areas
from supple.model.model import Model, find_cells

ClothQuantity = Callable[[Any, np.ndarray], np.ndarray | None]
"""Function of a body and positions (n, 3) [m] that returns one number per cell, or None if it is
undefined."""


def evaluate_cells(model: Model, positions: np.ndarray, name: str) -> np.ndarray:
    """(m,) one of `CLOTH_QUANTITIES` for all cells, body after body; NaN for solids."""
    columns, quantity = [], CLOTH_QUANTITIES[name]
    for body in model.bodies:
        values = quantity(body, positions[body.vertices]) if body.mesh.corners == 3 else None
        columns.append(np.full(body.mesh.n_cells, np.nan) if values is None else values)
    return np.concatenate(columns)


def bending_angle(body: Any, x: np.ndarray) -> np.ndarray:
    """Largest angle between the normals of each triangle and its neighbors [degrees]."""
    return folds(body.mesh.cells, x)


def weft_strain(body: Any, x: np.ndarray) -> np.ndarray | None:
    """Relative elongation of threads along u; None without uv."""
    return _strain(body, x, "u")


def warp_strain(body: Any, x: np.ndarray) -> np.ndarray | None:
    """Relative elongation of threads along v; None without uv."""
    return _strain(body, x, "v")


def area_ratio(body: Any, x: np.ndarray) -> np.ndarray:
    """Area of each triangle relative to its rest area."""
    return areas(x, body.mesh.cells) / body.rest_measures


def folds(triangles: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(m,) largest angle between the normals of each triangle and its neighbors [degrees]."""
    edges, angle = _angles(triangles, x)
    largest = np.zeros(len(triangles))
    for side in edges.pairs.T:
        np.maximum.at(largest, side, angle)
    return largest


def folds_at_vertices(triangles: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n,) largest angle between triangle normals at the edges of each vertex [degrees]."""
    edges, angle = _angles(triangles, x)
    largest = np.zeros(len(x))
    for end in edges.ends[edges.counts == 2].T:
        np.maximum.at(largest, end, angle)
    return largest


def _angles(triangles: np.ndarray, x: np.ndarray) -> tuple[Edges, np.ndarray]:
    """Edges, and angles between triangle normals at interior edges [degrees]."""
    edges = Edges(triangles)
    one, other = area_vectors(x, triangles)[edges.pairs].transpose(1, 0, 2)
    across = np.linalg.norm(np.cross(one, other), axis=1)
    return edges, np.degrees(np.arctan2(across, np.einsum("ei,ei->e", one, other)))


def _strain(body: Any, x: np.ndarray, axis: str) -> np.ndarray | None:
    """Relative elongation along the rest direction of u or v, per triangle; None without uv."""
    if body.mesh.uv is None:
        return None
    flat = flatten_triangle(body.rest_corners)
    frames = pattern_frames(body.points[body.mesh.cells], flat)
    along = np.einsum("eij,ei->ej", frames, body.mesh.field(axis))
    F = np.einsum("eai,eaj->eij", x[body.mesh.cells], pattern_gradients(flat))
    return np.linalg.norm(np.einsum("eij,ej->ei", F, along), axis=1) - 1


CLOTH_QUANTITIES: dict[str, ClothQuantity] = {
    "bending_angle": bending_angle,
    "weft_strain": weft_strain,
    "warp_strain": warp_strain,
    "area_ratio": area_ratio,
}
"""Derived quantities of cloth by name."""


def deformed_fibers(model: Model, positions: np.ndarray) -> np.ndarray:
    """Fiber directions F a in the deformed configuration.

    a is the first unit direction of a tetrahedron's material, so that |F a| is the fiber stretch.

    Args:
        model: Model.
        positions: (n, 3) positions [m].

    Returns:
        (m, 3) vectors for all cells; NaN for materials without fibers.
    """
    directions, cells = _directions(model), model.cells
    fibers = np.full((len(cells), 3), np.nan)
    rows = np.flatnonzero(np.isfinite(directions[:, 0]))
    if len(rows):
        corners = cells[rows]
        rest, now = (x[corners[:, 1:]] - x[corners[:, :1]] for x in (model.rest, positions))
        by_edges = np.linalg.solve(rest.transpose(0, 2, 1), directions[rows][:, :, None])
        fibers[rows] = np.einsum("eki,ek->ei", now, by_edges[:, :, 0])
    return fibers


@lru_cache(maxsize=2)
def _directions(model: Model) -> np.ndarray:
    """(m, 3) fiber directions at rest."""
    directions = np.full((len(model.cells), 3), np.nan)
    for term in model.terms:
        names = [p.name for p in getattr(term.material, "parameters", ()) if p.kind == "direction"]
        if names and term.fills:
            rows = find_cells(term.vertices, model.cells)
            known = table_of(getattr(term.material, names[0]), len(term.vertices))
            directions[rows[rows >= 0]] = known[rows >= 0]
    return directions


class CellQuantities:
    """Derived quantities of all cells of a model at positions (n, 3) [m]."""

    model: Model
    positions: np.ndarray

    @cached_property
    def fiber_stretch(self) -> np.ndarray:
        """(m,) fiber stretch |F a|; NaN for materials without fibers."""
        return np.linalg.norm(deformed_fibers(self.model, self.positions), axis=1)

    @cached_property
    def fibers(self) -> np.ndarray:
        """(m, 3) unit fiber directions in the deformed configuration; NaN for materials without fibers."""
        return deformed_fibers(self.model, self.positions) / self.fiber_stretch[:, None]

    @cached_property
    def bending_angle(self) -> np.ndarray:
        """(m,) largest angle between normals of neighboring triangles [degrees]; NaN for tetrahedra."""
        return evaluate_cells(self.model, self.positions, "bending_angle")

    @cached_property
    def weft_strain(self) -> np.ndarray:
        """(m,) relative elongation of threads along u; NaN for tetrahedra and cloth without uv."""
        return evaluate_cells(self.model, self.positions, "weft_strain")

    @cached_property
    def warp_strain(self) -> np.ndarray:
        """(m,) relative elongation of threads along v; NaN for tetrahedra and cloth without uv."""
        return evaluate_cells(self.model, self.positions, "warp_strain")

    @cached_property
    def area_ratio(self) -> np.ndarray:
        """(m,) triangle area relative to rest area, for all cloth; NaN for tetrahedra."""
        return evaluate_cells(self.model, self.positions, "area_ratio")
