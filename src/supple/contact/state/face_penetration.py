"""Overlaps of obstacles that vertices do not show: with faces of bodies, and with pinned parts.

A mesh with edges e whose vertices lie on a round obstacle of radius R cuts it by e²/(8 R) and more, and a
sharp one by up to e/√8. That is discretization error, and vertices still carry the contact force. An obstacle
has passed a face in four cases:

- No vertex of the face is closer than an eighth of its longest edge, so that nothing holds the face, and the
  obstacle is deeper than a hundredth of that edge or a quarter of its own thin parts.
- The face is more than halfway to the middle of the obstacle, and deeper than a hundredth of its longest
  edge, however many vertices touch it.
- The face is deeper than half of its longest edge. Faces between vertices on both sides of a wedge are not.
- A thin part, such as a fin, stands through the face by more than an eighth of its longest edge: the face is
  halfway between opposite walls, and on its normal both ends of the obstacle are that far.

Pinned vertices do not push rigid bodies. A rigid body overlaps a pinned part if a fully pinned face of its
surface is deeper inside than a hundredth of the mean edge, or if its center is in a fully pinned tetrahedron.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, cross, dot, scale, sub
from supple.collision import distance
from supple.collision.obstacles.face_distance import (
    DEPTH_STEPS,
    bound_distance,
    can_be_deepest_inside_face,
    deepest,
    longest,
    thicknesses,
    thin_parts,
)
from supple.collision.obstacles.mesh_distance import OPPOSITE_COSINE
from supple.contact.state.contact_report import FacePenetration, IntersectedFace, PinnedOverlap
from supple.contact.state.obstacle_kernels import vector_at
from supple.kernels import atomic_add, device_function, kernel, member_of, vector_offset
from supple.model.model import Model
from supple.problem.vertex_kernels import apply_operation, for_each

if TYPE_CHECKING:
    from supple.contact.state.obstacle_contact import Contacts


MIN_DEPTH, RESOLVED_DISTANCE, MAX_DEPTH, HALFWAY_DEPTH = 0.01, 0.125, 0.5, 0.25
"""Thresholds of depth and distance.

