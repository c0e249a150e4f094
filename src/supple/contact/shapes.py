"""Shapes of obstacles: the signed distance of a point, and the direction in which it grows.

Every shape is a row of numbers in a frame of its own, which moves with the obstacle, so that one kernel
serves all scenes. Distances are negative inside.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.kernels import kernel, physics

PLANE, CAPSULE, BOX, CYLINDER, GRID = range(5)
"""Kinds of shapes. Their sizes a, b, c: of a plane none, z < 0 is inside; of a capsule about the z axis half
the length of its core and its radius, of which a ball has the first 0; of a box half its edges; of a cylinder
about the z axis half its length and its radius; of a grid of distances its numbers of points in x, y and z,
the first of which is at the origin."""

KIND, OBSTACLE, FRICTION, SIDE, SIZE, SPACING, FIRST, POSE, STEP = 0, 1, 2, 3, 4, 7, 8, 9, 21
BEFORE, KINETIC, FIELDS = 33, 45, 46
"""Where in its row a shape has its kind, its obstacle's number, its coefficient of friction, 1 or -1 where
outside is inside; three sizes [m]; the spacing [m] of a grid and where its values begin; its frame, the
columns of a rotation as rows, and the origin [m]; how that has moved in the present step, x → R x + t, and in
the step before; and the coefficient of friction of what slides."""


class Shapes(NamedTuple):
    """rows (r, FIELDS) of numbers, float64; values (v,): distances [m] at the points of all grids."""

    rows: Any
    values: Any


@physics
def _capsule(half, radius, x, y, z):
    above = z - min(max(z, -half), half)
    length = math.sqrt(x * x + y * y + above * above)
    if length == 0.0:
        return -radius, 1.0, 0.0, 0.0
    return length - radius, x / length, y / length, above / length


@physics
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


@physics
def _cylinder(half, radius, x, y, z):
    rho = math.sqrt(x * x + y * y)
    ex, ey = (x / rho, y / rho) if rho > 0.0 else (1.0, 0.0)
    p, q, s = rho - radius, abs(z) - half, math.copysign(1.0, z)
    if p <= 0.0 and q <= 0.0:
        return (p, ex, ey, 0.0) if p >= q else (q, 0.0, 0.0, s)
    p, q = max(p, 0.0), max(q, 0.0)
    length = math.sqrt(p * p + q * q)
    return length, p * ex / length, p * ey / length, s * q / length


@physics
def _grid(rows, values, k, x, y, z):
    """Trilinear between the points of a grid; beyond it, the distance to it comes on top."""
    h, first = rows[k, SPACING], int(rows[k, FIRST])
    nx, ny, nz = int(rows[k, SIZE]), int(rows[k, SIZE + 1]), int(rows[k, SIZE + 2])
    px, py, pz = x / h, y / h, z / h
    cx, cy, cz = (
        min(max(px, 0.0), nx - 1.0),
        min(max(py, 0.0), ny - 1.0),
        min(max(pz, 0.0), nz - 1.0),
    )
    i, j, l = min(int(cx), nx - 2), min(int(cy), ny - 2), min(int(cz), nz - 2)
    u, v, w = cx - i, cy - j, cz - l
    at = first + (i * ny + j) * nz + l
    a00, a01 = values[at], values[at + 1]
    a10, a11 = values[at + nz], values[at + nz + 1]
    at += ny * nz
    b00, b01 = values[at], values[at + 1]
    b10, b11 = values[at + nz], values[at + nz + 1]
    a = (1.0 - v) * ((1.0 - w) * a00 + w * a01) + v * ((1.0 - w) * a10 + w * a11)
    b = (1.0 - v) * ((1.0 - w) * b00 + w * b01) + v * ((1.0 - w) * b10 + w * b11)
    gx = b - a
    gy = (1.0 - u) * ((1.0 - w) * (a10 - a00) + w * (a11 - a01)) + u * (
        (1.0 - w) * (b10 - b00) + w * (b11 - b01)
    )
    gz = (1.0 - u) * ((1.0 - v) * (a01 - a00) + v * (a11 - a10)) + u * (
        (1.0 - v) * (b01 - b00) + v * (b11 - b10)
    )
    ox, oy, oz = px - cx, py - cy, pz - cz
    beyond = math.sqrt(ox * ox + oy * oy + oz * oz)
    if beyond > 0.0:
        return (1.0 - u) * a + u * b + h * beyond, ox / beyond, oy / beyond, oz / beyond
    length = math.sqrt(gx * gx + gy * gy + gz * gz)
    if length == 0.0:
        return (1.0 - u) * a + u * b, 1.0, 0.0, 0.0
    return (1.0 - u) * a + u * b, gx / length, gy / length, gz / length


@physics
def _in_frame(shapes, k, x, y, z):
    """(d, n) in the shape's own frame."""
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
    return _grid(rows, shapes.values, k, x, y, z)


