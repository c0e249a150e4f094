"""Attachments: weak constraints between vertices and other vertices, points of bodies, or fixed points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from supple.meshes.proximity_queries import closest_in_body
from supple.scene.bodies import Body, VertexSet
from supple.scene.errors import SceneError
from supple.scene.value_checks import array, format_value, number


@dataclass(frozen=True, eq=False)
class Attachment:
    """Weak constraints C_c = Σ_j w_cj x_j - target_c with energy ½ Cᵀ K C [PBNG eq. 18, 19].

    Attributes:
        vertices: (k, s) scene vertices; unused slots repeat the first vertex with weight 0.
        weights: (k, s) weights w.
        target: (k, 3) targets [m].
        stiffness: (k, 6) stiffness K [N/m] as xx yy zz xy xz yz.
        depends_on_rest: True if weights or targets were computed from the rest positions.
    """

    vertices: np.ndarray
    weights: np.ndarray
    target: np.ndarray
    stiffness: np.ndarray
    depends_on_rest: bool = False


def attachment(
    a: VertexSet,
    b: VertexSet | Body | ArrayLike | None,
    stiffness: float,
    normal: ArrayLike | None,
    tangent_stiffness: float | None,
    keep_offset: bool,
    within: float | None = None,
) -> Attachment:
    """Build the weak constraints of `Scene.attach`.

    They are C = x_a - x_b, or C = x_a - x_b - (X_a - X_b) with `keep_offset`.
    """
    if within is not None:
        a, b = _near(a, b, number(within, "within [m] of an attachment", at_least=0))
    if not isinstance(keep_offset, bool):
        raise SceneError(
            f"keep_offset of an attachment must be True or False, got {format_value(keep_offset)}."
        )
    vertices, weights = np.empty((len(a), 0), np.int64), np.empty((len(a), 0))
    target = np.zeros((len(a), 3))
    if isinstance(b, VertexSet):
        vertices, weights, end = _pairs(a, b)
    elif isinstance(b, Body):
        vertices, weights, end = _attach_to_body(a, b)
    else:
        target = end = _attach_to_points(a, b)
    if keep_offset:
        target = target + a.points - end
    return Attachment(
        np.column_stack([a.vertices, vertices]),
        np.column_stack([np.ones(len(a)), -weights]),
        target,
        _stiffness(len(a), stiffness, normal, tangent_stiffness),
        depends_on_rest=keep_offset or b is None or isinstance(b, Body),
    )


def attachment_at(
    points: ArrayLike,
    a: Body,
    b: Body | ArrayLike | None,
    stiffness: float,
    normal: ArrayLike | None,
    tangent_stiffness: float | None,
    keep_offset: bool,
) -> Attachment:
    """Build weak constraints C = x_a - x_b between points that may lie between vertices.

    The points are interpolated with weights on both sides.

    Args:
        points: (k, 3) points [m]. Each constraint binds the closest points of both bodies at rest.
        a: First body.
        b: Second body, fixed points (3,) or (k, 3) [m], or None for `points` themselves.
        stiffness: Stiffness [N/m].
        normal: Direction of `stiffness`, or None for all directions.
        tangent_stiffness: Stiffness across the normal [N/m].
        keep_offset: True to keep the offset at rest.
    """
    given = np.atleast_2d(array(points, "at [m], the points of an attachment,"))
    if given.shape[1:] != (3,) or not len(given):
        raise SceneError(f"at of an attachment must be points (k, 3) [m]; got {format_value(points)}.")
    if not isinstance(a, Body) or isinstance(b, VertexSet) or b is a:
        raise SceneError("With at=, an attachment binds a body to another body or to fixed points.")
    vertices, weights, start = _points_of(a, given)
    if isinstance(b, Body):
        others, shares, end = _points_of(b, given)
        vertices, weights = np.hstack([vertices, others]), np.hstack([weights, -shares])
        target = np.zeros((len(given), 3))
    else:
        target = end = given if b is None else _as_many(b, len(given), "points")
    if keep_offset:
        target = target + start - end
    used = np.where(weights != 0, vertices, vertices[:, :1])
    K = _stiffness(len(given), stiffness, normal, tangent_stiffness)
    return Attachment(used, weights, target, K, depends_on_rest=True)


def _near(a: VertexSet, b: object, within: float) -> tuple[VertexSet, VertexSet | Body]:
    """Select the vertex pairs of a seam.

    Returns:
        Vertices of a within the distance, and their partners: the body b for closest points, or the nearest
        vertex of each.
    """
    if isinstance(b, Body) and b is not a.body:
        _, _, end = _attach_to_body(a, b)
        distance = np.linalg.norm(a.points - end, axis=1)
        return _check_selection(a, distance <= within, distance, within), b
    others = b.all if isinstance(b, Body) else b
    if not isinstance(others, VertexSet):
        raise SceneError("within [m] of an attachment is for vertices and bodies, not for fixed points.")
    same = others.body is a.body
    neighbors: Any = cKDTree(others.points).query(a.points, k=2 if same and len(others) > 1 else 1)
    distance, nearest = neighbors
    if same and distance.ndim == 2:  # the nearest vertex of a vertex is itself
        own = others.indices[nearest[:, 0]] == a.indices
        distance, nearest = (np.where(own, two[:, 1], two[:, 0]) for two in neighbors)
    partner = others.indices[nearest]
    near = (distance <= within) & ~(same & (partner == a.indices))
    if same:  # keep each pair once
        low, high = np.minimum(a.indices, partner), np.maximum(a.indices, partner)
        _, first = np.unique(low * (len(a.body.points) + 1) + high, return_index=True)
        near &= np.isin(np.arange(len(a)), first)
    selected = _check_selection(a, near, distance, within)
    return selected, VertexSet(others.body, partner[near])


def _check_selection(a: VertexSet, near: np.ndarray, distance: np.ndarray, within: float) -> VertexSet:
    if not near.any():
        raise SceneError(
            f"None of the {len(a)} vertices of {a.body.name!r} is within {within:g} m of its "
            f"attachment; the nearest is {distance.min():.3g} m away."
        )
    return VertexSet(a.body, a.indices[near])


def _pairs(a: VertexSet, b: VertexSet) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if len(a) != len(b):
        raise SceneError(
            f"Vertices are attached in pairs, but there are {len(a)} of {a.body.name!r} and {len(b)} "
            f"of {b.body.name!r}; to attach each vertex to the closest point of a body, give the "
            "body instead."
        )
    same = a.vertices[a.vertices == b.vertices]
    if len(same):
        raise SceneError(f"Vertex {same[0] - a.body.first} of {a.body.name!r} is attached to itself.")
    return b.vertices[:, None], np.ones((len(b), 1)), b.points


def _attach_to_body(a: VertexSet, body: Body) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if body is a.body:
        raise SceneError(
            f"Vertices of {body.name!r} are already points of {body.name!r}; to attach a body to itself, "
            "give a second set of its vertices, paired in order."
        )
    vertices, weights, end = _points_of(body, a.points)
    return np.where(weights > 0, vertices, a.vertices[:, None]), weights, end


def _points_of(body: Body, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Interpolate closest body points of given points (k, 3) [m] at rest.

    Returns:
        Scene vertices (k, s), their weights (k, s), the largest first, and the closest points (k, 3) [m].
    """
    vertices, weights = closest_in_body(points, body.mesh)
    weights[weights < 1e-9] = 0
    order = np.argsort(-weights, axis=1, kind="stable")
    weights, vertices = np.take_along_axis(weights, order, 1), np.take_along_axis(vertices, order, 1)
    used = weights.any(axis=0)
    weights, vertices = weights[:, used], vertices[:, used]
    return body.first + vertices, weights, np.einsum("ks,ksi->ki", weights, body.points[vertices])


