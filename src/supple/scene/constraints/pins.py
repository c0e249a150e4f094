"""Pins: Dirichlet conditions on vertices, in all directions or in some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.scene.bodies import VertexSet
from supple.scene.errors import SceneError
from supple.scene.pickling import picklable
from supple.scene.value_checks import array, format_value

AnyMotion = Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True, eq=False)
class Pin:
    """Vertices with prescribed positions.

    Attributes:
        on: Pinned vertices.
        motion: Prescribed motion, None for vertices at rest.
        directions: Constrained directions (d, 3), or (k, d, 3) per vertex; None for all.
        name: Name of its reaction force.
    """

    on: VertexSet
    motion: AnyMotion | None
    directions: np.ndarray | None = None
    name: str = "pin"

    def __getstate__(self) -> dict[str, Any]:
        whose = f"pinned vertices of {self.on.body.name!r}"
        return self.__dict__ | {"motion": picklable(self.motion, whose)}


AXES = "xyz"


def constrained_directions(axes: Any, along: Any, normal: Any, vertices: int) -> np.ndarray | None:
    """Return constrained directions of a pin.

    Args:
        axes: Some of x, y and z.
        along: The only free direction, (3,) or (k, 3).
        normal: The only constrained direction, (3,) or (k, 3).
        vertices: Number k of pinned vertices.

    Returns:
        Orthonormal directions (d, 3), or (k, d, 3) per vertex; None for all directions.

    Raises:
        SceneError: Several of the arguments are given, or one is invalid.
    """
    given = {"axes": axes, "along": along, "normal": normal}
    said = [name for name, value in given.items() if value is not None]
    if len(said) > 1:
        raise SceneError(
            "A pin constrains axes, or all directions except along=..., or only the direction "
            f"normal=...; it has {' and '.join(said)}."
        )
    if axes is not None:
        numbers = _axes(axes)
        return None if len(numbers) == 3 else np.eye(3)[numbers]
    if normal is not None:
        return _units(normal, "normal", vertices)[..., None, :]
    if along is not None:
        return _across(_units(along, "along", vertices))
    return None


def _axes(axes: Any) -> list[int]:
    names = list(axes) if isinstance(axes, str | tuple | list) else []
    numbers = {AXES.index(name) for name in names if isinstance(name, str) and name in tuple(AXES)}
    if not names or len(numbers) < len(names):
        raise SceneError(
            f"axes must name some of x, y and z, each once, for example 'xy'; got {format_value(axes)}."
        )
    return sorted(numbers)


def _units(value: Any, what: str, vertices: int) -> np.ndarray:
    """Normalize directions (3,) or (k, 3)."""
    numbers = array(value, what)
    if numbers.shape not in ((3,), (vertices, 3)):
        raise SceneError(
            f"{what} must be three numbers (x, y, z), or three for each of the {vertices} vertices; "
            f"got {format_value(value)}."
        )
    length = np.linalg.norm(numbers, axis=-1, keepdims=True)
    if not np.all(length > 0):
        raise SceneError(f"{what} must not be the zero vector, got {format_value(value)}.")
    return numbers / length


def describe_directions(directions: np.ndarray | None) -> Any:
    """Summarize constrained directions for `inspect`.

    Returns:
        Letters such as "xy" for coordinate axes, otherwise vectors (d, 3); for directions that differ by
        vertex, text such as "2 of each vertex".
    """
    if directions is None:
        return AXES
    if directions.ndim > 2:
        return f"{directions.shape[1]} of each vertex"
    if np.all(np.isin(directions, (0.0, 1.0))):
        return "".join(AXES[i] for i in range(3) if directions[:, i].any())
    return directions.tolist()


def _across(direction: np.ndarray) -> np.ndarray:
    """Return orthonormal directions (..., 2, 3) perpendicular to unit vectors (..., 3).

    For a coordinate axis these are coordinate axes too.
    """
    axis = np.eye(3)[np.abs(direction).argmin(axis=-1)]
    first = axis - direction * (axis * direction).sum(axis=-1, keepdims=True)
    first /= np.linalg.norm(first, axis=-1, keepdims=True)
    return np.stack([first, np.cross(direction, first)], axis=-2)
