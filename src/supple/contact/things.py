"""Things of which surfaces consist, by their corners: vertices, edges and triangles; their boxes, and how far
two of them are from each other."""

from __future__ import annotations

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact.closest import between, crosses, on_edges, on_triangle
from supple.kernels import physics

OPPOSED = 0.5, 0.8
"""Cosine of the angle between triangles from which on they begin to face each other, and wholly do."""

_BEGIN = OPPOSED[0]

ABOUT = 1e-5
"""By which a cosine may be off where a normal is known in float32."""

NEVER = 1e300
"""Distance² [m²] of things that do not meet, wherever they are: finite, since devices compute as if all
numbers were."""


@physics
def point(x, i):
    return (x[i, 0], x[i, 1], x[i, 2])


@physics
def ends(x, things, m, axis):
    """(least, most) of the m-th of things (m, k), points x (n, 3), along an axis."""
    least = most = x[things[m, 0], axis]
    for corner in range(1, things.shape[1]):
        value = x[things[m, corner], axis]
        least, most = min(least, value), max(most, value)
    return least, most


@physics
def boxes_apart(x, seek, other, m, o, enough):
    """Distance² of the boxes of two things, which are no nearer than that; or less, where that is
    enough."""
    square = 0.0
    for axis in range(3):
        low, high = ends(x, seek, m, axis)
        least, most = ends(x, other, o, axis)
        gap = max(least - high, low - most, 0.0)
        square += gap * gap
        if square >= enough:
            break
    return square


@physics
def share_a_corner(seek, other, m, o):
    for a in range(seek.shape[1]):
        for b in range(other.shape[1]):
            if seek[m, a] == other[o, b]:
                return True
    return False


@physics
def things_apart(x, seek, other, m, o):
    """Distance² of the m-th of some things from the o-th of others, which share no corner; `NEVER` for edges
    that do not cross a triangle; of two triangles, whose boxes are asked for, 0."""
    if seek.shape[1] == 3:
        return 0.0
    p = point(x, seek[m, 0])
    a, b = point(x, other[o, 0]), point(x, other[o, 1])
    if seek.shape[1] == 2 and other.shape[1] == 3:
        return 0.0 if crosses(p, point(x, seek[m, 1]), a, b, point(x, other[o, 2])) else NEVER
    if seek.shape[1] == 1:
        c = point(x, other[o, 2])
        u, v, w = on_triangle(p, a, b, c)
        gap = sub(p, add(add(scale(u, a), scale(v, b)), scale(w, c)))
    else:
        q = point(x, seek[m, 1])
        t, r = on_edges(p, q, a, b)
        gap = sub(between(t, p, q), between(r, a, b))
    return dot(gap, gap)


@physics
def face(facing, m, o):
    """Whether two triangles face each other, by facing: their normals (t, 3) and whether they have no outside
    (t,); what has no normals need not."""
    normal, free = facing
    if len(normal) == 0:
        return True
    cosine = 0.0
    for axis in range(3):
        cosine -= normal[m, axis] * normal[o, axis]
    return cosine > _BEGIN or (cosine < -_BEGIN and (free[m] or free[o]))


ALL_OCTANTS = 255
"""Of triangles that may face any way."""


@physics
def octants_of(facing, m):
    """In which of the eight octants the normal of a triangle is, as bits; all of what has no outside."""
    normal, free = facing
    if len(normal) == 0 or free[m]:
        return ALL_OCTANTS
    bits = 0
    for octant in range(8):
        inside = True
        for axis in range(3):
            inside = inside and (1.0 - 2.0 * ((octant >> axis) & 1)) * normal[m, axis] >= -ABOUT
        bits |= (1 if inside else 0) << octant
    return bits


@physics
def octants_faced(facing, m):
    """In which octants normals of triangles can be that a triangle faces: by the direction in each that is
    nearest to that against its own."""
    normal, free = facing
    if len(normal) == 0 or free[m]:
        return ALL_OCTANTS
    bits = 0
    for octant in range(8):
        square = 0.0
        for axis in range(3):
            along = max((2.0 * ((octant >> axis) & 1) - 1.0) * normal[m, axis], 0.0)
            square += along * along
        bits |= (1 if square > (_BEGIN - ABOUT) * (_BEGIN - ABOUT) else 0) << octant
    return bits


@physics
def may_face(facing, m, normals, entry):
    """Whether a triangle may face one of which about the normal is known, 0 of what has no outside."""
    normal, free = facing
    if len(normal) == 0 or len(normals) == 0:
        return True
    cosine, length = 0.0, 0.0
    for axis in range(3):
        cosine -= normal[m, axis] * normals[entry, axis]
        length += abs(normals[entry, axis])
    return cosine > _BEGIN - ABOUT or free[m] or length == 0.0
