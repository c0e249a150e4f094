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
from supple.contact.shapes import (
    BOX,
    CAPSULE,
    CYLINDER,
    FIRST,
    GRID,
    KIND,
    PLANE,
    SIDE,
    SIZE,
    SPACING,
    Shapes,
    distance,
)
from supple.kernels import physics

GOLDEN = 0.6180339887498949
"""The golden section."""

DEPTHS, PLACES = 16, 40
"""How often segments, and the points on them, are divided: for depths, to some 4e-4 of an edge, which the
distance at the deepest point of a round shape feels in its square only; and for places that forces are to
follow evenly, to some 1e-8 of an edge."""

PARTS, MOST = 4.0, 256
"""Spacings of a grid of distances that a part of a triangle may be long, and how many parts a side has at
most."""


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
    distances change by no more than one goes, √2 of that beyond a grid, and those of convex shapes are above
    their tangents."""
    m = scale(1.0 / 3.0, add(a, add(b, c)))
    d, n = distance(shapes, k, m)
    p, q, r = sub(a, m), sub(b, m), sub(c, m)
    far = math.sqrt(max(max(dot(p, p), dot(q, q)), dot(r, r)))
    if shapes.rows[k, KIND] == GRID:
        return d, d - math.sqrt(2.0) * far
    return d, max(d - far, d + min(min(dot(n, p), dot(n, q)), dot(n, r)))


@physics
def deepest(shapes, k, a, b, c, limit, times):
    """The `Deepest` point of a triangle with corners a, b, c in the k-th shape; any where no point has a
    distance below a limit [m]. times: `DEPTHS` or `PLACES`."""
    best = Deepest(limit, 1.0 / 3.0, 1.0 / 3.0)
    parts = 1
    if shapes.rows[k, KIND] == GRID:
        size = longest(a, b, c) / (PARTS * shapes.rows[k, SPACING])
        parts = int(min(max(math.ceil(size), 1.0), 1.0 * MOST))
    step = 1.0 / parts
    for i in range(parts):
        for j in range(2 * (parts - i) - 1):
            up = j % 2 == 0  # every other part is upside down
            v, w = step * i, step * (j // 2)
            s = step if up else -step
            if not up:
                v, w = v + step, w + step
            p = add(a, add(scale(v, sub(b, a)), scale(w, sub(c, a))))
            q, r = add(p, scale(s, sub(b, a))), add(p, scale(s, sub(c, a)))
            _, least = bounded(shapes, k, p, q, r)
            if least < best.distance:
                found = _in_part(shapes, k, p, q, r, times)
                if found.distance < best.distance:
                    best = Deepest(found.distance, v + s * found.second, w + s * found.third)
    return best


def thicknesses(shapes: Shapes) -> np.ndarray:
    """(r,) [m] twice the depth of the deepest point of each shape; infinite for what has no other side."""
    return np.array([_thickness(row, shapes.values) for row in shapes.rows])


def _thickness(row: np.ndarray, values: np.ndarray) -> float:
    if row[SIDE] < 0 or row[KIND] == PLANE:
        return math.inf
    if row[KIND] == GRID:
        count, first = int(np.prod(row[SIZE : SIZE + 3])), int(row[FIRST])
        return max(0.0, -2 * float(values[first : first + count].min()))
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
