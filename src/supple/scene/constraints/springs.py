"""Springs between body vertices, or between vertices and fixed points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from supple.scene.bodies import VertexSet
from supple.scene.errors import SceneError
from supple.scene.value_checks import array, format_value
from supple.support.arguments import MIN_MAGNITUDE
from supple.terms import PointSprings, Springs, Term


@dataclass(frozen=True, eq=False)
class SpringSet:
    """Springs with energy ½ k (l - L)².

    Attributes:
        vertices: (m, 2) scene vertices, or (m, 1) for springs to fixed points.
        points: (m, 3) fixed points [m], None for springs between vertices.
        stiffness: (m,) k [N/m].
        rest_length: (m,) L [m].
        depends_on_rest: True if the rest lengths are distances at rest.
    """

    vertices: np.ndarray
    points: np.ndarray | None
    stiffness: np.ndarray
    rest_length: np.ndarray
    depends_on_rest: bool = False


def spring_set(
    a: VertexSet, b: VertexSet | ArrayLike, stiffness: ArrayLike, rest_length: ArrayLike | None
) -> SpringSet:
    """Build the springs that `Scene.add_springs` describes."""
    if isinstance(b, VertexSet):
        vertices, points, ends = _pairs(a, b), None, b.points
    else:
        points = ends = _points(a, b)
        vertices = a.vertices[:, None]
    distance = np.linalg.norm(ends - a.points, axis=1)
    length = distance if rest_length is None else _for_each("rest_length [m]", rest_length, len(a), 0.0)
    degenerate = np.flatnonzero((distance == 0) & (length > 0))
    if len(degenerate):
        raise SceneError(
            f"Both ends of the spring at vertex {a.indices[degenerate[0]]} of {a.body.name!r} "
            f"coincide, so its direction is undefined for rest_length={length[degenerate[0]]:g} m. "
            "Move one end, or omit rest_length."
        )
    stiff = _for_each("stiffness [N/m]", stiffness, len(a), MIN_MAGNITUDE)
    return SpringSet(vertices, points, stiff, length, rest_length is None)


def _pairs(a: VertexSet, b: VertexSet) -> np.ndarray:
    if len(a) != len(b):
        raise SceneError(
            f"Springs connect vertices in pairs, in order, but there are {len(a)} of {a.body.name!r} "
            f"and {len(b)} of {b.body.name!r}."
        )
    same = a.vertices[a.vertices == b.vertices]
    if len(same):
        raise SceneError(
            f"Both ends of a spring are vertex {same[0] - a.body.first} of {a.body.name!r}; they must differ."
        )
    return np.column_stack([a.vertices, b.vertices])


def _points(a: VertexSet, points: ArrayLike) -> np.ndarray:
    given = array(points, "the second ends [m] of springs")
    if given.shape not in [(3,), (1, 3), (len(a), 3)]:
        raise SceneError(
            f"The second ends of springs must be {len(a)} vertices, one point (3,), or {len(a)} "
            f"points ({len(a)}, 3); got {format_value(points)}."
        )
    return np.broadcast_to(given, (len(a), 3)).copy()


def _for_each(what: str, values: ArrayLike, count: int, least: float) -> np.ndarray:
    """Return one number per spring."""
    what = f"{what} of springs"
    numbers = array(values, what)
    if numbers.shape not in [(), (count,)]:
        raise SceneError(
            f"{what} must be one number, or one for each of the {count}; got {format_value(values)}."
        )
    if np.any(numbers < least):
        raise SceneError(f"{what} must be at least {least:g}, got {format_value(values)}.")
    return np.broadcast_to(numbers, count).astype(float)


def spring_terms(springs: list[SpringSet], rest: np.ndarray) -> tuple[Term, ...]:
    """Merge springs between vertices into one term, and springs to fixed points into another.

    Args:
        springs: Springs of the scene.
        rest: (n, 3) rest positions [m].
    """
    between = [each for each in springs if each.points is None]
    to_points = [each for each in springs if each.points is not None]
    points = np.concatenate([np.empty((0, 3)), *(each.points for each in to_points)])
    first, second = (any(each.depends_on_rest for each in sets) for sets in (between, to_points))
    made: list[Term] = [Springs(*_connect(between), rest, depends_on_rest=first)] if between else []
    if to_points:
        made.append(PointSprings(*_connect(to_points), rest, points=points, depends_on_rest=second))
    return tuple(made)


def _connect(springs: list[SpringSet]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return vertices (m, k), stiffness (m,) and rest lengths (m, 1) of all springs."""
    return (
        np.concatenate([each.vertices for each in springs]).astype(np.int32),
        np.concatenate([each.stiffness for each in springs]),
        np.concatenate([each.rest_length for each in springs])[:, None],
    )
