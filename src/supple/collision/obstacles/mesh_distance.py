"""Signed distance, contact faces and thickness of closed triangle meshes.

Traversal of a bounding volume hierarchy finds the closest point of all triangles exactly. The sign is that of
the angle-weighted pseudonormal of the closest face, edge or vertex [Bærentzen and Aanæs 2005, Signed distance
computation using the angle weighted pseudonormal], which is correct at convex and concave edges.

`triangle_tree.py` builds the arrays. Memory: about 0.3 kB per triangle.

In a valley of the mesh, a vertex touches two or three faces. With the closest face alone, contact forces
would alternate between them. Additional faces are those with another local minimum of the distance, and those
that share a concave edge with the closest face. Both must lie above each other's plane, which excludes faces
across convex edges.

The thickness is the diameter of the largest inscribed ball that touches the surface. A ball that touches at a
point p with the outward normal n has its center at p - r n. It is inscribed if the depth of the center is r;
bisection finds the largest r.
"""

from __future__ import annotations

import math

import numpy as np

from supple.kernels import device_function, kernel

COUNT, LEVELS, SECOND, WEIGHT, ROUNDING_LENGTH, REGION_LENGTH, EDGE, HEADER = 0, 1, 2, 3, 4, 5, 6, 8
"""Header fields of a tree: number of triangles; levels of boxes below the root; offset in `values` of a
second tree, relative to this header, and its weight, 0 for none; rounding error of lengths [m]; length of
regions in which the distance has few kinks [m]; mean edge length [m]; header size."""

BOX = 6
"""Numbers per box: lower and upper x, y, z [m]."""

CORNERS, NORMALS = 9, 21
"""Numbers per triangle, in two blocks: the corners a, b, c [m] of all triangles; then the pseudonormals of
their seven features: 0 the face; 1, 2, 3 the edges ab, bc, ca; 4, 5, 6 the corners a, b, c."""

BOX_DISTANCE_ERROR = 0.1
"""Relative error of distances outside the bounding box, in units of the distance from the box. Triangles
closer by less may be skipped. Inside and on the box, distances are exact."""

MAX_SQUARED_DISTANCE = 1e300
"""Upper bound of squared distances; finite, since GPU kernels may assume finite math."""


@device_function
def boxes_at(first):
    """Offset of the boxes, less one box: the box of node i starts `BOX` i further; the root is node 1."""
    return first + HEADER - BOX


@device_function
def triangles_at(values, first):
    """Offset of the triangles of a tree."""
    return first + HEADER + BOX * ((2 << int(values[first + LEVELS])) - 1)


@device_function
def squared_distance_of_box(values, at, x, y, z):
    p = max(max(values[at] - x, x - values[at + 3]), 0.0)
    q = max(max(values[at + 1] - y, y - values[at + 4]), 0.0)
    r = max(max(values[at + 2] - z, z - values[at + 5]), 0.0)
    return p * p + q * q + r * r


@device_function
def _dot(ax, ay, az, bx, by, bz):
    return ax * bx + ay * by + az * bz


@device_function
def closest_of_triangle(values, at, x, y, z):
    """Closest point of a triangle [Ericson 2005, section 5.1.5].

    Returns:
        (s, feature, v, w): squared distance [m²], closest feature, and weights of the corners b and c.
    """
    ax, ay, az = values[at], values[at + 1], values[at + 2]
    ux, uy, uz = values[at + 3] - ax, values[at + 4] - ay, values[at + 5] - az
    vx, vy, vz = values[at + 6] - ax, values[at + 7] - ay, values[at + 8] - az
    px, py, pz = x - ax, y - ay, z - az
    d1, d2 = _dot(ux, uy, uz, px, py, pz), _dot(vx, vy, vz, px, py, pz)
    uu, uv, vv = _dot(ux, uy, uz, ux, uy, uz), _dot(ux, uy, uz, vx, vy, vz), _dot(vx, vy, vz, vx, vy, vz)
    d3, d4, d5, d6 = d1 - uu, d2 - uv, d1 - uv, d2 - vv
    feature, v, w = 0, 0.0, 0.0
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    if d1 <= 0.0 and d2 <= 0.0:
        feature = 4
    elif d3 >= 0.0 and d4 <= d3:
        feature, v = 5, 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        feature, v = 1, d1 / (d1 - d3)
    elif d6 >= 0.0 and d5 <= d6:
        feature, w = 6, 1.0
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        feature, w = 3, d2 / (d2 - d6)
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        feature, v = 2, 1.0 - w
    else:
        v, w = vb / (va + vb + vc), vc / (va + vb + vc)
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        height = _dot(px, py, pz, nx, ny, nz)
        return height * height / _dot(nx, ny, nz, nx, ny, nz), 0, v, w
    rx, ry, rz = px - v * ux - w * vx, py - v * uy - w * vy, pz - v * uz - w * vz
    return _dot(rx, ry, rz, rx, ry, rz), feature, v, w