MIN_DEPTH, RESOLVED_DISTANCE and MAX_DEPTH are fractions of the longest edge of a face. MIN_DEPTH is the depth
above which an obstacle counts, equal to the thickness of weak contact; less in thin parts. RESOLVED_DISTANCE
is the distance within which vertices resolve an obstacle; vertices on a round obstacle exceed it only if its
radius is less than an edge. MAX_DEPTH is the depth of a face between vertices on the two walls of a wedge,
the sharper the nearer. HALFWAY_DEPTH is half of the way to the middle of an obstacle, as a fraction of its
thickness.
"""

EXTENT_STEPS = 64
"""Smallest steps along the normal of a face, per `RESOLVED_DISTANCE`."""

RESOLVING_EDGE = 0.5
"""Edge length that resolves an obstacle, as a fraction of its thickness or of the present edge."""

DEPTH, SHAPE, EDGE, PASSED, FIELDS = range(5)
"""Columns of the result per face: depth [m], shape, longest edge [m], and 1 if the obstacle has passed it."""


class Faces(NamedTuple):
    """Operation that measures the depth of obstacles in triangles.

    Attributes:
        u: Displacements [m].
        rest: (n + 1, 4) rest positions [m].
        free: (n,) 0 for vertices that are ignored.
        triangles: (t, 3) vertices.
        shapes: Obstacle shapes.
        thick: (r,) thickness of the shapes [m].
        thin: (r,) thickness of their thin parts [m].
        results: (batch t, FIELDS) deepest shape of each triangle, written.
        count: (batch,) number of triangles with a shape inside, incremented.
    """

    u: Any
    rest: Any
    free: Any
    triangles: Any
    shapes: Any
    thick: Any
    thin: Any
    results: Any
    count: Any


class Corner(NamedTuple):
    """Corner of a triangle.

    Attributes:
        x: Position, a 3-tuple [m].
        free: False if the vertex is ignored.
    """

    x: Any
    free: Any


@device_function
def _corner(faces, item, i, j):
    v = faces.triangles[i, j]
    return Corner(
        add(vector_at(faces.rest, v), vector_at(faces.u, v + vector_offset(item))), faces.free[v] != 0
    )


@device_function
def _nearest(shapes, k, a, b, c):
    """Smallest distance of the corners from a shape [m], and True if an ignored corner is inside."""
    p, _ = distance(shapes, k, a.x)
    q, _ = distance(shapes, k, b.x)
    r, _ = distance(shapes, k, c.x)
    ignored_inside = (p < 0.0 and not a.free) or (q < 0.0 and not b.free) or (r < 0.0 and not c.free)
    return min(min(p, q), r), ignored_inside


@apply_operation.of(Faces)
def _measure_face(faces, item, i):
    at = member_of(item) * len(faces.triangles) + i
    a, b, c = _corner(faces, item, i, 0), _corner(faces, item, i, 1), _corner(faces, item, i, 2)
    edge = longest(a.x, b.x, c.x)
    worst, shape, through = 0.0, -1, 0.0
    for k in range(len(faces.shapes.rows)):
        if can_be_deepest_inside_face(faces.shapes, k):
            depth, passed = _depth(faces, k, a, b, c, edge)
            if passed > through or (passed == through and depth > worst):
                worst, shape, through = depth, k, passed
    faces.results[at, DEPTH], faces.results[at, SHAPE] = worst, 1.0 * shape
    faces.results[at, EDGE], faces.results[at, PASSED] = edge, through
    if shape >= 0:
        atomic_add(faces.count, member_of(item), 1)


@device_function
def _depth(faces, k, a, b, c, edge):
    """Depth of the k-th shape in a face beyond its corners.

    The deepest point is searched if the shape may have passed the face. If the corners resolve the shape, its
    depth at the middle of the face is used.

    Returns:
        (depth [m], passed); 0 if it is no deeper than at the corners.
    """
    shapes, halfway = faces.shapes, HALFWAY_DEPTH * faces.thin[k]
    min_depth = min(MIN_DEPTH * edge, halfway)
    middle, least = bound_distance(shapes, k, a.x, b.x, c.x)
    if least > -min_depth:
        return 0.0, 0.0
    near, ignored_inside = _nearest(shapes, k, a, b, c)
    limit = min(near, 0.0) - min_depth
    if ignored_inside:
        return 0.0, 0.0
    second, third = 1.0 / 3.0, 1.0 / 3.0
    if near > RESOLVED_DISTANCE * edge or least < -halfway:
        at = deepest(shapes, k, a.x, b.x, c.x, limit, DEPTH_STEPS)
        if at.distance < middle:
            middle, second, third = at.distance, at.second, at.third
    if middle >= limit:
        return 0.0, 0.0
    if near > RESOLVED_DISTANCE * edge or middle < -MAX_DEPTH * edge:
        return -middle, 1.0
    if middle < -max(HALFWAY_DEPTH * faces.thick[k], MIN_DEPTH * edge):
        return -middle, 1.0
    ab, ac = sub(b.x, a.x), sub(c.x, a.x)
    x = add(a.x, add(scale(second, ab), scale(third, ac)))
    return -middle, 1.0 if _stands_through(shapes, k, x, cross(ab, ac), edge) else 0.0


@device_function
def _stands_through(shapes, k, x, across, edge):
    """True if a thin part stands through a face at its point x, given a normal of the face of any length."""
    d, n = distance(shapes, k, x)
    _, m = distance(shapes, k, add(x, scale(d, n)))
    area = math.sqrt(dot(across, across))
    if dot(n, m) > OPPOSITE_COSINE or area == 0.0:
        return False
    extent = RESOLVED_DISTANCE * edge
    for side in range(2):
        way = scale((1.0 - 2.0 * side) / area, across)
        s, inside = 0.0, True
        while inside and s < extent:
            depth, _ = distance(shapes, k, add(x, scale(s, way)))
            inside = depth < 0.0
            s += max(-depth, extent / EXTENT_STEPS)
        if not inside:
            return False
    return True


@kernel
def measure_faces(team, faces):
    for_each(team, 0, (len(faces.triangles),), (faces,))


def surface_triangles(model: Model) -> np.ndarray:
    """(t, 3) surface triangles of all bodies of a model with at least one free vertex."""
    own = [np.asarray(body.mesh.surface) + body.vertices.start for body in model.bodies]
    every = np.concatenate([np.empty((0, 3), np.int64), *own])
    return np.ascontiguousarray(every[model.free[every].any(axis=1)], np.int32)


class FacePenetrationSearch:
    """Search for faces with obstacles inside."""

    def __init__(self, contacts: Contacts) -> None:
        model, device, obstacles = contacts.model, contacts.device, contacts.obstacles
        assert obstacles is not None
        self._device, self._obstacle, self._model = device, obstacles.obstacle, model
        self._names = obstacles.names
        thick = thicknesses(contacts.shapes)
        triangles = surface_triangles(model) if np.isfinite(thick).any() else np.empty((0, 3), np.int32)
        results = device.zeros((device.batch_size * len(triangles), FIELDS), np.dtype(float))
        count = device.zeros((device.batch_size,), np.dtype(np.int64))
        self._faces = Faces(
            contacts.states.u,
            contacts.rest,
            model.free.astype(np.int32),
            triangles,
            contacts.shapes,
            thick,
            thin_parts(contacts.shapes),
            results,
            count,
        )

    def search(self, batch_size: int) -> list[list[FacePenetration]]:
        """Find the deepest faces in each obstacle, for each batch member and obstacle."""
        nothing = [[FacePenetration(name, 0, 0.0) for name in self._names] for _ in range(batch_size)]
        faces, device = self._faces, self._device
        if not len(faces.triangles):
            return nothing
        faces.count[:] = 0
        device.upload(faces.count)
        device.run(measure_faces, 1, faces)
        device.download(faces.count)
        if not faces.count.any():
            return nothing
        device.download(faces.results)
        by_member = faces.results.reshape(batch_size, -1, FIELDS)
        return [[self._of_obstacle(each, k) for k in range(len(self._names))] for each in by_member]

    def _of_obstacle(self, results: np.ndarray, obstacle: int) -> FacePenetration:
        name, shape = self._names[obstacle], results[:, SHAPE].astype(int)
        own = np.flatnonzero((shape >= 0) & (self._obstacle[shape] == obstacle))
        depth = float(results[own, DEPTH].max(initial=0.0))
        through = own[results[own, PASSED] > 0]
        if not len(through):
            return FacePenetration(name, len(own), depth)
        face = int(through[results[through, DEPTH].argmax()])
        vertex, edge = int(self._faces.triangles[face, 0]), float(results[face, EDGE])
        body = next(name for name, v in self._model.body_vertices if v.start <= vertex < v.stop)
        resolving_edge = RESOLVING_EDGE * min(edge, float(self._faces.thin[shape[face]]))
        intersection = IntersectedFace(body, float(results[face, DEPTH]), edge, resolving_edge)
        return FacePenetration(name, len(own), depth, intersection)


def face_search_of(contacts: Contacts) -> FacePenetrationSearch:
    """Face search of the contacts, created on first use and cached while the batch size is unchanged."""
    if contacts.face_search is None:
        contacts.face_search = FacePenetrationSearch(contacts)
    return contacts.face_search


@kernel
def _measure_depths(shapes, k, corners, depths):
    """Depths (t,) [m] of the k-th shape in triangles with corners (t, 3, 3) [m]; 0 outside."""
    for i in range(len(corners)):
        a = (corners[i, 0, 0], corners[i, 0, 1], corners[i, 0, 2])
        b = (corners[i, 1, 0], corners[i, 1, 1], corners[i, 1, 2])
        c = (corners[i, 2, 0], corners[i, 2, 1], corners[i, 2, 2])
        depths[i] = -deepest(shapes, k, a, b, c, 0.0, DEPTH_STEPS).distance


@kernel
def _depth_at(shapes, k, x, depths):
    """Depth (1,) [m] of a point x (3,) in the k-th shape."""
    d, _ = distance(shapes, k, (x[0], x[1], x[2]))
    depths[0] = -d


def find_pinned_overlaps(contacts: Contacts) -> list[tuple[int, PinnedOverlap]]:
    """Return the deepest overlap of every rigid body with pinned parts, with its obstacle index."""
    model, states = contacts.model, contacts.states
    if not contacts.rigid or contacts.obstacles is None or model.free.all():
        return []
    contacts.device.download(states.u)
    x = model.rest + states.vectors(states.u)[0].astype(float)
    faces, tets = _pinned_cells(contacts)
    overlaps = []
    for motion in contacts.rigid:
        row = motion.body.row
        depths = np.zeros(len(faces))
        _measure_depths(contacts.shapes, row, x[faces], depths)
        containing = tets[_contains(x[tets], motion.center)]
        depth, vertex = 0.0, -1
        if len(faces) and depths.max() > MIN_DEPTH * model.mean_edge:
            depth, vertex = float(depths.max()), int(faces[depths.argmax(), 0])
        if len(containing):
            inside = np.zeros(1)
            _depth_at(contacts.shapes, row, motion.center, inside)
            depth, vertex = max(depth, float(inside[0])), int(containing[0, 0])
        if vertex >= 0:
            body = next(name for name, own in model.body_vertices if own.start <= vertex < own.stop)
            overlaps.append((int(contacts.obstacles.obstacle[row]), PinnedOverlap(body, depth)))
    return overlaps


def _pinned_cells(contacts: Contacts) -> tuple[np.ndarray, np.ndarray]:
    """(t, 3) surface triangles and (m, 4) tetrahedra whose corners are all pinned."""
    model = contacts.model
    own = [np.asarray(body.mesh.surface) + body.vertices.start for body in model.bodies]
    faces = np.concatenate([np.empty((0, 3), np.int64), *own])
    pinned = ~model.free
    return faces[pinned[faces].all(axis=1)], model.tets[pinned[model.tets].all(axis=1)]


def _contains(corners: np.ndarray, point: np.ndarray) -> np.ndarray:
    """(m,) True if a tetrahedron with corners (m, 4, 3) [m] contains a point (3,) [m]."""
    edges = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    is_regular = np.abs(np.linalg.det(edges)) > 0
    weights = np.full((len(corners), 3), -1.0)
    weights[is_regular] = np.linalg.solve(edges[is_regular], (point - corners[is_regular, 0])[..., None])[
        ..., 0
    ]
    return (weights >= 0).all(axis=1) & (weights.sum(axis=1) <= 1)
