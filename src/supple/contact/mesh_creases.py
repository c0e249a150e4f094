"""Additional contact faces of a mesh across concave edges.

In a valley of the mesh, a vertex touches two or three faces. With the closest face alone, contact forces
would alternate between them. Additional faces are those with another local minimum of the distance, and those
that share a concave edge with the closest face. Both must lie above each other's plane, which excludes faces
across convex edges.
"""

from __future__ import annotations

from supple.contact.mesh_distance import (
    BOX,
    CORNERS,
    COUNT,
    EDGE,
    FAR,
    LEVELS,
    NORMALS,
    TINY,
    WEIGHT,
    boxes_at,
    closest_of_triangle,
    squared_distance_of_box,
    triangles_at,
)
from supple.kernels import physics

CLOSE, REACH = 0.25, 0.1
"""Largest distance of points for the search, and largest additional distance of faces, in mean edge lengths
of the mesh."""

ROUNDING = 1e-12
"""Rounding error of squared distances, relative."""

ABOVE, ALIKE = 1e-6, 1e-9
"""Height over the plane of another face above which an edge is concave, in mean edge lengths, and difference
to 1 of the cosine between coplanar normals."""


@physics
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@physics
def _crease_plane(values, first, m, p, d, n, reach):
    """(s, h, normal) of the m-th triangle as an additional contact face.

    s is the squared distance of p, `FAR` if the triangle does not qualify; h is the height of p over it. The
    closest face has the distance d and the normal n.
    """
    triangles, count = triangles_at(values, first), int(values[first + COUNT])
    at = triangles + CORNERS * m
    s, feature, v, w = closest_of_triangle(values, at, p[0], p[1], p[2])
    normal = triangles + CORNERS * count + NORMALS * m
    t = values[normal], values[normal + 1], values[normal + 2]
    a = values[at], values[at + 1], values[at + 2]
    h = (p[0] - a[0]) * t[0] + (p[1] - a[1]) * t[1] + (p[2] - a[2]) * t[2]
    tiny = values[first + TINY]
    if s > reach * reach or _dot(t, n) > 1.0 - ALIKE or _dot(t, t) == 0.0:
        return FAR, h, t
    foot = p[0] - d * n[0], p[1] - d * n[1], p[2] - d * n[2]
    middle = (
        (a[0] + values[at + 3] + values[at + 6]) / 3.0 - foot[0],
        (a[1] + values[at + 4] + values[at + 7]) / 3.0 - foot[1],
        (a[2] + values[at + 5] + values[at + 8]) / 3.0 - foot[2],
    )
    back = (foot[0] - a[0]) * t[0] + (foot[1] - a[1]) * t[1] + (foot[2] - a[2]) * t[2]
    if _dot(middle, n) < ABOVE * values[first + EDGE] or back < -tiny:
        return FAR, h, t
    edge = (
        a[0] + v * (values[at + 3] - a[0]) + w * (values[at + 6] - a[0]) - foot[0],
        a[1] + v * (values[at + 4] - a[1]) + w * (values[at + 7] - a[1]) - foot[1],
        a[2] + v * (values[at + 5] - a[2]) + w * (values[at + 8] - a[2]) - foot[2],
    )
    opposite = s - h * h <= ROUNDING * s + (d * d if d < 0.0 else 0.0)
    shared = 1 <= feature <= 3 and abs(_dot(edge, n)) <= tiny
    return (s if opposite or shared or s <= tiny * tiny else FAR), h, t


@physics
def crease_planes(values, first, p, d, n):
    """Find up to two additional contact faces of a point, nearest first.

    Args:
        values: Trees of all meshes.
        first: Offset of the tree.
        p: Point in the frame of the mesh [m].
        d: Signed distance of the closest face [m].
        n: Normal of the closest face.

    Returns:
        (g, m, h, k): signed distances g, h [m] and normals m, k, which are 0 without a face.
    """
    none = (0.0, 0.0, 0.0)
    g, near, m, h, far, k = 0.0, FAR, none, 0.0, FAR, none
    if abs(d) > CLOSE * values[first + EDGE] or values[first + WEIGHT] > 0.0:
        return g, m, h, k
    reach = abs(d) + REACH * values[first + EDGE]
    count, levels, boxes = int(values[first + COUNT]), int(values[first + LEVELS]), boxes_at(first)
    node, level = 1, 0
    while True:
        inside = squared_distance_of_box(values, boxes + BOX * node, p[0], p[1], p[2]) <= reach * reach
        if inside and level < levels:
            node, level = 2 * node, level + 1
            continue
        if inside:
            leaf = node - (1 << levels)
            for i in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
                s, height, t = _crease_plane(values, first, i, p, d, n, reach)
                other = near == FAR or _dot(t, m) <= 1.0 - ALIKE
                if s < near:
                    if other:
                        h, far, k = g, near, m
                    g, near, m = height, s, t
                elif s < far and other:
                    h, far, k = height, s, t
        while level > 0 and node & 1 == 1:
            node, level = node >> 1, level - 1
        if level == 0:
            return g, m, h, k
        node += 1