@device_function
def closest_triangle(values, first, x, y, z):
    """Closest triangle of a mesh by depth-first traversal, nearer child first.

    The tree is complete: node i has the children 2i and 2i + 1, so bits of the path suffice for backtracking.

    Returns:
        Triangle, closest feature, and squared distance from the bounding box [m²].
    """
    count, levels = int(values[first + COUNT]), int(values[first + LEVELS])
    boxes, triangles = boxes_at(first), triangles_at(values, first)
    node, level, pending = 1, 0, 0
    outside = squared_distance_of_box(values, boxes + BOX, x, y, z)
    slack = BOX_DISTANCE_ERROR * math.sqrt(outside)
    best, limit, closest, feature = MAX_SQUARED_DISTANCE, MAX_SQUARED_DISTANCE, 0, 0
    while True:
        deeper = False
        if level < levels:
            left = squared_distance_of_box(values, boxes + 2 * BOX * node, x, y, z)
            right = squared_distance_of_box(values, boxes + 2 * BOX * node + BOX, x, y, z)
            turn = 1 if right < left else 0
            if min(left, right) < limit:
                pending = 2 * pending + (1 if max(left, right) < limit else 0)
                node, level, deeper = 2 * node + turn, level + 1, True
        else:
            leaf = node - (1 << levels)
            for m in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
                s, of, _, _ = closest_of_triangle(values, triangles + CORNERS * m, x, y, z)
                if s < best:
                    best, limit, closest, feature = s, s, m, of
            if slack > 0.0 and best < MAX_SQUARED_DISTANCE:
                reach = max(math.sqrt(best) - slack, 0.0)
                limit = reach * reach
        while not deeper:
            while level > 0 and pending & 1 == 0:
                pending, node, level = pending >> 1, node >> 1, level - 1
            if level == 0:
                return closest, feature, outside
            pending, node = pending - 1, node ^ 1
            deeper = squared_distance_of_box(values, boxes + BOX * node, x, y, z) < limit


@device_function
def _from_tree(values, first, x, y, z):
    """(d, n) of the mesh of one tree."""
    closest, feature, outside = closest_triangle(values, first, x, y, z)
    triangles = triangles_at(values, first)
    at = triangles + CORNERS * closest
    normal = triangles + CORNERS * int(values[first + COUNT]) + NORMALS * closest + 3 * feature
    nx, ny, nz = values[normal], values[normal + 1], values[normal + 2]
    px, py, pz = x - values[at], y - values[at + 1], z - values[at + 2]
    if feature == 0:
        height = _dot(px, py, pz, nx, ny, nz)
        side = -1.0 if outside > 0.0 and height < 0.0 else 1.0
        return side * height, side * nx, side * ny, side * nz
    s, _, v, w = closest_of_triangle(values, at, x, y, z)
    rx = px - v * (values[at + 3] - values[at]) - w * (values[at + 6] - values[at])
    ry = py - v * (values[at + 4] - values[at + 1]) - w * (values[at + 7] - values[at + 1])
    rz = pz - v * (values[at + 5] - values[at + 2]) - w * (values[at + 8] - values[at + 2])
    side = 1.0 if outside > 0.0 or _dot(rx, ry, rz, nx, ny, nz) >= 0.0 else -1.0
    length = math.sqrt(s)
    if length > values[first + ROUNDING_LENGTH]:
        return side * length, side * rx / length, side * ry / length, side * rz / length
    return side * length, nx, ny, nz


