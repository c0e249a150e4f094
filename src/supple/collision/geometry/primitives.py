"""Surface primitives (vertices, edges, triangles): boxes, distances and orientation tests."""

from __future__ import annotations

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.collision.geometry.closest_point import between, crosses, on_edges, on_triangle
from supple.kernels import device_function

OPPOSITION_COSINES = 0.5, 0.8
"""Cosine between a normal and the opposite of another at which opposition starts, and at which it is full."""

_MIN_OPPOSITION = OPPOSITION_COSINES[0]
"""Cosine at which opposition starts."""

COSINE_ERROR = 1e-5
"""Error of cosines for normals in float32."""

NO_CONTACT_DISTANCE = 1e300
"""Squared distance of primitives without contact at any position [m²]; finite, since GPU kernels assume
finite math."""


@device_function
def point(x, i):
    return (x[i, 0], x[i, 1], x[i, 2])


@device_function
def ends(x, primitives, m, axis):
    """(least, most) coordinate of the m-th primitive (m, k) along an axis, with points x (n, 3)."""
    least = most = x[primitives[m, 0], axis]
    for corner in range(1, primitives.shape[1]):
        value = x[primitives[m, corner], axis]
        least, most = min(least, value), max(most, value)
    return least, most


@device_function
def squared_box_distance(x, query, other, m, o, enough):
    """Squared distance of the boxes of two primitives, or a lower bound once it reaches `enough` [m²]."""
    square = 0.0
    for axis in range(3):
        low, high = ends(x, query, m, axis)
        least, most = ends(x, other, o, axis)
        gap = max(least - high, low - most, 0.0)
        square += gap * gap
        if square >= enough:
            break
    return square


@device_function
def share_vertex(query, other, m, o):
    """True if two primitives have a common vertex."""
    for a in range(query.shape[1]):
        for b in range(other.shape[1]):
            if query[m, a] == other[o, b]:
                return True
    return False


@device_function
def squared_distance(x, query, other, m, o):
    """Squared distance of two primitives without common vertices [m²].

    Edge-triangle pairs: 0 for an intersection, otherwise `NO_CONTACT_DISTANCE`. Triangle-triangle pairs:
    always 0, since only their boxes are tested.
    """
    if query.shape[1] == 3:
        return 0.0
    p = point(x, query[m, 0])
    a, b = point(x, other[o, 0]), point(x, other[o, 1])
    if query.shape[1] == 2 and other.shape[1] == 3:
        return 0.0 if crosses(p, point(x, query[m, 1]), a, b, point(x, other[o, 2])) else NO_CONTACT_DISTANCE
    if query.shape[1] == 1:
        c = point(x, other[o, 2])
        u, v, w = on_triangle(p, a, b, c)
        gap = sub(p, add(add(scale(u, a), scale(v, b)), scale(w, c)))
    else:
        q = point(x, query[m, 1])
        t, r = on_edges(p, q, a, b)
        gap = sub(between(t, p, q), between(r, a, b))
    return dot(gap, gap)


@device_function
def normals_oppose(orientation, m, o):
    """True if the normals of two triangles oppose; always True without normals.

    `orientation` holds normals (t, 3) and two-sided flags (t,). Two-sided triangles oppose in both
    orientations.
    """
    normal, free = orientation
    if len(normal) == 0:
        return True
    cosine = 0.0
    for axis in range(3):
        cosine -= normal[m, axis] * normal[o, axis]
    return cosine > _MIN_OPPOSITION or (cosine < -_MIN_OPPOSITION and (free[m] or free[o]))


ALL_OCTANTS = 255
"""Octant mask of two-sided triangles and of primitives without normals."""


@device_function
def octants_of(orientation, m):
    """Octants of the normal of a triangle, as a bit mask; all octants for two-sided triangles."""
    normal, free = orientation
    if len(normal) == 0 or free[m]:
        return ALL_OCTANTS
    bits = 0
    for octant in range(8):
        inside = True
        for axis in range(3):
            inside = inside and (1.0 - 2.0 * ((octant >> axis) & 1)) * normal[m, axis] >= -COSINE_ERROR
        bits |= (1 if inside else 0) << octant
    return bits


@device_function
def opposing_octants(orientation, m):
    """Octants of all normals that can oppose a triangle, as a bit mask.

    The direction in each octant nearest to the opposite of the normal decides.
    """
    normal, free = orientation
    if len(normal) == 0 or free[m]:
        return ALL_OCTANTS
    bits = 0
    for octant in range(8):
        square = 0.0
        for axis in range(3):
            along = max((2.0 * ((octant >> axis) & 1) - 1.0) * normal[m, axis], 0.0)
            square += along * along
        bits |= (
            1 if square > (_MIN_OPPOSITION - COSINE_ERROR) * (_MIN_OPPOSITION - COSINE_ERROR) else 0
        ) << octant
    return bits


@device_function
def normals_may_oppose(orientation, m, normals, entry):
    """True if a triangle may oppose a table entry with an approximate normal, 0 for two-sided triangles."""
    normal, free = orientation
    if len(normal) == 0 or len(normals) == 0:
        return True
    cosine, length = 0.0, 0.0
    for axis in range(3):
        cosine -= normal[m, axis] * normals[entry, axis]
        length += abs(normals[entry, axis])
    return cosine > _MIN_OPPOSITION - COSINE_ERROR or free[m] or length == 0.0
