"""Closed surfaces as obstacles, rigid or deforming."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from supple.collision.obstacles import signed_distance
from supple.collision.obstacles.mesh_distance import SECOND, WEIGHT, mesh_thickness
from supple.collision.obstacles.triangle_tree import TriangleTree, has_creases, tree_size
from supple.meshes import MeshError, TriMesh
from supple.scene.errors import SceneError
from supple.scene.shapes.analytic_shapes import Shape, row_of
from supple.scene.value_checks import format_value, number
from supple.support.arguments import as_tuple
from supple.support.keywords import suggest_keywords

Key = TypeVar("Key")
Value = TypeVar("Value")

MAX_MEASURED = 8
"""Largest number of meshes of a sequence whose thickness is measured."""

MAX_CACHED = 4
"""Number of most recent trees, and of their arrays of numbers, in the cache of a sequence."""


@suggest_keywords
class SurfaceShape(Shape):
    """Inside of a closed surface.

    Distances to its triangles are exact up to rounding. Memory: about 0.35 kB per triangle.

    Args:
        mesh: Closed surface, with triangles counter-clockwise seen from outside.

    Raises:
        SceneError: The surface is open or inside out.
    """

    def __init__(self, mesh: TriMesh) -> None:
        self.mesh = _check_surface(mesh)

    @cached_property
    def _origin(self) -> np.ndarray:
        return np.asarray(self.mesh.points.min(axis=0))

    @cached_property
    def rows(self) -> np.ndarray:
        """(1, FIELDS) description of the mesh for obstacle kernels."""
        points, triangles = self.mesh.points, self.mesh.triangles
        thickness = mesh_thickness(self.values, points[triangles] - self._origin)
        return _row(self._origin, self.mesh.size, thickness, has_creases(points, triangles))

    @cached_property
    def values(self) -> np.ndarray:
        """Bounding-box tree of the mesh as a flat array."""
        points = self.mesh.points - self._origin
        return TriangleTree(points, self.mesh.triangles).numbers_at(points)

    def surface_at(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        return self.mesh.points - self._origin, self.mesh.triangles


@suggest_keywords
class SurfaceSequence(Shape):
    """Inside of a deforming closed surface, for example frames of a walking mannequin.

    If all meshes have the same triangles, vertices move linearly from each mesh to the next, and distances to
    the triangles in between are exact up to rounding. Otherwise the distances to one mesh are linearly
    blended into those to the next. Before the first mesh and after the last one the surface rests. Memory:
    about 0.35 kB per triangle of a mesh, and twice as much if triangles differ.

    Args:
        meshes: Closed surfaces, two or more.
        times: Increasing times of the meshes [s].

    Raises:
        SceneError: A surface is open or inside out, or times do not increase.
    """

    def __init__(self, meshes: Sequence[TriMesh], times: Sequence[float]) -> None:
        self.meshes = [_check_surface(mesh) for mesh in as_tuple(meshes)]
        self.times = np.array([number(time, "times [s] of SurfaceSequence") for time in as_tuple(times)])
        count = len(self.meshes)
        if count != len(self.times) or count < 2 or not (np.diff(self.times) > 0).all():
            raise SceneError(
                "SurfaceSequence needs at least two meshes, and one time [s] per mesh, in "
                f"increasing order; got {count} meshes and times "
                f"{format_value(list(as_tuple(times)))}."
            )
        low = np.min([mesh.points.min(axis=0) for mesh in self.meshes], axis=0)
        high = np.max([mesh.points.max(axis=0) for mesh in self.meshes], axis=0)
        self._origin, self._size = low, high - low
        self._trees: dict[int, TriangleTree] = {}
        self._known: dict[float, np.ndarray] = {}

    @cached_property
    def rows(self) -> np.ndarray:
        """(1, FIELDS) description of the meshes for obstacle kernels."""
        every = self.meshes[:: -(-len(self.meshes) // MAX_MEASURED)]
        thicknesses = []
        for mesh in every:
            points = mesh.points - self._origin
            numbers = TriangleTree(points, mesh.triangles).numbers_at(points)
            thicknesses.append(mesh_thickness(numbers, points[mesh.triangles]))
        thick, thin = np.min(thicknesses, axis=0)
        return _row(self._origin, self._size, (float(thick), float(thin)), True)

    @property
    def values(self) -> np.ndarray:
        return self.values_at(float(self.times[0]))

    def values_at(self, t: float) -> np.ndarray:
        t = float(np.clip(t, self.times[0], self.times[-1]))
        return _get_cached(self._known, t, self._numbers_at)

    def _numbers_at(self, t: float) -> np.ndarray:
        before, part = self._between(t)
        if self._vertices is not None:
            return self._tree(before).numbers_at(self.surface_at(t)[0])
        size = max(tree_size(mesh.n_triangles) for mesh in self.meshes)
        numbers = np.zeros(2 * size)
        indices = [before + int(part == 1)] if part in (0, 1) else [before, before + 1]
        for position, k in enumerate(indices):
            own = self._tree(k).numbers_at(self.meshes[k].points - self._origin)
            numbers[position * size : position * size + len(own)] = own
        if len(indices) > 1:
            numbers[SECOND], numbers[WEIGHT] = size, part
        return numbers

    def _tree(self, k: int) -> TriangleTree:
        """Return the triangle tree of mesh k.

        If all meshes have the same triangles, its order is that of the positions halfway to the next mesh,
        and it serves the whole interval.
        """

        def build(k: int) -> TriangleTree:
            if self._vertices is None:
                return TriangleTree(self.meshes[k].points, self.meshes[k].triangles)
            halfway = 0.5 * (self.times[k] + self.times[k + 1])
            return TriangleTree(*self.surface_at(halfway))

        return _get_cached(self._trees, k, build)

    def surface_at(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return points and triangles at a time [s].

        If all meshes have the same triangles, vertices move linearly from one mesh to the next. Otherwise the
        surface has the triangles of all meshes: those of the latest mesh are in place, and all others are
        collapsed to one of its vertices.

        Args:
            t: Time [s].

        Returns:
            Points (p, 3) [m] in the frame of its row, and triangles (t, 3).
        """
        before, part = self._between(t)
        first, last = self.meshes[before], self.meshes[before + 1]
        if self._vertices is not None:
            begin, end = first.points[self._vertices[before]], last.points[self._vertices[before + 1]]
            return (1 - part) * begin + part * end - self._origin, self.meshes[0].triangles
        latest = before + int(part == 1)
        hidden = self.meshes[latest].points[0]
        points = [
            mesh.points if k == latest else np.tile(hidden, (len(mesh.points), 1))
            for k, mesh in enumerate(self.meshes)
        ]
        starts = np.cumsum([0, *map(len, points[:-1])])
        triangles = [start + mesh.triangles for start, mesh in zip(starts, self.meshes, strict=True)]
        return np.concatenate(points) - self._origin, np.concatenate(triangles)

    @cached_property
    def _vertices(self) -> list[np.ndarray] | None:
        """Vertex correspondence: for every mesh, vertices (p,) that match vertices of the first mesh.

        Corners of the triangles determine them, since files are read with vertices sorted by position. None
        if the connectivity of the meshes differs.
        """
        first, matches = self.meshes[0], []
        used = np.unique(first.triangles)
        for mesh in self.meshes:
            if mesh.n_triangles != first.n_triangles:
                return None
            same = np.minimum(np.arange(len(first.points)), len(mesh.points) - 1)
            same[first.triangles] = mesh.triangles
            if not np.array_equal(same[first.triangles], mesh.triangles):
                return None
            if len(np.unique(same[used])) < len(used):
                return None
            matches.append(same)
        return matches

    def _between(self, t: float) -> tuple[int, float]:
        """Return the index of the preceding mesh at a time [s], and the elapsed fraction of its interval."""
        after = int(np.clip(np.searchsorted(self.times, t), 1, len(self.times) - 1))
        begin, end = self.times[after - 1], self.times[after]
        return after - 1, float(np.clip((t - begin) / (end - begin), 0, 1))


