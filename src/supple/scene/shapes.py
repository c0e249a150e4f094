"""Shapes of obstacles, as users declare them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from supple.contact import shapes as kinds
from supple.meshes import MeshError, TriMesh
from supple.scene.checks import Vector, count, direction, number, shown, vector
from supple.scene.errors import SceneError
from supple.scene.motions import Rotate


class Shape(ABC):
    """What an obstacle looks like where it rests."""

    @property
    @abstractmethod
    def rows(self) -> np.ndarray:
        """The simple shapes that it consists of, (r, FIELDS) as in `supple.contact.shapes`."""

    @property
    def values(self) -> np.ndarray:
        """Distances [m] at the points of its grid, if it has one."""
        return np.empty(0)

    def values_at(self, t: float) -> np.ndarray:
        """The same at a time [s], of one that deforms."""
        return self.values


def _frame(z: Any) -> np.ndarray:
    """Three orthonormal rows, the last of which is along z."""
    z = np.asarray(z, float) / np.linalg.norm(z)
    x = np.eye(3)[np.abs(z).argmin()]
    x = x - z * (x @ z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z])


def _row(
    kind: int, axes: np.ndarray, origin: Any, size: tuple[float, ...] = (), side: float = 1
) -> np.ndarray:
    row = np.zeros(kinds.FIELDS)
    row[kinds.KIND], row[kinds.SIDE] = kind, side
    row[kinds.SIZE : kinds.SIZE + len(size)] = size
    row[kinds.POSE : kinds.POSE + 9], row[kinds.POSE + 9 : kinds.POSE + 12] = axes.ravel(), origin
    return row


@dataclass(frozen=True)
class _Declared(Shape):
    """Values are checked and kept as plain numbers."""

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _say(self, what: str) -> str:
        return f"{what} of {type(self).__name__}"

    def _point(self, name: str) -> None:
        self._set(**{name: vector(getattr(self, name), self._say(f"{name} [m]"))})

    def _length(self, name: str) -> None:
        self._set(**{name: number(getattr(self, name), self._say(f"{name} [m]"), above=0)})

    def _flag(self, name: str) -> None:
        if not isinstance(getattr(self, name), bool):
            raise SceneError(f"{self._say(name)} must be True or False, got {shown(getattr(self, name))}.")


@dataclass(frozen=True)
class Plane(_Declared):
    """Everything behind the plane through `point` [m]; `normal` points to where bodies are."""

    normal: Vector = (0.0, 1.0, 0.0)
    point: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        self._set(normal=direction(self.normal, self._say("normal")))
        self._point("point")

    @property
    def rows(self) -> np.ndarray:
        return _row(kinds.PLANE, _frame(self.normal), self.point)[None]


@dataclass(frozen=True)
class Sphere(_Declared):
    """A ball with `centre` and `radius` [m]; hollow: bodies are inside."""

    radius: float
    centre: Vector = (0.0, 0.0, 0.0)
    hollow: bool = False

    def __post_init__(self) -> None:
        self._length("radius")
        self._point("centre")
        self._flag("hollow")

    @property
    def rows(self) -> np.ndarray:
        side = -1 if self.hollow else 1
        return _row(kinds.CAPSULE, np.eye(3), self.centre, (0.0, self.radius), side)[None]


@dataclass(frozen=True)
class _Round(_Declared):
    start: Vector
    end: Vector
    radius: float
    hollow: bool = False

    def __post_init__(self) -> None:
        self._point("start")
        self._point("end")
        self._length("radius")
        self._flag("hollow")
        if self.start == self.end:
            raise SceneError(
                f"{self._say('start and end')} must be different points, both are {self.start}; "
                "a ball is Sphere(...)."
            )

    def _row_of(self, kind: int) -> np.ndarray:
        a, b = np.array(self.start), np.array(self.end)
        half, side = float(np.linalg.norm(b - a)) / 2, -1 if self.hollow else 1
        return _row(kind, _frame(b - a), (a + b) / 2, (half, self.radius), side)[None]


@dataclass(frozen=True)
class Capsule(_Round):
    """All points within `radius` [m] of the line from `start` to `end` [m]; hollow: bodies are inside."""

    @property
    def rows(self) -> np.ndarray:
        return self._row_of(kinds.CAPSULE)


@dataclass(frozen=True)
class Cylinder(_Round):
    """A cylinder of a `radius` [m] whose flat ends have their centres at `start` and `end` [m]; hollow:
    bodies are inside."""

    @property
    def rows(self) -> np.ndarray:
        return self._row_of(kinds.CYLINDER)


@dataclass(frozen=True)
class Box(_Declared):
    """A box with edges `size` (3,) [m] about its `centre` [m], along the axes unless turned by `angle` [rad]
    about `axis` through the centre; hollow: bodies are inside its six walls."""

    size: Vector
    centre: Vector = (0.0, 0.0, 0.0)
    axis: Vector = (0.0, 0.0, 1.0)
    angle: float = 0.0
    hollow: bool = False

    def __post_init__(self) -> None:
        size = vector(self.size, self._say("size [m]"))
        if min(size) <= 0:
            raise SceneError(
                f"{self._say('size [m]')} must be three positive numbers, got {shown(self.size)}."
            )
        axis = direction(self.axis, self._say("axis"))
        self._set(size=size, axis=axis, angle=number(self.angle, self._say("angle [rad]")))
        self._point("centre")
        self._flag("hollow")

    @property
    def rows(self) -> np.ndarray:
        turn = Rotate(axis=self.axis, centre=(0, 0, 0), angle=self.angle)
        axes, half = turn.part(np.eye(3), 1.0), np.array(self.size) / 2
        if not self.hollow:
            return _row(kinds.BOX, axes, self.centre, tuple(half))[None]
        centre, sides = np.array(self.centre), [(a, s) for a in range(3) for s in (-1, 1)]
        return np.stack(
            [_row(kinds.PLANE, _frame(-s * axes[a]), centre + s * half[a] * axes[a]) for a, s in sides]
        )


SHAPES: dict[str, type[_Declared]] = {
    "plane": Plane,
    "box": Box,
    "sphere": Sphere,
    "capsule": Capsule,
    "cylinder": Cylinder,
}
"""Shapes by their names in scene files."""


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
        row = _row(kinds.GRID, np.eye(3), self._origin, tuple(self._numbers))
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
        shapes = [SurfaceShape(mesh, cells) for mesh in meshes]
        self.times = np.array([number(time, "times [s] of SurfaceSequence") for time in times])
        if len(shapes) != len(self.times) or len(shapes) < 2 or not (np.diff(self.times) > 0).all():
            raise SceneError(
                "SurfaceSequence needs two meshes or more, and as many times [s], each later than the last; "
                f"got {len(shapes)} meshes and times {shown(list(times))}."
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
        row = _row(kinds.GRID, np.eye(3), self._origin, tuple(self._numbers))
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
