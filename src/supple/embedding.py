"""Detailed surfaces that follow coarse bodies, and the surface that is seen of each body [PBCM section 5]."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from supple.checks import finite_rows, shown
from supple.meshes import Mesh, TriMesh
from supple.meshes.closest import closest_in_body

if TYPE_CHECKING:
    from supple.model import Model
    from supple.scene import Body, Scene, SceneFile

log = logging.getLogger("supple")

FAR = 1.0
"""A vertex is far outside when it is this many mean edges of the body's surface away from the body."""


class Skin(Protocol):
    """A surface that follows the n vertices of a body: its triangles (t, 3) do not change."""

    @property
    def n_points(self) -> int: ...

    @property
    def triangles(self) -> np.ndarray: ...

    @property
    def uv(self) -> np.ndarray | None:
        """Texture coordinates (t, 3, 2) of the corners of the triangles, where there are any."""
        ...

    def deform(self, positions: np.ndarray) -> np.ndarray:
        """Where the k points of the surface are when the body's vertices are at positions (n, 3) [m]."""
        ...

    def interpolate(self, values: np.ndarray) -> np.ndarray:
        """(k, ...) values at the points of the surface from values (n, ...) at the vertices."""
        ...

    @property
    def nearest(self) -> np.ndarray:
        """(k,) the vertex of the body that each point of the surface follows most."""
        ...


class Boundary:
    """The boundary of a mesh itself, without the vertices inside; all of it where it is a surface."""

    def __init__(self, mesh: Mesh) -> None:
        self.uv = mesh.uv
        self.vertices = mesh.surface_vertices
        self.triangles = np.searchsorted(self.vertices, mesh.surface).astype(np.int32)

    @property
    def n_points(self) -> int:
        return len(self.vertices)

    def deform(self, positions: np.ndarray) -> np.ndarray:
        return positions[self.vertices]

    def interpolate(self, values: np.ndarray) -> np.ndarray:
        return values[self.vertices]

    @property
    def nearest(self) -> np.ndarray:
        return self.vertices


class Embedding:
    """A surface tied to a mesh of tetrahedra, or of triangles, which contain nothing; made by `embed`.

    A point inside has the barycentric coordinates w of its tetrahedron, x(p) = Σ_j w_j x_j. A point outside
    is tied to the closest point of the boundary and keeps its offset d from there, which turns and stretches
    with the surface: x(p) = Σ_j w_j (x_j + M_j d). M_j is the mean, weighted by area, over the boundary
    triangles around vertex j of what takes their two edges and unit normal at rest to those now. So d keeps
    its length along the normal, as in PBCM; blending M where PBCM blends normals also carries the points
    whose closest point is on an edge.
    """

    def __init__(self, surface: TriMesh, mesh: Mesh) -> None:
        self.surface, self.mesh = surface, mesh
        vertices, weights = closest_in_body(surface.points, mesh)
        (k, corners), n = vertices.shape, mesh.n_vertices
        rows = np.arange(0, corners * k + 1, corners)
        self._weights = csr_array((weights.ravel(), vertices.ravel(), rows), shape=(k, n))
        offset = surface.points - self._weights @ mesh.points
        self.distance = np.linalg.norm(offset, axis=1)
        self._outside = np.flatnonzero(self.distance > 1e-9 * np.linalg.norm(mesh.size))
        self._offset = offset[self._outside]
        self._frames = self._weights[self._outside] @ _mean_over_triangles(mesh)
        self._rest_frames = np.linalg.inv(_frames(mesh.points, mesh.surface))

    @property
    def n_points(self) -> int:
        return self.surface.n_vertices

    @property
    def triangles(self) -> np.ndarray:
        """Triangles of the detailed surface, (t, 3)."""
        return self.surface.triangles

    @property
    def uv(self) -> np.ndarray | None:
        return self.surface.uv

    @property
    def outside(self) -> np.ndarray:
        """(k,) bool: whether a point lies outside the mesh at rest."""
        mask = np.zeros(len(self.distance), bool)
        mask[self._outside] = True
        return mask

    def deform(self, positions: np.ndarray) -> np.ndarray:
        """The surface's points (k, 3) [m] when the vertices of the mesh are at positions (n, 3) [m]."""
        positions = np.asarray(positions, float)
        if positions.shape != self.mesh.points.shape:
            raise ValueError(
                f"an embedding needs the positions of all vertices of its mesh, shape "
                f"{self.mesh.points.shape}; got shape {positions.shape}"
            )
        points = self._weights @ positions
        if len(self._outside):
            turned = _frames(positions, self.mesh.surface) @ self._rest_frames
            M = (self._frames @ turned.reshape(-1, 9)).reshape(-1, 3, 3)
            points[self._outside] += np.einsum("kij,kj->ki", M, self._offset)
        return points

    def interpolate(self, values: np.ndarray) -> np.ndarray:
        """Values (n,) or (n, c) at the vertices of the mesh, at the points of the surface; those outside
        have the value of their closest point."""
        return self._weights @ np.asarray(values, float)

    @property
    def nearest(self) -> np.ndarray:
        """(k,) the vertex of the mesh that each point of the surface follows most."""
        corners = self.mesh.corners
        most = self._weights.data.reshape(-1, corners).argmax(axis=1)
        return self._weights.indices.reshape(-1, corners)[np.arange(len(most)), most]

    def __repr__(self) -> str:
        return f"<Embedding: {self.surface!r} in {self.mesh!r}, {len(self._outside)} points outside>"


