"""Signed distance functions of obstacle shapes, negative inside, and their gradients.

Each shape is a parameter row in its own frame, which moves with the obstacle, so one kernel serves all
scenes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.collision.obstacles.mesh_distance import crease_planes, distance_of_bounds, distance_of_mesh
from supple.kernels import device_function, kernel

PLANE, CAPSULE, BOX, CYLINDER, MESH = range(5)
"""Shape types, with sizes a, b, c. Plane: no sizes, inside is z < 0. Capsule about the z axis: half core
length and radius; a ball has core length 0. Box: half edge lengths. Cylinder about the z axis: half length
and radius. Closed triangle mesh: edges of its bounding box."""

KIND, OBSTACLE, FRICTION, SIDE, SIZE, THICKNESS, FIRST, POSE, STEP = 0, 1, 2, 3, 4, 7, 8, 9, 21
"""Offsets of a parameter row: shape type; obstacle; friction coefficient; 1, or -1 for inverted shapes; three
sizes [m]; for meshes, twice the depth of the deepest point [m], and offset of the tree in `values`; frame,
the columns of a rotation as rows, then the origin [m]; motion x → R x + t of the current step."""
BEFORE, KINETIC, THIN, CREASES, FIELDS = 33, 45, 46, 47, 48
"""Offsets of a parameter row, continued: motion x → R x + t of the previous step; kinetic friction
coefficient; for meshes, thickness of the thin parts [m], and 1 for concave edges; row length."""


class Shapes(NamedTuple):
    """Parameters of all obstacle shapes.

    Attributes:
        rows: (r, FIELDS) parameter rows in float64.
        values: (v,) trees of all meshes, see `mesh_distance.py`.
    """

    rows: Any
    values: Any


@device_function
def _capsule(half, radius, x, y, z):
    above = z - min(max(z, -half), half)
    length = math.sqrt(x * x + y * y + above * above)
    if length == 0.0:
        return -radius, 1.0, 0.0, 0.0
    return length - radius, x / length, y / length, above / length


@device_function
def _box(a, b, c, x, y, z):
    p, q, r = abs(x) - a, abs(y) - b, abs(z) - c
    sx, sy, sz = math.copysign(1.0, x), math.copysign(1.0, y), math.copysign(1.0, z)
    if p <= 0.0 and q <= 0.0 and r <= 0.0:
        if p >= q and p >= r:
            return p, sx, 0.0, 0.0
        if q >= r:
            return q, 0.0, sy, 0.0
        return r, 0.0, 0.0, sz
    p, q, r = max(p, 0.0), max(q, 0.0), max(r, 0.0)
    length = math.sqrt(p * p + q * q + r * r)
    return length, sx * p / length, sy * q / length, sz * r / length


@device_function
def _cylinder(half, radius, x, y, z):
    rho = math.sqrt(x * x + y * y)
    ex, ey = (x / rho, y / rho) if rho > 0.0 else (1.0, 0.0)
    p, q, s = rho - radius, abs(z) - half, math.copysign(1.0, z)
    if p <= 0.0 and q <= 0.0:
        return (p, ex, ey, 0.0) if p >= q else (q, 0.0, 0.0, s)
    p, q = max(p, 0.0), max(q, 0.0)
    length = math.sqrt(p * p + q * q)
    return length, p * ex / length, p * ey / length, s * q / length


@device_function
def distance_in_frame(shapes, k, x, y, z):
    """(d, n) in the frame of the shape."""
    rows = shapes.rows
    kind, a, b = rows[k, KIND], rows[k, SIZE], rows[k, SIZE + 1]
    if kind == PLANE:
        return z, 0.0, 0.0, 1.0
    if kind == CAPSULE:
        return _capsule(a, b, x, y, z)
    if kind == BOX:
        return _box(a, b, rows[k, SIZE + 2], x, y, z)
    if kind == CYLINDER:
        return _cylinder(a, b, x, y, z)
    return distance_of_mesh(shapes.values, int(rows[k, FIRST]), x, y, z)


@device_function
def _rows_times(rows, k, v):
    """Rotate a world vector to the frame of the k-th shape."""
    return (
        rows[k, POSE] * v[0] + rows[k, POSE + 1] * v[1] + rows[k, POSE + 2] * v[2],
        rows[k, POSE + 3] * v[0] + rows[k, POSE + 4] * v[1] + rows[k, POSE + 5] * v[2],
        rows[k, POSE + 6] * v[0] + rows[k, POSE + 7] * v[1] + rows[k, POSE + 8] * v[2],
    )


@device_function
def _columns_times(rows, k, v):
    """Rotate a vector from the frame of the k-th shape to world axes."""
    return (
        rows[k, POSE] * v[0] + rows[k, POSE + 3] * v[1] + rows[k, POSE + 6] * v[2],
        rows[k, POSE + 1] * v[0] + rows[k, POSE + 4] * v[1] + rows[k, POSE + 7] * v[2],
        rows[k, POSE + 2] * v[0] + rows[k, POSE + 5] * v[1] + rows[k, POSE + 8] * v[2],
    )


@device_function
def distance(shapes, k, x):
    """Signed distance of a point from a shape.

    Args:
        shapes: Obstacle shapes.
        k: Shape.
        x: Point [m], a 3-tuple.

    Returns:
        (d, n): distance [m] and gradient.
    """
    rows = shapes.rows
    p = x[0] - rows[k, POSE + 9], x[1] - rows[k, POSE + 10], x[2] - rows[k, POSE + 11]
    x, y, z = _rows_times(rows, k, p)
    d, a, b, c = distance_in_frame(shapes, k, x, y, z)
    side = rows[k, SIDE]
    n = (
        side * (rows[k, POSE] * a + rows[k, POSE + 3] * b + rows[k, POSE + 6] * c),
        side * (rows[k, POSE + 1] * a + rows[k, POSE + 4] * b + rows[k, POSE + 7] * c),
        side * (rows[k, POSE + 2] * a + rows[k, POSE + 5] * b + rows[k, POSE + 8] * c),
    )
    return side * d, n


@device_function
def beyond_box(shapes, k, x):
    """Lower bound of the distance of x from the k-th shape, a mesh: distance from its bounding box [m]."""
    rows = shapes.rows
    p = x[0] - rows[k, POSE + 9], x[1] - rows[k, POSE + 10], x[2] - rows[k, POSE + 11]
    x, y, z = _rows_times(rows, k, p)
    return distance_of_bounds(shapes.values, int(rows[k, FIRST]), x, y, z)


@device_function
def _apply_motion(r, k, a, x):
    """x → R x + t with the motion at field `a` of the k-th row."""
    return (
        r[k, a] * x[0] + r[k, a + 1] * x[1] + r[k, a + 2] * x[2] + r[k, a + 9],
        r[k, a + 3] * x[0] + r[k, a + 4] * x[1] + r[k, a + 5] * x[2] + r[k, a + 10],
        r[k, a + 6] * x[0] + r[k, a + 7] * x[1] + r[k, a + 8] * x[2] + r[k, a + 11],
    )


@device_function
def advect(shapes, k, x):
    """Advect point x by the k-th shape from start to end of the current step."""
    return _apply_motion(shapes.rows, k, STEP, x)


@device_function
def advect_previous(shapes, k, x):
    """Advect point x by the k-th shape from start to end of the previous step."""
    return _apply_motion(shapes.rows, k, BEFORE, x)


@device_function
def nearest(shapes, x):
    """Three nearest shapes of x, nearest first; -1 if there are fewer."""
    if shapes.rows.shape[0] == 1:
        return 0, -1, -1
    first, second, third = -1, -1, -1
    d1, d2, d3 = math.inf, math.inf, math.inf
    for k in range(shapes.rows.shape[0]):
        d, _ = distance(shapes, k, x)
        if d < d1:
            first, second, third, d1, d2, d3 = k, first, second, d, d1, d2
        elif d < d2:
            second, third, d2, d3 = k, second, d, d2
        elif d < d3:
            third, d3 = k, d
    return first, second, third


@device_function
def _creases(shapes, k, x, d, n):
    """(g, m, h, k) of `crease_planes` for the k-th shape; normals are 0 for shapes without concave edges."""
    rows, none = shapes.rows, (0.0, 0.0, 0.0)
    if rows[k, KIND] != MESH or rows[k, CREASES] == 0.0:
        return 0.0, none, 0.0, none
    p = x[0] - rows[k, POSE + 9], x[1] - rows[k, POSE + 10], x[2] - rows[k, POSE + 11]
    g, m, h, o = crease_planes(
        shapes.values, int(rows[k, FIRST]), _rows_times(rows, k, p), d, _rows_times(rows, k, n)
    )
    return g, _columns_times(rows, k, m), h, _columns_times(rows, k, o)


@device_function
def _at_shape(shapes, k, x):
    """(k, d, n): distance and normal of the k-th shape; infinite distance for k < 0."""
    if k < 0:
        return k, math.inf, (0.0, 0.0, 0.0)
    d, n = distance(shapes, k, x)
    return k, d, n


@device_function
def nearest_planes(shapes, x, count):
    """Nearest contact planes of a point.

    A mesh contributes several planes close to a concave edge.

    Args:
        shapes: Obstacle shapes.
        x: Point [m], a 3-tuple.
        count: Number of planes in use, at most 3.

    Returns:
        Three (k, d, n), nearest first: shape, distance [m] and normal; k = -1 if there are fewer.
    """
    first, second, third = nearest(shapes, x)
    at = _at_shape(shapes, first, x)
    second = second if count > 1 else -1
    third = third if count > 2 else -1
    one, other = _at_shape(shapes, second, x), _at_shape(shapes, third, x)
    if count > 1 and first >= 0:
        g, m, h, o = _creases(shapes, first, x, at[1], at[2])
        if (m[0] != 0.0 or m[1] != 0.0 or m[2] != 0.0) and g < other[1]:
            crease = (first, g, m)
            one, other = (crease, one) if g < one[1] else (one, crease)
            if (o[0] != 0.0 or o[1] != 0.0 or o[2] != 0.0) and h < other[1]:
                other = (first, h, o)
    return at, one, other


@kernel
def _nearest_of_all(shapes, points, result, which):
    for i in range(len(points)):
        x = (points[i, 0], points[i, 1], points[i, 2])
        k, _, _ = nearest(shapes, x)
        d, n = distance(shapes, k, x)
        which[i] = k
        result[i, 0], result[i, 1], result[i, 2], result[i, 3] = d, n[0], n[1], n[2]


def distances_to(shapes: Shapes, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signed distance of points from the nearest shape.

    Args:
        shapes: Obstacle shapes.
        points: (n, 3) points [m].

    Returns:
        Distances (n,) [m], gradients (n, 3) and nearest shapes (n,).
    """
    points = np.ascontiguousarray(points, float)
    result, which = np.zeros((len(points), 4)), np.zeros(len(points), np.int64)
    _nearest_of_all(shapes, points, result, which)
    return result[:, 0], result[:, 1:], which