def _get_cached(known: dict[Key, Value], key: Key, make: Callable[[Key], Value]) -> Value:
    """Return a cached value; missing values are computed and replace the oldest ones."""
    if key not in known:
        while len(known) >= MAX_CACHED:
            del known[next(iter(known))]
        known[key] = make(key)
    return known[key]


def _check_surface(mesh: TriMesh) -> TriMesh:
    """Return a valid mesh; refuse open or inverted surfaces."""
    if not isinstance(mesh, TriMesh):
        raise SceneError(
            "SurfaceShape needs a TriMesh, for example supple.meshes.load_surface('body.obj'); got "
            f"{format_value(mesh)}."
        )
    try:
        mesh.refuse_open()
    except MeshError as error:
        raise SceneError(
            f"The surface of an obstacle must be closed, so that inside and outside are defined. {error}"
        ) from None
    if mesh.enclosed_volume <= 0:
        raise SceneError(
            "The surface of an obstacle is inside out: the corners of its triangles must be "
            "counter-clockwise seen from outside. Reverse them, for example with Blender's "
            "'Recalculate Outside'."
        )
    _check_orientation(mesh)
    return mesh


def _check_orientation(mesh: TriMesh) -> None:
    """Refuse surfaces with opposite triangle orientations at an edge."""
    start = mesh.triangles.astype(np.int64)
    end = np.roll(start, -1, axis=1)
    count = len(mesh.points)
    edges, back = np.unique(np.minimum(start, end) * count + np.maximum(start, end), return_inverse=True)
    balance = np.bincount(back.ravel(), np.where(start < end, 1, -1).ravel())
    wrong = np.flatnonzero(balance)
    if len(wrong):
        where = ", ".join(f"{x:.4g}" for x in mesh.points[edges[wrong[0]] // count])
        raise SceneError(
            f"Triangles of the surface of an obstacle face opposite ways: {len(wrong)} of "
            f"{len(edges)} edges are between triangles of opposite orientation, for example at "
            f"({where}). Reverse some of them, for example with Blender's 'Recalculate Outside'."
        )


def _row(origin: np.ndarray, size: np.ndarray, thickness: tuple[float, float], creases: bool) -> np.ndarray:
    """Return a mesh row (1, FIELDS).

    Args:
        origin: Origin of its frame (3,) [m].
        size: Edges of its bounding box (3,) [m].
        thickness: Thickness of its thickest place and of its thin parts [m].
        creases: True if it has concave edges.
    """
    row = row_of(signed_distance.MESH, np.eye(3), origin, tuple(size))
    row[signed_distance.THICKNESS], row[signed_distance.THIN] = thickness
    row[signed_distance.CREASES] = creases
    return row[None]