def embed(surface: TriMesh, body: Body | Mesh) -> Embedding:
    """Tie a detailed surface to a body's mesh at rest. Points far outside the mesh are warned about."""
    mesh = body if isinstance(body, Mesh) else getattr(body, "mesh", None)
    if not isinstance(mesh, Mesh):
        raise TypeError(f"a surface is embedded in a body of a scene or a mesh, got {shown(body)}")
    if not isinstance(surface, TriMesh):
        raise TypeError(
            f"a surface is a TriMesh, for example supple.load_surface('body.obj'); got {shown(surface)}"
        )
    embedding = Embedding(surface, mesh)
    far = np.flatnonzero(embedding.distance > FAR * _mean_edge(mesh))
    if len(far):
        worst = far[np.argmax(embedding.distance[far])]
        log.warning(
            "%d of %d points of a render surface are far outside their body, up to %.3g m (point %d, at rest "
            "at %s); they follow the nearest part of it. Are both in the same place and of the same size?",
            len(far),
            surface.n_vertices,
            embedding.distance[worst],
            worst,
            np.array2string(surface.points[worst], precision=4),
        )
    return embedding


def _frames(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(t, 3, 3): columns are two edges [m] and the unit normal of each triangle; 0 where it has no area."""
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    return np.stack([b - a, c - a, normal / np.where(length > 0, length, 1)], axis=2)


def _mean_over_triangles(mesh: Mesh) -> csr_array:
    """(n, t): takes values on the boundary triangles to means, weighted by area, around each vertex."""
    area = np.linalg.norm(TriMesh(mesh.points, mesh.surface).area_vectors, axis=1)
    triangle = np.repeat(np.arange(len(area)), 3)
    shape = (mesh.n_vertices, len(area))
    total = np.bincount(mesh.surface.ravel(), np.repeat(area, 3), mesh.n_vertices)
    share = area[triangle] / total[mesh.surface.ravel()]
    return csr_array((share, (mesh.surface.ravel(), triangle)), shape=shape)


def _mean_edge(mesh: Mesh) -> float:
    corners = mesh.points[mesh.surface]
    return float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean())


class Part(Protocol):
    """What is needed of a body to show it: its mesh, its vertices among those of the scene, its skin."""

    @property
    def name(self) -> str: ...
    @property
    def mesh(self) -> Mesh: ...
    @property
    def vertices(self) -> slice: ...
    @property
    def skin(self) -> Skin | None: ...
    @property
    def rest_measures(self) -> np.ndarray:
        """Volumes (m,) [m³] of its tetrahedra, or areas [m²] of its triangles, where nothing is stretched."""
        ...


def skin_of(body: Part) -> Skin:
    """The render surface of a body where it has one, else its boundary."""
    return body.skin or Boundary(body.mesh)


class Surface(NamedTuple):
    """points (k, 3) [m], triangles (t, 3), and which body each triangle belongs to, (t,)."""

    points: np.ndarray
    triangles: np.ndarray
    body: np.ndarray


class VisibleSurface:
    """The skins of several bodies as one surface, for positions (n, 3) [m] of all vertices of a scene."""

    def __init__(self, bodies: Sequence[Part]) -> None:
        self._vertices = [body.vertices for body in bodies]
        self._skins = [skin_of(body) for body in bodies]
        first = np.cumsum([0, *(skin.n_points for skin in self._skins[:-1])])
        self.triangles = np.concatenate([s.triangles + i for s, i in zip(self._skins, first, strict=True)])
        self.body = np.repeat(np.arange(len(self._skins)), [len(skin.triangles) for skin in self._skins])

    def _pairs(self) -> Iterable[tuple[slice, Skin]]:
        return zip(self._vertices, self._skins, strict=True)

    def points(self, positions: np.ndarray) -> np.ndarray:
        return np.concatenate([skin.deform(positions[vertices]) for vertices, skin in self._pairs()])

    def interpolate(self, values: np.ndarray) -> np.ndarray:
        return np.concatenate([skin.interpolate(values[vertices]) for vertices, skin in self._pairs()])

    def pick(self, values: np.ndarray) -> np.ndarray:
        """(k, ...) the values of the vertices that points follow most, for those that cannot be blended."""
        return np.concatenate([values[vertices][skin.nearest] for vertices, skin in self._pairs()])


def surface_of(scene: Scene | SceneFile | Model, positions: np.ndarray) -> Surface:
    """What is seen of a scene at positions (n, 3) [m]: the skins of its bodies, or else their boundaries.

    For many frames make a `VisibleSurface(scene.bodies)` once.
    """
    bodies = getattr(getattr(scene, "scene", scene), "bodies", None)
    if not bodies:
        raise TypeError(f"a scene with bodies is needed, or the model of a result; got {shown(scene)}")
    positions = finite_rows("positions", positions, bodies[-1].vertices.stop)
    visible = VisibleSurface(bodies)
    return Surface(visible.points(positions), visible.triangles, visible.body)
