"""Obstacles that are closed surfaces, at rest or deforming: grids of distances."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from supple.checks import items
from supple.contact import shapes as kinds
from supple.meshes import MeshError, TriMesh
from supple.scene.checks import count, number, shown
from supple.scene.errors import SceneError
from supple.scene.shapes import Shape, row_of

MARGIN = 3
"""Cells of a grid of distances beyond the surface on every side."""


class SurfaceShape(Shape):
    """The inside of a closed surface, as distances at the points of a grid with so many `cells` along its
    longest side, linear in between: features smaller than a cell are rounded."""

    def __init__(self, mesh: TriMesh, cells: int = 64) -> None:
        if not isinstance(mesh, TriMesh):
            raise SceneError(
                "SurfaceShape needs a TriMesh, for example supple.load_surface('body.obj'); "
                f"got {shown(mesh)}."
            )
        try:
            mesh.refuse_open()
        except MeshError as error:
            raise SceneError(
                f"An obstacle must be closed, or nobody knows where its inside is. {error}"
            ) from None
        if mesh.enclosed_volume <= 0:
            raise SceneError(
                "The surface of an obstacle is inside out: the corners of its triangles must be "
                "counter-clockwise seen from outside. Turn them round, for example with Blender's "
                "'Recalculate Outside'."
            )
        self.mesh, self.cells = mesh, count(cells, "cells of SurfaceShape")

    @property
    def _spacing(self) -> float:
        return float(self.mesh.size.max()) / self.cells

    @property
    def _numbers(self) -> np.ndarray:
        """Of the points along x, y and z."""
        return np.ceil(self.mesh.size / self._spacing).astype(int) + 1 + 2 * MARGIN

    @property
    def _origin(self) -> np.ndarray:
        return self.mesh.points.min(axis=0) - MARGIN * self._spacing

    @property
    def rows(self) -> np.ndarray:
        row = row_of(kinds.GRID, np.eye(3), self._origin, tuple(self._numbers))
        row[kinds.SPACING] = self._spacing
        return row[None]

    @cached_property
    def values(self) -> np.ndarray:
        return signed_distance(self.mesh, grid_points(self._origin, self._spacing, self._numbers))


class SurfaceSequence(Shape):
    """The inside of a closed surface that deforms: meshes, such as the frames of a walking mannequin, at
    times (k,) [s]. Between two of them distances go over evenly; before the first and after the last it
    rests. Each is a grid of distances with so many `cells` along the longest side of all, made when it is
    needed."""

    def __init__(self, meshes: Sequence[TriMesh], times: Sequence[float], cells: int = 32) -> None:
        shapes = [SurfaceShape(mesh, cells) for mesh in items(meshes)]
        self.times = np.array([number(time, "times [s] of SurfaceSequence") for time in items(times)])
        if len(shapes) != len(self.times) or len(shapes) < 2 or not (np.diff(self.times) > 0).all():
            raise SceneError(
                "SurfaceSequence needs two meshes or more, and as many times [s], each later than the last; "
                f"got {len(shapes)} meshes and times {shown(list(items(times)))}."
            )
        self.meshes, self.cells = [shape.mesh for shape in shapes], shapes[0].cells
        every = np.concatenate([mesh.points for mesh in self.meshes])
        size = np.ptp(every, axis=0)
        self._spacing = float(size.max()) / self.cells
        self._origin = every.min(axis=0) - MARGIN * self._spacing
        self._numbers = np.ceil(size / self._spacing).astype(int) + 1 + 2 * MARGIN
        self._known: dict[int, np.ndarray] = {}

    @property
    def rows(self) -> np.ndarray:
        row = row_of(kinds.GRID, np.eye(3), self._origin, tuple(self._numbers))
        row[kinds.SPACING] = self._spacing
        return row[None]

    @property
    def values(self) -> np.ndarray:
        return self.values_at(float(self.times[0]))

    def values_at(self, t: float) -> np.ndarray:
        after = int(np.clip(np.searchsorted(self.times, t), 1, len(self.times) - 1))
        begin, end = self.times[after - 1], self.times[after]
        part = float(np.clip((t - begin) / (end - begin), 0, 1))
        return (1 - part) * self._distances(after - 1) + part * self._distances(after)

    def _distances(self, number: int) -> np.ndarray:
        """Of one mesh; the last few are kept."""
        if number not in self._known:
            while len(self._known) > 3:
                del self._known[next(iter(self._known))]
            points = grid_points(self._origin, self._spacing, self._numbers)
            self._known[number] = signed_distance(self.meshes[number], points)
        return self._known[number]


def grid_points(origin: np.ndarray, spacing: float, numbers: np.ndarray) -> np.ndarray:
    """(k, 3) [m] all points of a grid, z by z."""
    axes = [spacing * np.arange(number) for number in numbers]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3) + origin


def signed_distance(mesh: TriMesh, points: np.ndarray) -> np.ndarray:
    """Of points (n, 3) [m] from a closed surface, negative inside; by VTK, for set-up only."""
    from pyvista import PolyData

    surface = PolyData.from_regular_faces(np.array(mesh.points), np.array(mesh.triangles))
    found = PolyData(points).compute_implicit_distance(surface)
    return np.asarray(found["implicit_distance"], float)