@device_function
def distance_of_mesh(values, first, x, y, z):
    """Signed distance of a point from a mesh, negative inside, and its gradient.

    Between two meshes with different triangles, one tree each, distances are interpolated linearly.

    Args:
        values: Trees of all meshes.
        first: Offset of the tree.
        x, y, z: Point in the frame of the mesh [m].

    Returns:
        (d, nx, ny, nz), d in m.
    """
    weight = values[first + WEIGHT]
    at, share, d, nx, ny, nz = first, 1.0 - weight, 0.0, 0.0, 0.0, 0.0
    for _ in range(2 if weight > 0.0 else 1):
        e, mx, my, mz = _from_tree(values, at, x, y, z)
        d, nx, ny, nz = d + share * e, nx + share * mx, ny + share * my, nz + share * mz
        at, share = first + int(values[first + SECOND]), weight
    if weight > 0.0:
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
        if length == 0.0:
            return d, 1.0, 0.0, 0.0
        return d, nx / length, ny / length, nz / length
    return d, nx, ny, nz


@device_function
def distance_of_bounds(values, first, x, y, z):
    """Distance of a point from the bounding box of a mesh, or the nearer of two [m]; 0 inside."""
    s = squared_distance_of_box(values, boxes_at(first) + BOX, x, y, z)
    if values[first + WEIGHT] > 0.0:
        second = first + int(values[first + SECOND])
        s = min(s, squared_distance_of_box(values, boxes_at(second) + BOX, x, y, z))
    return math.sqrt(s)


CREASE_SEARCH_DISTANCE, REACH = 0.25, 0.1
"""Largest distance of points for the search, and largest additional distance of faces, in mean edge lengths
of the mesh."""

DISTANCE_ROUNDING = 1e-12
"""Rounding error of squared distances, relative."""

CREASE_HEIGHT, COPLANAR_TOLERANCE = 1e-6, 1e-9
"""Height over the plane of another face above which an edge is concave, in mean edge lengths, and difference
to 1 of the cosine between coplanar normals."""


