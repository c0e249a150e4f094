"""How deep triangles are inside obstacles between their vertices, which are all that obstacles see.

The distance from a convex shape is convex, and so is its minimum over the segments that a triangle consists
of, as a function of which segment that is: a golden section over them, with a bisection on each by the sign
of the slope, finds the deepest point, also where the distance has edges. Triangles beside a closed surface,
whose distance is convex in small parts only, are divided into such parts. From inside a hollow shape, and
from a plane, a triangle is farthest at a vertex.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact.mesh_distance import PART, SLACK
from supple.contact.shapes import (
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
from supple.kernels import physics

GOLDEN = 0.6180339887498949
"""The golden section."""

DEPTHS, PLACES = 16, 40
"""How often segments, and the points on them, are divided: for depths, to some 4e-4 of an edge, which the
distance at the deepest point of a round shape feels in its square only; and for places that forces are to
follow evenly, to some 1e-8 of an edge."""

FINER, MOST = 2, 8
"""How often a triangle beside a mesh is quartered after its parts are as short as `PART` says, so that most
of them are seen to be outside; and how often at most."""


class Deepest(NamedTuple):
    """Of a triangle: the least distance [m] from a shape, and the weights of the second and the third corner
    at the point where it is."""

    distance: Any
    second: Any
    third: Any


@physics
def bulges(shapes, k):
    """Whether the k-th shape may be deeper in a triangle than in its corners."""
    return shapes.rows[k, SIDE] > 0.0 and shapes.rows[k, KIND] != PLANE


@physics
def between(a, b, t):
    """a + t (b - a)."""
    return add(a, scale(t, sub(b, a)))


@physics
def _on_segment(shapes, k, p, q, times):
    """(d, t): the least distance on the segment from p to q, and which part of it leads there."""
    way, low, high = sub(q, p), 0.0, 1.0
    for _ in range(times):
        t = 0.5 * (low + high)
        _, n = distance(shapes, k, between(p, q, t))
        slope = dot(n, way)
        low, high = (t if slope <= 0.0 else low), (t if slope >= 0.0 else high)
    t = 0.5 * (low + high)
    d, _ = distance(shapes, k, between(p, q, t))
    return d, t


@physics
def _across(shapes, k, a, b, c, s, times):
    """(d, t) on the segment between the sides ab and ac, the s-th part of them away from a."""
    return _on_segment(shapes, k, between(a, b, s), between(a, c, s), times)


@physics
def _in_part(shapes, k, a, b, c, times):
    """The deepest point of a triangle over which the distance is convex."""
    low, high = 0.0, 1.0
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, s = _across(shapes, k, a, b, c, left, times)
    at_right, t = _across(shapes, k, a, b, c, right, times)
    for _ in range(times):
        if at_left <= at_right:
            high, right, at_right, t = right, left, at_left, s
            left = high - GOLDEN * (high - low)
            at_left, s = _across(shapes, k, a, b, c, left, times)
        else:
            low, left, at_left, s = left, right, at_right, t
            right = low + GOLDEN * (high - low)
            at_right, t = _across(shapes, k, a, b, c, right, times)
    if at_left <= at_right:
        return Deepest(at_left, left * (1.0 - s), left * s)
    return Deepest(at_right, right * (1.0 - t), right * t)


@physics
def longest(a, b, c):
    """The longest side [m] of a triangle."""
    p, q, r = sub(b, a), sub(c, b), sub(a, c)
    return math.sqrt(max(max(dot(p, p), dot(q, q)), dot(r, r)))


@physics
def bounded(shapes, k, a, b, c):
    """(d, least): the distance [m] at the middle of a triangle, and one that no point of it inside is below:
    distances change by no more than one goes, and those of convex shapes are above their tangents. Far from a
    mesh its distance is known roughly."""
    m = scale(1.0 / 3.0, add(a, add(b, c)))
    p, q, r = sub(a, m), sub(b, m), sub(c, m)
    far = math.sqrt(max(max(dot(p, p), dot(q, q)), dot(r, r)))
    mesh = shapes.rows[k, KIND] == MESH
    if mesh:
        outside = beyond_box(shapes, k, m)
        if outside > far:
            return outside, outside - far
    d, n = distance(shapes, k, m)
    if mesh:
        return d, d - SLACK * outside - far
    return d, max(d - far, d + min(min(dot(n, p), dot(n, q)), dot(n, r)))


@physics
def _part(level, path):
    """(v, w, s) of a part of a triangle that was quartered along a path: the weights of the second and the
    third corner at its first corner, and its size, negative where it is upside down."""
    v, w, s = 0.0, 0.0, 1.0
    for j in range(level - 1, -1, -1):
        quarter = (path >> (2 * j)) & 3
        s *= 0.5
        v += s if quarter == 1 or quarter == 3 else 0.0
        w += s if quarter >= 2 else 0.0
        s = -s if quarter == 3 else s
    return v, w, s


@physics
def deepest(shapes, k, a, b, c, limit, times):
    """The `Deepest` point of a triangle with corners a, b, c in the k-th shape; any where no point has a
    distance below a limit [m]. times: `DEPTHS` or `PLACES`."""
    best = Deepest(limit, 1.0 / 3.0, 1.0 / 3.0)
    levels = 0
    if shapes.rows[k, KIND] == MESH:
        part = shapes.values[int(shapes.rows[k, FIRST]) + PART]
        levels = int(min(max(math.ceil(math.log2(longest(a, b, c) / part)), 0.0) + FINER, 1.0 * MOST))
    level, path = 0, 0  # two bits of the path for every quartering
    while True:
        v, w, s = _part(level, path)
        p = add(a, add(scale(v, sub(b, a)), scale(w, sub(c, a))))
        q, r = add(p, scale(s, sub(b, a))), add(p, scale(s, sub(c, a)))
        _, least = bounded(shapes, k, p, q, r)
        if least < best.distance:
            if level < levels:
                level, path = level + 1, 4 * path
                continue
            found = _in_part(shapes, k, p, q, r, times)
            if found.distance < best.distance:
                best = Deepest(found.distance, v + s * found.second, w + s * found.third)
        path += 1
        while level > 0 and path & 3 == 0:
            level, path = level - 1, path >> 2
        if level == 0:
            return best


def thicknesses(shapes: Shapes) -> np.ndarray:
    """(r,) [m] twice the depth of the deepest point of each shape; infinite for what has no other side."""
    return np.array([_thickness(row) for row in shapes.rows])


def thin_parts(shapes: Shapes) -> np.ndarray:
    """(r,) [m] the thickness of the thin parts of each shape, of all but meshes their thickness."""
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
    """(r,) [m] the second least extent of each shape, of a closed surface its thickness; infinite for what
    has no other side. What is wide and thin, as a plate, passes faces with its rim only."""
    thick = thicknesses(shapes)
    for k, row in enumerate(shapes.rows):
        if math.isfinite(thick[k]) and row[KIND] in (BOX, CYLINDER):
            a, b, c = row[SIZE : SIZE + 3].tolist()
            thick[k] = 2 * (sorted((a, b, c))[1] if row[KIND] == BOX else b)
    return thick
