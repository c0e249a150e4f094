"""Validation of cloth surfaces, with one sentence per defect, and of their rest shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from supple.meshes.checks import MIN_RELATIVE_VOLUME, MeshError, format_first
from supple.meshes.edges import Edges
from supple.meshes.measures import area_vectors, areas, squared_edges
from supple.meshes.trimesh import TriMesh


def find_problems(mesh: TriMesh) -> Iterator[str]:
    """Yield a sentence for each defect of a cloth surface."""
    triangles, count = mesh.triangles, mesh.n_triangles
    a, b, c = triangles.T
    twice = np.flatnonzero((a == b) | (b == c) | (c == a))
    if len(twice):
        yield (
            f"{len(twice)} of {count} triangles use a vertex twice: {format_first(twice)}. Remove them; they "
            "have no area."
        )
    yield from _flat(mesh, twice)
    unused = np.setdiff1d(np.arange(mesh.n_vertices), triangles)
    if len(unused):
        yield (
            f"{len(unused)} of {mesh.n_vertices} vertices belong to no triangle: {format_first(unused)}. "
            "They have no mass; remove them."
        )
    yield from _edges(mesh)


def _flat(mesh: TriMesh, known: np.ndarray) -> Iterator[str]:
    longest = squared_edges(mesh.points, mesh.triangles).max(axis=0)
    flat = np.setdiff1d(np.flatnonzero(~(mesh.areas > MIN_RELATIVE_VOLUME * longest)), known)
    if len(flat):
        yield (
            f"{len(flat)} of {mesh.n_triangles} triangles are degenerate: {format_first(flat)}. Their "
            "vertices "
            "lie on a line or coincide, so they have no area; remove them or mesh the shape again."
        )


def _edges(mesh: TriMesh) -> Iterator[str]:
    edges = Edges(mesh.triangles)
    many = np.flatnonzero(edges.counts > 2)
    if len(many):
        ends = edges.ends[many[0]]
        yield (
            f"{len(many)} of {len(edges)} edges are not manifold: {edges.counts[many[0]]} triangles meet at "
            f"the edge of vertices {ends[0]} and {ends[1]}, near {_format_position(mesh, ends)}. At most "
            "two may; divide the surface into pieces and attach them to each other."
        )
    inconsistent = edges.pairs[edges.inconsistent]
    if len(inconsistent) and edges.one_sided:
        yield (
            "The surface has only one side, like a Möbius strip; cloth needs two. Cut it across, so "
            "that both ends have separate vertices, and sew these together with attach(..., within=...)."
        )
    elif len(inconsistent):
        one, other = inconsistent[0]
        yield (
            f"{len(inconsistent)} of {len(edges)} edges have neighbors of opposite orientation: triangles "
            f"{one} and {other}, near {_format_position(mesh, mesh.triangles[one])}, disagree on what is "
            "outside. Reverse "
            "the vertex order of one side, for example with Blender's 'Recalculate Outside'."
        )


def _format_position(mesh: TriMesh, vertices: np.ndarray) -> str:
    return "({:.4g}, {:.4g}, {:.4g})".format(*mesh.points[vertices].mean(axis=0))


def rest_corners(mesh: TriMesh, rest: object) -> np.ndarray:
    """Rest positions of the corners of each triangle, (m, 3, 3) [m].

    Args:
        mesh: Cloth surface.
        rest: Another `TriMesh` with the same triangles; "uv" for the mesh's uv in meters; points (n, 2) or
            (n, 3) of the vertices; or (m, 3, 2) or (m, 3, 3) of the corners.

    Raises:
        MeshError: Triangles without area, or flipped against their neighbors.
    """
    corners = _corners(mesh, rest)
    flat = np.zeros((mesh.n_triangles, 3, 3))
    flat[..., : corners.shape[-1]] = corners
    points, cells = flat.reshape(-1, 3), np.arange(3 * mesh.n_triangles).reshape(-1, 3)
    longest = squared_edges(points, cells).max(axis=0)
    bad = np.flatnonzero(~(areas(points, cells) > MIN_RELATIVE_VOLUME * longest))
    if len(bad):
        raise MeshError(
            f"{len(bad)} of {mesh.n_triangles} triangles have no area in the rest shape: {format_first(bad)}."
        )
    if corners.shape[-1] == 2:
        _refuse_flipped(mesh, area_vectors(points, cells)[:, 2])
    return flat


def _refuse_flipped(mesh: TriMesh, signed: np.ndarray) -> None:
    """Refuse a flat rest shape with flipped triangles within a connected piece."""
    edges = Edges(mesh.triangles)
    signs = np.sign(signed)[edges.pairs]
    over = edges.pairs[signs[:, 0] != signs[:, 1]]
    if len(over):
        sign = -1 if (signed < 0).sum() * 2 <= len(signed) else 1
        fewer = np.flatnonzero(sign * signed > 0)
        raise MeshError(
            f"{len(fewer)} of {mesh.n_triangles} triangles are turned over in the flat rest shape against "
            f"their neighbors: {format_first(fewer)}. A pattern, or uv, must not fold over within a piece."
        )


def _corners(mesh: TriMesh, rest: object) -> np.ndarray:
    if isinstance(rest, str) and rest == "uv":
        if mesh.uv is None:
            raise MeshError("the mesh has no uv coordinates that could be its rest shape.")
        return mesh.uv
    if isinstance(rest, TriMesh):
        if rest.n_triangles != mesh.n_triangles:
            raise MeshError(
                f"the rest shape must have the triangles of the mesh, in the same order; it has "
                f"{rest.n_triangles} of them, the mesh {mesh.n_triangles}."
            )
        return rest.points[rest.triangles]
    try:
        given = np.array(rest, float)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape in ((mesh.n_vertices, 2), (mesh.n_vertices, 3)):
        given = given[mesh.triangles]
    shapes = (mesh.n_triangles, 3, 2), (mesh.n_triangles, 3, 3)
    if given.shape not in shapes or not np.isfinite(given).all():
        raise MeshError(
            "the rest shape must be a TriMesh of the same triangles, 'uv', or finite coordinates [m] of "
            f"shape ({mesh.n_vertices}, 2 or 3) for vertices or ({mesh.n_triangles}, 3, 2 or 3) for corners."
        )
    return given
