"""Extraction of cells, merging of meshes with their data, and welding of nearby vertices."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from supple.meshes.checks import MeshError, format_first
from supple.meshes.files.mesh_data import check_same_shapes, merge_data
from supple.meshes.mesh import Mesh
from supple.meshes.tetmesh import TetMesh
from supple.meshes.trimesh import TriMesh
from supple.support.arguments import check_number, format_value, iterate_argument
from supple.support.keywords import suggest_keywords


def extract_tets(mesh: TetMesh, cells: ArrayLike) -> TetMesh:
    """Implement `TetMesh.extract_cells`."""
    chosen = _cell_ids(mesh, cells)
    return TetMesh(
        mesh.points,
        mesh.tets[chosen],
        repair=True,
        cell_data={name: values[chosen] for name, values in mesh.cell_data.items()},
        point_data=mesh.point_data,
    )


def extract_triangles(mesh: TriMesh, cells: ArrayLike) -> TriMesh:
    """Implement `TriMesh.extract_cells`."""
    chosen = _cell_ids(mesh, cells)
    vertices, triangles = np.unique(mesh.triangles[chosen], return_inverse=True)
    return TriMesh(
        mesh.points[vertices],
        triangles.reshape(-1, 3),
        None if mesh.uv is None else mesh.uv[chosen],
        cell_data={name: values[chosen] for name, values in mesh.cell_data.items()},
        point_data={name: values[vertices] for name, values in mesh.point_data.items()},
    )


def _cell_ids(mesh: Mesh, cells: ArrayLike) -> np.ndarray:
    """Validate cells given as mask or ids, and return their ids."""
    chosen = np.asarray(cells)
    if chosen.dtype == bool and chosen.shape == (mesh.n_cells,):
        chosen = np.flatnonzero(chosen)
    valid = chosen.ndim == 1 and chosen.dtype.kind in "iu" and chosen.size > 0
    if not valid or chosen.min() < 0 or chosen.max() >= mesh.n_cells:
        raise MeshError(
            f"cells must be True or False for each of the {mesh.n_cells} {mesh.cell}s, or numbers from 0 to "
            f"{mesh.n_cells - 1}, at least one; got {format_value(cells)}."
        )
    return chosen


def merge(meshes: Iterable[TetMesh]) -> TetMesh:
    """Concatenate meshes without connecting them.

    Data missing in some meshes are NaN there, or -1 for integers.

    Args:
        meshes: Meshes to merge.

    Returns:
        One mesh with all vertices and tets, in the given order.

    Raises:
        TypeError: The argument is not a list of at least one `TetMesh`.
        MeshError: Data of one name have different shapes.
    """
    parts = list(iterate_argument(meshes, "meshes are a list of TetMesh"))
    if not parts or not all(isinstance(part, TetMesh) for part in parts):
        raise TypeError(f"merge needs a list of at least one TetMesh, got {format_value(parts)}")
    for data in ([p.cell_data for p in parts], [p.point_data for p in parts]):
        check_same_shapes(data)
    first = np.cumsum([0, *(part.n_vertices for part in parts)])
    return TetMesh(
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.tets + start for part, start in zip(parts, first[:-1], strict=True)]),
        cell_data=merge_data([p.cell_data for p in parts], [p.n_tets for p in parts]),
        point_data=merge_data([p.point_data for p in parts], [p.n_vertices for p in parts]),
    )


@suggest_keywords
def weld(surfaces: TriMesh | Iterable[TriMesh], tolerance: float) -> TriMesh:
    """Merge vertices of cloth pieces into seams that neither open nor stretch.

    Chains of vertices within the distance of each other become one vertex at their mean position. Corners
    keep their texture coordinates, a possible rest shape, if all pieces have them; merged vertices keep the
    point data of the first. For elastic seams, see `Scene.attach`.

    Args:
        surfaces: One surface or several pieces.
        tolerance: Largest distance of merged vertices [m].

    Returns:
        The welded surface.

    Raises:
        MeshError: The distance is larger than an edge, so that triangles would collapse.
    """
    pieces = (
        [surfaces]
        if isinstance(surfaces, TriMesh)
        else list(iterate_argument(surfaces, "pieces are TriMesh"))
    )
    if not pieces or not all(isinstance(piece, TriMesh) for piece in pieces):
        raise TypeError(f"weld needs one TriMesh or a list of them, got {format_value(surfaces)}")
    distance = check_number("tolerance", tolerance, at_least=0)
    surface = _concatenate(pieces)
    group = _merged_vertices(surface.points, distance)
    triangles = group[surface.triangles]
    a, b, c = triangles.T
    collapsed = np.flatnonzero((a == b) | (b == c) | (c == a))
    if len(collapsed):
        shortest = np.linalg.norm(np.diff(surface.points[surface.triangles[:, [0, 1, 2, 0]]], axis=1), axis=2)
        raise MeshError(
            f"welding within {distance:g} m collapses edges of {len(collapsed)} of "
            f"{len(triangles)} triangles: {format_first(collapsed)}. The shortest edge is "
            f"{shortest.min():.3g} m long; weld with a smaller tolerance."
        )
    count = np.bincount(group)
    points = np.stack([np.bincount(group, x) / count for x in surface.points.T], axis=1)
    _, first = np.unique(group, return_index=True)
    data = {name: values[first] for name, values in surface.point_data.items()}
    return TriMesh(points, triangles, surface.uv, cell_data=surface.cell_data, point_data=data)


def _concatenate(pieces: list[TriMesh]) -> TriMesh:
    """Concatenate all pieces into one surface."""
    for data in ([p.cell_data for p in pieces], [p.point_data for p in pieces]):
        check_same_shapes(data)
    start = np.cumsum([0, *(piece.n_vertices for piece in pieces)])
    uv = [piece.uv for piece in pieces if piece.uv is not None]
    return TriMesh(
        np.concatenate([piece.points for piece in pieces]),
        np.concatenate([piece.triangles + at for piece, at in zip(pieces, start[:-1], strict=True)]),
        np.concatenate(uv) if len(uv) == len(pieces) else None,
        cell_data=merge_data([p.cell_data for p in pieces], [p.n_triangles for p in pieces]),
        point_data=merge_data([p.point_data for p in pieces], [p.n_vertices for p in pieces]),
    )


def _merged_vertices(points: np.ndarray, distance: float) -> np.ndarray:
    """(n,) merged vertex of each vertex, numbered by first appearance."""
    pairs = cKDTree(points).query_pairs(distance, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(len(points),) * 2)
    return connected_components(graph, directed=False)[1]
