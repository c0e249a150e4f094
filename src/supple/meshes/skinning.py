"""Render surfaces embedded in simulation meshes, and the visible surface of each body [PBCM section 5]."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from supple.meshes import Mesh, TriMesh
from supple.meshes.proximity_queries import closest_in_body
from supple.support.arguments import check_vectors, format_value
from supple.support.keywords import suggest_keywords

if TYPE_CHECKING:
    from supple.model.model import Model
    from supple.scene import Body, Scene, SceneFile

log = logging.getLogger("supple")

MAX_RELATIVE_DISTANCE = 1.0
"""Distance beyond which an embedded point triggers a warning, in mean edge lengths of the body's surface."""


class Skin(Protocol):
    """Surface with constant triangles that follows the n vertices of a body."""

    @property
    def n_points(self) -> int: ...

    @property
    def triangles(self) -> np.ndarray: ...

    @property
    def uv(self) -> np.ndarray | None:
        """Texture coordinates (t, 3, 2) of the triangle corners, or None."""
        ...

    def deform(self, positions: np.ndarray) -> np.ndarray:
        """Surface points (k, 3) [m] for vertex positions (n, 3) [m] of the body."""
        ...

    def interpolate(self, values: np.ndarray) -> np.ndarray:
        """Interpolate vertex values (n, ...) to surface points (k, ...)."""
        ...

    @property
    def nearest(self) -> np.ndarray:
        """(k,) vertex of the body with the largest weight for each surface point."""
        ...


class Boundary:
    """Mesh boundary without interior vertices; for surface meshes, the whole mesh."""

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
    """Render surface embedded in a tetrahedral or triangle mesh; created by `embed`.

    A point inside a tetrahedron has its barycentric coordinates w: x(p) = Σ_j w_j x_j. A point outside is
    tied to the closest point of the boundary. Its rest offset d from there rotates and stretches with the
    surface: x(p) = Σ_j w_j (x_j + M_j d). M_j is an area-weighted mean over the boundary triangles around
    vertex j of the maps that take their two edges and unit normal from rest to the deformed state. So d keeps
    its length along the normal, as in PBCM; blending M where PBCM blends normals also carries the points
    whose closest point is on an edge. All points of a triangle mesh are treated as outside.

    Args:
        surface: Render surface with k points at rest [m].
        mesh: Simulation mesh with n vertices.

    Attributes:
        surface: Render surface at rest.
        mesh: Simulation mesh.
        distance: (k,) distance of each point from the mesh at rest [m].
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
        """Number k of surface points."""
        return self.surface.n_vertices

    @property
    def triangles(self) -> np.ndarray:
        """(t, 3) triangles of the render surface."""
        return self.surface.triangles

    @property
    def uv(self) -> np.ndarray | None:
        """Texture coordinates (t, 3, 2) of the triangle corners, or None."""
        return self.surface.uv

    @property
    def outside(self) -> np.ndarray:
        """(k,) bool: True for points outside the mesh at rest."""
        mask = np.zeros(len(self.distance), bool)
        mask[self._outside] = True
        return mask

    def deform(self, positions: np.ndarray) -> np.ndarray:
        """Deform the render surface.

        Args:
            positions: (n, 3) vertex positions of the mesh [m].

        Returns:
            (k, 3) points of the surface [m].

        Raises:
            ValueError: The positions have the wrong shape.
        """
        positions = np.asarray(positions, float)
        if positions.shape != self.mesh.points.shape:
            raise ValueError(
                "positions must be those of all vertices of the embedded mesh, shape "
                f"{self.mesh.points.shape}; got shape {positions.shape}"
            )
        points = self._weights @ positions
        if len(self._outside):
            turned = _frames(positions, self.mesh.surface) @ self._rest_frames
            M = (self._frames @ turned.reshape(-1, 9)).reshape(-1, 3, 3)
            points[self._outside] += np.einsum("kij,kj->ki", M, self._offset)
        return points

    def interpolate(self, values: np.ndarray) -> np.ndarray:
        """Interpolate vertex values to the render surface.

        Args:
            values: (n,) or (n, c) values at the vertices of the mesh.

        Returns:
            (k,) or (k, c) values at the surface points; points outside the mesh have the value of their
            closest point.
        """
        return self._weights @ np.asarray(values, float)

    @property
    def nearest(self) -> np.ndarray:
        """(k,) mesh vertex with the largest weight for each surface point."""
        corners = self.mesh.corners
        most = self._weights.data.reshape(-1, corners).argmax(axis=1)
        return self._weights.indices.reshape(-1, corners)[np.arange(len(most)), most]

    def __repr__(self) -> str:
        return f"<Embedding: {self.surface!r} in {self.mesh!r}, {len(self._outside)} points outside>"


@suggest_keywords
def embed(surface: TriMesh, body: Body | Mesh) -> Embedding:
    """Embed a render surface in a body's mesh at rest.

    Points far outside the mesh are reported by a warning.

    Args:
        surface: Render surface [m].
        body: Body of a scene, or mesh.

    Returns:
        The embedding.

    Raises:
        TypeError: The surface is not a `TriMesh`, or the body has no mesh.
    """
    mesh = body if isinstance(body, Mesh) else getattr(body, "mesh", None)
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f"a surface must be embedded in a body of a scene or in a mesh, got {format_value(body)}"
        )
    if not isinstance(surface, TriMesh):
        raise TypeError(
            "surface must be a TriMesh, for example supple.meshes.load_surface('body.obj'); got "
            f"{format_value(surface)}"
        )
    embedding = Embedding(surface, mesh)
    distant = np.flatnonzero(embedding.distance > MAX_RELATIVE_DISTANCE * _mean_edge(mesh))
    if len(distant):
        worst = distant[np.argmax(embedding.distance[distant])]
        log.warning(
            "%d of %d points of a render surface are far outside their body, up to %.3g m (point "
            "%d, at rest at %s); they follow its nearest part. Check that both have the same "
            "position and scale.",
            len(distant),
            surface.n_vertices,
            embedding.distance[worst],
            worst,
            np.array2string(surface.points[worst], precision=4),
        )
    return embedding


def _frames(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(t, 3, 3) matrices with two edges [m] and the unit normal of each triangle as columns.

    The normal is 0 for triangles without area.
    """
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    return np.stack([b - a, c - a, normal / np.where(length > 0, length, 1)], axis=2)