def _attach_to_points(a: VertexSet, points: ArrayLike | None) -> np.ndarray:
    return a.points if points is None else _as_many(points, len(a), "vertices")


def _as_many(points: ArrayLike, count: int, ends: str) -> np.ndarray:
    """Return fixed points to attach to, broadcast to (count, 3)."""
    given = array(points, "the points [m] to attach to")
    if given.shape not in [(3,), (1, 3), (count, 3)]:
        raise SceneError(
            f"The points to attach to must be one point (3,) or one for each of the {count} {ends}, "
            f"({count}, 3); got {format_value(points)}."
        )
    return np.broadcast_to(given, (count, 3))


def _stiffness(count: int, stiffness: float, normal: ArrayLike | None, tangent: float | None) -> np.ndarray:
    """Return K = k_n n nᵀ + k_τ (I - n nᵀ), or k I without a normal, as (count, 6): xx yy zz xy xz yz."""
    k_n = number(stiffness, "stiffness [N/m] of an attachment", above=0)
    if normal is None:
        if tangent is not None:
            raise SceneError(
                "tangent_stiffness of an attachment needs a normal; give normal=(x, y, z), or omit it."
            )
        return np.tile([k_n, k_n, k_n, 0.0, 0.0, 0.0], (count, 1))
    k_t = 0.0 if tangent is None else number(tangent, "tangent_stiffness [N/m] of an attachment", at_least=0)
    n = array(normal, "normal of an attachment")
    if n.shape not in [(3,), (count, 3)]:
        raise SceneError(
            f"normal of an attachment must be one vector (3,) or one for each of the {count} vertices, "
            f"({count}, 3); got {format_value(normal)}."
        )
    length = np.linalg.norm(n, axis=-1, keepdims=True)
    if not np.all(length > 0):
        raise SceneError("normal of an attachment must not be the zero vector.")
    x, y, z = np.broadcast_to(n / length, (count, 3)).T
    nn = np.column_stack([x * x, y * y, z * z, x * y, x * z, y * z])
    return (k_n - k_t) * nn + k_t * np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