@physics
def distance(shapes, k, x):
    """(d, n): the signed distance [m] of the point x from the k-th shape, and its gradient."""
    rows = shapes.rows
    p = x[0] - rows[k, POSE + 9], x[1] - rows[k, POSE + 10], x[2] - rows[k, POSE + 11]
    d, a, b, c = _in_frame(
        shapes,
        k,
        rows[k, POSE] * p[0] + rows[k, POSE + 1] * p[1] + rows[k, POSE + 2] * p[2],
        rows[k, POSE + 3] * p[0] + rows[k, POSE + 4] * p[1] + rows[k, POSE + 5] * p[2],
        rows[k, POSE + 6] * p[0] + rows[k, POSE + 7] * p[1] + rows[k, POSE + 8] * p[2],
    )
    side = rows[k, SIDE]
    n = (
        side * (rows[k, POSE] * a + rows[k, POSE + 3] * b + rows[k, POSE + 6] * c),
        side * (rows[k, POSE + 1] * a + rows[k, POSE + 4] * b + rows[k, POSE + 7] * c),
        side * (rows[k, POSE + 2] * a + rows[k, POSE + 5] * b + rows[k, POSE + 8] * c),
    )
    return side * d, n


@physics
def _moved(r, k, a, x):
    """x → R x + t with what the k-th row has from field a on."""
    return (
        r[k, a] * x[0] + r[k, a + 1] * x[1] + r[k, a + 2] * x[2] + r[k, a + 9],
        r[k, a + 3] * x[0] + r[k, a + 4] * x[1] + r[k, a + 5] * x[2] + r[k, a + 10],
        r[k, a + 6] * x[0] + r[k, a + 7] * x[1] + r[k, a + 8] * x[2] + r[k, a + 11],
    )


@physics
def carried(shapes, k, x):
    """Where a point that moves with the k-th shape is at the end of the step, from x at its beginning."""
    return _moved(shapes.rows, k, STEP, x)


@physics
def carried_before(shapes, k, x):
    """Where a point that moved with the k-th shape was when the step before ended, from x when that began."""
    return _moved(shapes.rows, k, BEFORE, x)


@physics
def nearest(shapes, x):
    """The numbers of the three shapes that are nearest to x, the nearest first; -1 where there are fewer."""
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


@kernel
def _nearest_of_all(shapes, points, found, which):
    for i in range(len(points)):
        x = (points[i, 0], points[i, 1], points[i, 2])
        k, _, _ = nearest(shapes, x)
        d, n = distance(shapes, k, x)
        which[i] = k
        found[i, 0], found[i, 1], found[i, 2], found[i, 3] = d, n[0], n[1], n[2]


def distances_to(shapes: Shapes, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of points (n, 3) [m]: the signed distance (n,) from the nearest shape, its gradient (n, 3), and which
    shape that is (n,)."""
    points = np.ascontiguousarray(points, float)
    found, which = np.zeros((len(points), 4)), np.zeros(len(points), np.int64)
    _nearest_of_all(shapes, points, found, which)
    return found[:, 0], found[:, 1:], which