def _mean_over_triangles(mesh: Mesh) -> csr_array:
    """(n, t) matrix of area-weighted means over the boundary triangles around each vertex."""
    area = np.linalg.norm(TriMesh(mesh.points, mesh.surface).area_vectors, axis=1)
    triangle = np.repeat(np.arange(len(area)), 3)
    shape = (mesh.n_vertices, len(area))
    total = np.bincount(mesh.surface.ravel(), np.repeat(area, 3), mesh.n_vertices)
    share = area[triangle] / total[mesh.surface.ravel()]
    return csr_array((share, (mesh.surface.ravel(), triangle)), shape=shape)


def _mean_edge(mesh: Mesh) -> float:
    """Mean edge length of the boundary triangles [m]."""
    corners = mesh.points[mesh.surface]
    return float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean())


class Part(Protocol):
    """Interface of a body for rendering: mesh, vertices within the scene, and render surface."""

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
        """(m,) rest volumes [m³] of tetrahedra, or rest areas [m²] of triangles, in the stress-free state."""
        ...


def skin_of(body: Part) -> Skin:
    """Return a body's render surface, or else its boundary."""
    return body.skin or Boundary(body.mesh)


class Surface(NamedTuple):
    """Visible surface of a scene.

    Attributes:
        points: (k, 3) positions [m].
        triangles: (t, 3) point indices.
        body: (t,) number of each triangle's body.
    """

    points: np.ndarray
    triangles: np.ndarray
    body: np.ndarray


class VisibleSurface:
    """Union of several bodies' visible surfaces.

    Args:
        bodies: Bodies of a scene with n vertices.

    Attributes:
        triangles: (t, 3) point indices.
        body: (t,) number of each triangle's body.
    """

    def __init__(self, bodies: Sequence[Part]) -> None:
        self._vertices = [body.vertices for body in bodies]
        self._skins = [skin_of(body) for body in bodies]
        first = np.cumsum([0, *(skin.n_points for skin in self._skins[:-1])])
        self.triangles = np.concatenate([s.triangles + i for s, i in zip(self._skins, first, strict=True)])
        self.body = np.repeat(np.arange(len(self._skins)), [len(skin.triangles) for skin in self._skins])

    def _pairs(self) -> Iterable[tuple[slice, Skin]]:
        return zip(self._vertices, self._skins, strict=True)

    def points(self, positions: np.ndarray) -> np.ndarray:
        """Surface points (k, 3) [m] for vertex positions (n, 3) [m] of the scene."""
        return np.concatenate([skin.deform(positions[vertices]) for vertices, skin in self._pairs()])

    def interpolate(self, values: np.ndarray) -> np.ndarray:
        """Interpolate vertex values (n, ...) to surface points (k, ...)."""
        return np.concatenate([skin.interpolate(values[vertices]) for vertices, skin in self._pairs()])

    def pick(self, values: np.ndarray) -> np.ndarray:
        """(k, ...) values of the vertices with the largest weights, for values that cannot be blended."""
        return np.concatenate([values[vertices][skin.nearest] for vertices, skin in self._pairs()])


@suggest_keywords
def visible_surface(scene: Scene | SceneFile | Model, positions: np.ndarray) -> Surface:
    """Return a scene's visible surface: render surfaces or else boundaries of all bodies.

    For many frames create a `VisibleSurface(scene.bodies)` once.

    Args:
        scene: Scene, scene file, or model of a result.
        positions: (n, 3) positions of all vertices [m].

    Returns:
        Points (k, 3) [m], triangles (t, 3), and the body number (t,) of each triangle.

    Raises:
        TypeError: The scene has no bodies.
        ValueError: The positions have the wrong shape or are not finite.
    """
    bodies = getattr(getattr(scene, "scene", scene), "bodies", None)
    if not bodies:
        raise TypeError(
            f"skinning needs a scene with bodies, or the model of a result; got {format_value(scene)}"
        )
    positions = check_vectors("positions", positions, bodies[-1].vertices.stop)
    visible = VisibleSurface(bodies)
    return Surface(visible.points(positions), visible.triangles, visible.body)
