"""Penetration depth of obstacles in triangles, between the vertices.

The distance from a convex shape is convex. Its minimum over the segments of a triangle is a convex function
of the segment, so golden-section search over segments, with bisection along each by the sign of the slope,
finds the deepest point; kinks of the distance are admissible. The distance from a closed mesh is convex only
in small regions, so triangles near a mesh are subdivided. Inside a hollow shape, and for a plane, the deepest
point is a vertex.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.collision.obstacles.mesh_distance import BOX_DISTANCE_ERROR, REGION_LENGTH
from supple.collision.obstacles.signed_distance import (
    BOX,
    CAPSULE,
    CYLINDER,
    FIRST,
    KIND,
    MESH,
    PLANE,
    SIDE,
    SIZE,
    THICKNESS,
    THIN,
    Shapes,
    beyond_box,
    distance,
)
from supple.kernels import device_function

GOLDEN_RATIO = 0.6180339887498949
"""Golden section ratio."""

DEPTH_STEPS, POINT_STEPS = 16, 40
"""Steps of golden-section search and bisection. For depths: location accurate to 4e-4 of an edge, which
enters the depth at a round shape quadratically. For contact points, where forces must vary smoothly: 1e-8 of
an edge."""

EXTRA_LEVELS, MAX_LEVELS = 2, 8
"""Subdivision levels beyond the region length `REGION_LENGTH` of a mesh, so that most parts are culled, and
maximum number of levels."""


class Deepest(NamedTuple):
    """Deepest point of a triangle in a shape.

    Attributes:
        distance: Smallest signed distance [m].
        second, third: Weights of the second and third corner.
    """

    distance: Any
    second: Any
    third: Any


@device_function
def can_be_deepest_inside_face(shapes, k):
    """True if the k-th shape can be deeper inside a triangle than at the corners."""
    return shapes.rows[k, SIDE] > 0.0 and shapes.rows[k, KIND] != PLANE


@device_function
def between(a, b, t):
    """a + t (b - a)."""
    return add(a, scale(t, sub(b, a)))


@device_function
def _on_segment(shapes, k, p, q, times):
    """(d, t): smallest distance on the segment from p to q, and its parameter."""
    edge, low, high = sub(q, p), 0.0, 1.0
    for _ in range(times):
        t = 0.5 * (low + high)
        _, n = distance(shapes, k, between(p, q, t))
        slope = dot(n, edge)
        low, high = (t if slope <= 0.0 else low), (t if slope >= 0.0 else high)
    t = 0.5 * (low + high)
    d, _ = distance(shapes, k, between(p, q, t))
    return d, t


@device_function
def _across(shapes, k, a, b, c, s, times):
    """(d, t) on the segment that connects the sides ab and ac at the fraction s from a."""
    return _on_segment(shapes, k, between(a, b, s), between(a, c, s), times)


@device_function
def _in_part(shapes, k, a, b, c, times):
    """Deepest point of a triangle with a convex distance function."""
    low, high = 0.0, 1.0
    left, right = high - GOLDEN_RATIO * (high - low), low + GOLDEN_RATIO * (high - low)
    at_left, s = _across(shapes, k, a, b, c, left, times)
    at_right, t = _across(shapes, k, a, b, c, right, times)
    for _ in range(times):
        if at_left <= at_right:
            high, right, at_right, t = right, left, at_left, s
            left = high - GOLDEN_RATIO * (high - low)
            at_left, s = _across(shapes, k, a, b, c, left, times)
        else:
            low, left, at_left, s = left, right, at_right, t
            right = low + GOLDEN_RATIO * (high - low)
            at_right, t = _across(shapes, k, a, b, c, right, times)
    if at_left <= at_right:
        return Deepest(at_left, left * (1.0 - s), left * s)
    return Deepest(at_right, right * (1.0 - t), right * t)


@device_function
def longest(a, b, c):
    """Longest side of a triangle [m]."""
    p, q, r = sub(b, a), sub(c, b), sub(a, c)
    return math.sqrt(max(max(dot(p, p), dot(q, q)), dot(r, r)))


@device_function
def bound_distance(shapes, k, a, b, c):
    """(d, least): distance at the center of a triangle [m], and a lower bound for all its points.

    The bound follows from the Lipschitz constant 1 of distances, and from the tangent plane for convex
    shapes. Far from a mesh, distances are approximate.
    """
    m = scale(1.0 / 3.0, add(a, add(b, c)))
    p, q, r = sub(a, m), sub(b, m), sub(c, m)
    radius = math.sqrt(max(max(dot(p, p), dot(q, q)), dot(r, r)))
    mesh = shapes.rows[k, KIND] == MESH
    if mesh:
        outside = beyond_box(shapes, k, m)
        if outside > radius:
            return outside, outside - radius
    d, n = distance(shapes, k, m)
    if mesh:
        return d, d - BOX_DISTANCE_ERROR * outside - radius
    return d, max(d - radius, d + min(min(dot(n, p), dot(n, q)), dot(n, r)))


@device_function
def _part(level, path):
    """(v, w, s) of a part of a quartered triangle.

    v and w are the weights of the second and third corner at the first corner of the part; s is its size,
    negative for an inverted part.
    """
    v, w, s = 0.0, 0.0, 1.0
    for j in range(level - 1, -1, -1):
        quarter = (path >> (2 * j)) & 3
        s *= 0.5
        v += s if quarter == 1 or quarter == 3 else 0.0
        w += s if quarter >= 2 else 0.0
        s = -s if quarter == 3 else s
    return v, w, s


@device_function
def deepest(shapes, k, a, b, c, limit, times):
    """Find the deepest point of the triangle a, b, c in the k-th shape.

    Args:
        shapes: Obstacle shapes.
        k: Shape.
        a, b, c: Corners [m].
        limit: Upper limit of the distance [m].
        times: Search steps, `DEPTH_STEPS` or `POINT_STEPS`.

    Returns:
        `Deepest`; the centroid with distance `limit` if no point has a smaller distance.
    """
    best = Deepest(limit, 1.0 / 3.0, 1.0 / 3.0)
    levels = 0
    if shapes.rows[k, KIND] == MESH:
        part = shapes.values[int(shapes.rows[k, FIRST]) + REGION_LENGTH]
        levels = int(
            min(max(math.ceil(math.log2(longest(a, b, c) / part)), 0.0) + EXTRA_LEVELS, 1.0 * MAX_LEVELS)
        )
    level, path = 0, 0  # the path has two bits per level
    while True:
        v, w, s = _part(level, path)
        p = add(a, add(scale(v, sub(b, a)), scale(w, sub(c, a))))
        q, r = add(p, scale(s, sub(b, a))), add(p, scale(s, sub(c, a)))
        _, least = bound_distance(shapes, k, p, q, r)
        if least < best.distance:
            if level < levels:
                level, path = level + 1, 4 * path
                continue
            candidate = _in_part(shapes, k, p, q, r, times)
            if candidate.distance < best.distance:
                best = Deepest(candidate.distance, v + s * candidate.second, w + s * candidate.third)
        path += 1
        while level > 0 and path & 3 == 0:
            level, path = level - 1, path >> 2
        if level == 0:
            return best


def thicknesses(shapes: Shapes) -> np.ndarray:
    """(r,) twice the largest interior depth of each shape [m]; infinite for shapes without another side."""
    return np.array([_thickness(row) for row in shapes.rows])


def thin_parts(shapes: Shapes) -> np.ndarray:
    """(r,) thickness of the thin parts of each mesh, otherwise thickness of the shape [m]."""
    thick = thicknesses(shapes)
    return np.where(shapes.rows[:, KIND] == MESH, shapes.rows[:, THIN], thick)


def _thickness(row: np.ndarray) -> float:
    if row[SIDE] < 0 or row[KIND] == PLANE:
        return math.inf
    if row[KIND] == MESH:
        return float(row[THICKNESS])
    a, b, c = row[SIZE : SIZE + 3].tolist()
    return 2 * float({CAPSULE: b, CYLINDER: min(a, b), BOX: min(a, b, c)}[int(row[KIND])])


def widths(shapes: Shapes) -> np.ndarray:
    """(r,) second smallest extent of each shape, thickness of each mesh [m]; infinite without another side.

    A wide thin obstacle such as a plate can penetrate faces with its rim only.
    """
    thick = thicknesses(shapes)
    for k, row in enumerate(shapes.rows):
        if math.isfinite(thick[k]) and row[KIND] in (BOX, CYLINDER):
            a, b, c = row[SIZE : SIZE + 3].tolist()
            thick[k] = 2 * (sorted((a, b, c))[1] if row[KIND] == BOX else b)
    return thick
