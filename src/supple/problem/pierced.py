"""Where obstacles are deeper in the faces of bodies than in their vertices.

A mesh whose vertices lie on something round of radius R cuts it by e²/(8 R) and more, and something sharp by
up to e/3, e being its edges: that is as fine as the mesh is, and vertices do feel what pushes them. Something
has passed a face where none of the face's vertices is nearer than an eighth of its longest edge, so that
nothing holds the face, and it is deeper than a hundredth of that edge or a quarter of its own thin parts; or
where more than half of the way to the middle of the obstacle is inside, however many vertices touch it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add
from supple.contact import distance
from supple.contact.faces import DEPTHS, bounded, bulges, deepest, longest, thicknesses, thin_parts
from supple.kernels import copy_of, count_up, kernel, offset_of, physics
from supple.model import Model
from supple.problem.contact_records import vector_at
from supple.problem.records import act, for_each

if TYPE_CHECKING:
    from supple.problem.contacts import Contacts

SLIGHT, FELT, HALFWAY = 0.01, 0.125, 0.25
"""Parts of the longest edge of a face: how deep an obstacle must be in it to count, as weak contact is thick,
and how near its vertices must be to feel it: by more a mesh of vertices on something round cuts it only where
its radius is less than an edge. Part of the thickness of an obstacle that is half of the way to its
middle."""

FINE = 0.5
"""Part of the thickness of an obstacle, or of an edge, that edges must not exceed for vertices to feel it."""

DEPTH, SHAPE, EDGE, PASSED, FIELDS = range(5)
"""Where a face has its depth [m], the number of the shape, its longest edge [m], and 1 where it is passed."""


class Faces(NamedTuple):
    """Operation on triangles (t, 3) with vertices at rest (n + 1, 4) + u [m]; free (n,): 0 for vertices that
    do not count; thick (r,) [m] of the shapes, and thin (r,) [m] of their thin parts; found (copies t,
    FIELDS) gets what is deepest in each; count (copies,): in how many there is something."""

    u: Any
    rest: Any
    free: Any
    triangles: Any
    shapes: Any
    thick: Any
    thin: Any
    found: Any
    count: Any


class Corner(NamedTuple):
    """Where a vertex is (3,) [m], and whether it counts."""

    x: Any
    free: Any


@physics
def _corner(faces, place, i, j):
    v = faces.triangles[i, j]
    return Corner(add(vector_at(faces.rest, v), vector_at(faces.u, v + offset_of(place))), faces.free[v] != 0)


@physics
def _nearest(shapes, k, a, b, c):
    """The least distance [m] of corners, and whether one that does not count is inside."""
    p, _ = distance(shapes, k, a.x)
    q, _ = distance(shapes, k, b.x)
    r, _ = distance(shapes, k, c.x)
    held = (p < 0.0 and not a.free) or (q < 0.0 and not b.free) or (r < 0.0 and not c.free)
    return min(min(p, q), r), held


@act.of(Faces)
def _look(faces, place, i):
    at = copy_of(place) * len(faces.triangles) + i
    a, b, c = _corner(faces, place, i, 0), _corner(faces, place, i, 1), _corner(faces, place, i, 2)
    edge = longest(a.x, b.x, c.x)
    worst, shape, through = 0.0, -1, 0.0
    for k in range(len(faces.shapes.rows)):
        if bulges(faces.shapes, k):
            depth, passed = _depth(faces, k, a, b, c, edge)
            if passed > through or (passed == through and depth > worst):
                worst, shape, through = depth, k, passed
    faces.found[at, DEPTH], faces.found[at, SHAPE] = worst, 1.0 * shape
    faces.found[at, EDGE], faces.found[at, PASSED] = edge, through
    if shape >= 0:
        count_up(faces.count, copy_of(place), 1)


@physics
def _depth(faces, k, a, b, c, edge):
    """(depth, passed) of the k-th shape in a face, 0 where it is no deeper than in its corners. What may have
    passed is looked for; what corners feel has the depth that it has at the middle."""
    shapes, slight = faces.shapes, min(SLIGHT * edge, HALFWAY * faces.thin[k])
    middle, least = bounded(shapes, k, a.x, b.x, c.x)
    if least > -slight:
        return 0.0, 0.0
    near, held = _nearest(shapes, k, a, b, c)
    if near <= FELT * edge:
        slight = SLIGHT * edge
    limit, halfway = min(near, 0.0) - slight, HALFWAY * faces.thick[k]
    if held:
        return 0.0, 0.0
    if near > FELT * edge or least < -halfway:
        middle = min(middle, deepest(shapes, k, a.x, b.x, c.x, limit, DEPTHS).distance)
    if middle >= limit:
        return 0.0, 0.0
    return -middle, 1.0 if near > FELT * edge or middle < -halfway else 0.0


@kernel
def look_at_faces(team, faces):
    for_each(team, 0, (len(faces.triangles),), (faces,))


@dataclass(frozen=True)
class Passed:
    """A face of a body that an obstacle has passed: how deep that is inside [m]; the longest edge of the face
    [m], and edges [m] that would be short enough for vertices to feel the obstacle."""

    body: str
    depth: float
    edge: float
    finer: float

    def sentence(self, obstacle: str) -> str:
        return (
            f"obstacle {obstacle!r} is {self.depth:.2g} m deep in a face of {self.body!r} with edges of "
            f"{self.edge:.2g} m: edges below {self.finer:.2g} m would feel it, or make the obstacle a body, "
            "and contact = 'barrier'"
        )


def surface_triangles(model: Model) -> np.ndarray:
    """(t, 3) of all bodies that a model knows, but for those that cannot move."""
    own = [np.asarray(body.mesh.surface) + body.vertices.start for body in model.bodies]
    every = np.concatenate([np.empty((0, 3), np.int64), *own])
    return np.ascontiguousarray(every[model.free[every].any(axis=1)], np.int32)


class Piercing:
    """Looks for faces that obstacles are in, with the memory that it takes."""

    def __init__(self, contacts: Contacts) -> None:
        model, device, obstacles = contacts.model, contacts.device, contacts.obstacles
        assert obstacles is not None
        self._device, self._obstacle, self._model = device, obstacles.obstacle, model
        thick = thicknesses(contacts.shapes)
        triangles = surface_triangles(model) if np.isfinite(thick).any() else np.empty((0, 3), np.int32)
        found = device.zeros((device.copies * len(triangles), FIELDS), np.dtype(float))
        count = device.zeros((device.copies,), np.dtype(np.int64))
        self._faces = Faces(
            contacts.states.u,
            contacts.rest,
            model.free.astype(np.int32),
            triangles,
            contacts.shapes,
            thick,
            thin_parts(contacts.shapes),
            found,
            count,
        )

    def found(self, copies: int, obstacles: int) -> list[list[tuple[float, Passed | None]]]:
        """Of each copy and obstacle: the depth [m] of the deepest face in it, 0 where none is deeper than its
        vertices, and the deepest that it has passed."""
        nothing: list[list[tuple[float, Passed | None]]] = [[(0.0, None)] * obstacles for _ in range(copies)]
        faces, device = self._faces, self._device
        if not len(faces.triangles):
            return nothing
        faces.count[:] = 0
        device.push(faces.count)
        device.run(look_at_faces, 1, faces)
        device.pull(faces.count)
        if not faces.count.any():
            return nothing
        device.pull(faces.found)
        of_copies = faces.found.reshape(copies, -1, FIELDS)
        return [[self._of_obstacle(each, k) for k in range(obstacles)] for each in of_copies]

    def _of_obstacle(self, found: np.ndarray, obstacle: int) -> tuple[float, Passed | None]:
        shape = found[:, SHAPE].astype(int)
        own = np.flatnonzero((shape >= 0) & (self._obstacle[shape] == obstacle))
        depth = float(found[own, DEPTH].max(initial=0.0))
        through = own[found[own, PASSED] > 0]
        if not len(through):
            return depth, None
        face = int(through[found[through, DEPTH].argmax()])
        vertex, edge = int(self._faces.triangles[face, 0]), float(found[face, EDGE])
        body = next(name for name, v in self._model.body_vertices if v.start <= vertex < v.stop)
        finer = FINE * min(edge, float(self._faces.thin[shape[face]]))
        return depth, Passed(body, float(found[face, DEPTH]), edge, finer)


def piercing_of(contacts: Contacts) -> Piercing:
    """What looks at faces for contacts, made when somebody asks for it and kept as long as there are as many
    copies."""
    if contacts.piercing is None:
        contacts.piercing = Piercing(contacts)
    return contacts.piercing