@device_function
def _dot_tuples(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@device_function
def _crease_plane(values, first, m, p, d, n, reach):
    """(s, h, normal) of the m-th triangle as an additional contact face.

    s is the squared distance of p, `MAX_SQUARED_DISTANCE` if the triangle does not qualify; h is the height
    of p over it. The closest face has the distance d and the normal n.
    """
    triangles, count = triangles_at(values, first), int(values[first + COUNT])
    at = triangles + CORNERS * m
    s, feature, v, w = closest_of_triangle(values, at, p[0], p[1], p[2])
    normal = triangles + CORNERS * count + NORMALS * m
    t = values[normal], values[normal + 1], values[normal + 2]
    a = values[at], values[at + 1], values[at + 2]
    h = (p[0] - a[0]) * t[0] + (p[1] - a[1]) * t[1] + (p[2] - a[2]) * t[2]
    tiny = values[first + ROUNDING_LENGTH]
    if s > reach * reach or _dot_tuples(t, n) > 1.0 - COPLANAR_TOLERANCE or _dot_tuples(t, t) == 0.0:
        return MAX_SQUARED_DISTANCE, h, t
    closest_point = p[0] - d * n[0], p[1] - d * n[1], p[2] - d * n[2]
    middle = (
        (a[0] + values[at + 3] + values[at + 6]) / 3.0 - closest_point[0],
        (a[1] + values[at + 4] + values[at + 7]) / 3.0 - closest_point[1],
        (a[2] + values[at + 5] + values[at + 8]) / 3.0 - closest_point[2],
    )
    back = (
        (closest_point[0] - a[0]) * t[0] + (closest_point[1] - a[1]) * t[1] + (closest_point[2] - a[2]) * t[2]
    )
    if _dot_tuples(middle, n) < CREASE_HEIGHT * values[first + EDGE] or back < -tiny:
        return MAX_SQUARED_DISTANCE, h, t
    edge = (
        a[0] + v * (values[at + 3] - a[0]) + w * (values[at + 6] - a[0]) - closest_point[0],
        a[1] + v * (values[at + 4] - a[1]) + w * (values[at + 7] - a[1]) - closest_point[1],
        a[2] + v * (values[at + 5] - a[2]) + w * (values[at + 8] - a[2]) - closest_point[2],
    )
    opposite = s - h * h <= DISTANCE_ROUNDING * s + (d * d if d < 0.0 else 0.0)
    shared = 1 <= feature <= 3 and abs(_dot_tuples(edge, n)) <= tiny
    return (s if opposite or shared or s <= tiny * tiny else MAX_SQUARED_DISTANCE), h, t


@device_function
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
    g, near, m, h, second_nearest, k = 0.0, MAX_SQUARED_DISTANCE, none, 0.0, MAX_SQUARED_DISTANCE, none
    if abs(d) > CREASE_SEARCH_DISTANCE * values[first + EDGE] or values[first + WEIGHT] > 0.0:
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
                other = near == MAX_SQUARED_DISTANCE or _dot_tuples(t, m) <= 1.0 - COPLANAR_TOLERANCE
                if s < near:
                    if other:
                        h, second_nearest, k = g, near, m
                    g, near, m = height, s, t
                elif s < second_nearest and other:
                    h, second_nearest, k = height, s, t
        while level > 0 and node & 1 == 1:
            node, level = node >> 1, level - 1
        if level == 0:
            return g, m, h, k
        node += 1


MAX_SAMPLES, BISECTIONS = 1024, 24
"""Maximum number of sampled triangles, and bisection steps."""

OPPOSITE_COSINE = -0.5
"""Cosine between the normals at two contact points of a ball below which they belong to opposite walls of a
thin part."""

THIN_SHARE, MIN_THICKNESS_RATIO = 0.05, 1e-3
"""Share of the surface area that is thinner than the thickness of thin parts, and lower limit of that
thickness relative to the largest thickness."""


@kernel
def _distances(values, points, result):
    for i in range(len(points)):
        d, nx, ny, nz = distance_of_mesh(values, 0, points[i, 0], points[i, 1], points[i, 2])
        result[i, 0], result[i, 1], result[i, 2], result[i, 3] = d, nx, ny, nz


def mesh_distances(numbers: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signed distances of points from a mesh.

    Args:
        numbers: Tree of the mesh, see `TriangleTree.numbers_at`.
        points: (k, 3) points in the frame of the mesh [m].

    Returns:
        Distances (k,) [m] and their gradients (k, 3).
    """
    result = np.empty((len(points), 4))
    _distances(numbers, np.ascontiguousarray(points, float), result)
    return result[:, 0], result[:, 1:]


def mesh_thickness(numbers: np.ndarray, corners: np.ndarray) -> tuple[float, float]:
    """Largest thickness of a closed mesh, and thickness of its thin parts.

    Args:
        numbers: Tree of the mesh, see `TriangleTree.numbers_at`.
        corners: (t, 3, 3) corners of the triangles [m].

    Returns:
        Both thicknesses [m].
    """
    chosen = corners[:: -(-len(corners) // MAX_SAMPLES)]
    areas = np.cross(chosen[:, 1] - chosen[:, 0], chosen[:, 2] - chosen[:, 0])
    area = np.linalg.norm(areas, axis=1)
    chosen, areas, area = chosen[area > 0], areas[area > 0], area[area > 0]
    normals, touching = areas / area[:, None], chosen.mean(axis=1)
    largest = 0.5 * float(np.ptp(corners.reshape(-1, 3), axis=0).max())
    low, high = np.zeros(len(area)), np.full(len(area), largest)
    for _ in range(BISECTIONS):
        r = 0.5 * (low + high)
        inside = -mesh_distances(numbers, touching - r[:, None] * normals)[0] >= (1 - 1e-6) * r
        low, high = np.where(inside, r, low), np.where(inside, high, r)
    beyond = mesh_distances(numbers, touching - 1.1 * low[:, None] * normals)[1]
    opposite = np.einsum("ki,ki->k", beyond, normals) < OPPOSITE_COSINE
    thick = 2 * float(low.max())
    order = np.argsort(low)
    share = np.cumsum((area * opposite)[order]) / area.sum()
    if share[-1] <= THIN_SHARE:
        return thick, thick
    thin = 2 * float(low[order[np.searchsorted(share, THIN_SHARE)]])
    return thick, max(thin, MIN_THICKNESS_RATIO * thick)
