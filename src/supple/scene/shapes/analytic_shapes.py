"""Shapes of obstacles, as declared by users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.collision.obstacles import signed_distance
from supple.scene.constraints.motions import Rotate
from supple.scene.errors import SceneError
from supple.scene.value_checks import Vector, direction, format_value, number, vector
from supple.support.keywords import suggest_keywords


class Shape(ABC):
    """Shape of an obstacle at rest."""

    @property
    @abstractmethod
    def rows(self) -> np.ndarray:
        """Primitive shapes of the obstacle, (r, FIELDS), with the fields that obstacle kernels read."""

    @property
    def values(self) -> np.ndarray:
        """Bounding-box tree of a mesh as a flat array, empty for other shapes."""
        return np.empty(0)

    def values_at(self, t: float) -> np.ndarray:
        """Return `values` at a time, for shapes that deform.

        Args:
            t: Time [s].

        Returns:
            Flat array, empty for shapes other than meshes.
        """
        return self.values

    def surface_at(self, t: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the mesh at a time, None for other shapes.

        Args:
            t: Time [s].

        Returns:
            Points (p, 3) [m] in the frame of its row, and triangles (t, 3), which are the same at all times.
        """
        return None


def _frame(z: Any) -> np.ndarray:
    """Return three orthonormal rows, the last one along z."""
    z = np.asarray(z, float) / np.linalg.norm(z)
    x = np.eye(3)[np.abs(z).argmin()]
    x = x - z * (x @ z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z])


def row_of(
    kind: int, axes: np.ndarray, origin: Any, size: tuple[float, ...] = (), side: float = 1
) -> np.ndarray:
    row = np.zeros(signed_distance.FIELDS)
    row[signed_distance.KIND], row[signed_distance.SIDE] = kind, side
    row[signed_distance.SIZE : signed_distance.SIZE + len(size)] = size
    (
        row[signed_distance.POSE : signed_distance.POSE + 9],
        row[signed_distance.POSE + 9 : signed_distance.POSE + 12],
    ) = axes.ravel(), origin
    return row


@dataclass(frozen=True)
class _Declared(Shape):
    """Base class of shapes whose values are checked and stored as plain numbers."""

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
            raise SceneError(
                f"{self._say(name)} must be True or False, got {format_value(getattr(self, name))}."
            )


@suggest_keywords
@dataclass(frozen=True)
class Plane(_Declared):
    """Half-space behind a plane.

    Args:
        normal: Normal of the plane (3,), which points to the bodies.
        point: A point of the plane (3,) [m].

    Raises:
        SceneError: A value is out of range or not finite.
    """

    normal: Vector = (0.0, 1.0, 0.0)
    point: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        self._set(normal=direction(self.normal, self._say("normal")))
        self._point("point")

    @property
    def rows(self) -> np.ndarray:
        return row_of(signed_distance.PLANE, _frame(self.normal), self.point)[None]


@suggest_keywords
@dataclass(frozen=True)
class Sphere(_Declared):
    """Ball.

    Args:
        radius: Radius [m].
        center: Center (3,) [m].
        hollow: True if bodies are inside.

    Raises:
        SceneError: A value is out of range or not finite.
    """

    radius: float
    center: Vector = (0.0, 0.0, 0.0)
    hollow: bool = False

    def __post_init__(self) -> None:
        self._length("radius")
        self._point("center")
        self._flag("hollow")

    @property
    def rows(self) -> np.ndarray:
        side = -1 if self.hollow else 1
        return row_of(signed_distance.CAPSULE, np.eye(3), self.center, (0.0, self.radius), side)[None]


@dataclass(frozen=True)
class _Round(_Declared):
    point0: Vector
    point1: Vector
    radius: float
    hollow: bool = False

    def __post_init__(self) -> None:
        self._point("point0")
        self._point("point1")
        self._length("radius")
        self._flag("hollow")
        if self.point0 == self.point1:
            raise SceneError(
                f"{self._say('point0 and point1')} must be different points, both are {self.point0}; "
                "a ball is Sphere(...)."
            )

    def _row_of(self, kind: int) -> np.ndarray:
        a, b = np.array(self.point0), np.array(self.point1)
        half, side = float(np.linalg.norm(b - a)) / 2, -1 if self.hollow else 1
        return row_of(kind, _frame(b - a), (a + b) / 2, (half, self.radius), side)[None]


@suggest_keywords
@dataclass(frozen=True)
class Capsule(_Round):
    """Capsule: cylinder with hemispherical ends.

    Args:
        point0: One end of its axis (3,) [m].
        point1: Other end of its axis (3,) [m].
        radius: Radius [m].
        hollow: True if bodies are inside.

    Raises:
        SceneError: A value is out of range or not finite, or both end points coincide.
    """

    @property
    def rows(self) -> np.ndarray:
        return self._row_of(signed_distance.CAPSULE)


@suggest_keywords
@dataclass(frozen=True)
class Cylinder(_Round):
    """Cylinder with flat ends.

    Args:
        point0: Center of one end (3,) [m].
        point1: Center of the other end (3,) [m].
        radius: Radius [m].
        hollow: True if bodies are inside.

    Raises:
        SceneError: A value is out of range or not finite, or both end points coincide.
    """

    @property
    def rows(self) -> np.ndarray:
        return self._row_of(signed_distance.CYLINDER)


@suggest_keywords
@dataclass(frozen=True)
class Box(_Declared):
    """Solid or hollow box with optional rotation.

    Args:
        size: Edge lengths (3,) [m].
        center: Center (3,) [m].
        axis: Axis of the rotation (3,).
        angle: Angle of the rotation [rad].
        hollow: True if bodies are inside its six walls.

    Raises:
        SceneError: A value is out of range or not finite.
    """

    size: Vector
    center: Vector = (0.0, 0.0, 0.0)
    axis: Vector = (0.0, 0.0, 1.0)
    angle: float = 0.0
    hollow: bool = False

    def __post_init__(self) -> None:
        size = vector(self.size, self._say("size [m]"))
        if min(size) <= 0:
            raise SceneError(
                f"{self._say('size [m]')} must be three positive numbers, got {format_value(self.size)}."
            )
        axis = direction(self.axis, self._say("axis"))
        self._set(size=size, axis=axis, angle=number(self.angle, self._say("angle [rad]")))
        self._point("center")
        self._flag("hollow")

    @property
    def rows(self) -> np.ndarray:
        turn = Rotate(axis=self.axis, center=(0, 0, 0), angle=self.angle)
        axes, half = turn.part(np.eye(3), 1.0), np.array(self.size) / 2
        if not self.hollow:
            return row_of(signed_distance.BOX, axes, self.center, tuple(half))[None]
        center, sides = np.array(self.center), [(a, s) for a in range(3) for s in (-1, 1)]
        return np.stack(
            [
                row_of(signed_distance.PLANE, _frame(-s * axes[a]), center + s * half[a] * axes[a])
                for a, s in sides
            ]
        )


SHAPES: dict[str, type[_Declared]] = {
    "plane": Plane,
    "box": Box,
    "sphere": Sphere,
    "capsule": Capsule,
    "cylinder": Cylinder,
}
"""Shapes by their names in scene files."""
