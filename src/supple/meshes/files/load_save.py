"""Reading and writing mesh files; with the modules of single formats the only one that knows meshio.

Directions and tensors of deformed meshes rotate with the deformation.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from itertools import groupby
from pathlib import Path
from typing import Any

import meshio
import numpy as np
from numpy.typing import ArrayLike

from supple.meshes.checks import MeshError, scaling
from supple.meshes.files import gmsh, legacy_vtk, medit, tetgen, vtu
from supple.meshes.files.mesh_data import check_data, check_same_shapes, merge_data, rotates, transform_data
from supple.meshes.files.surface_files import SURFACES, is_surface_file, load_surface
from supple.meshes.generators.tetrahedralize import fill_surface, log
from supple.meshes.measures import means_at_vertices
from supple.meshes.mesh import Mesh
from supple.meshes.tetmesh import TetMesh
from supple.meshes.trimesh import TriMesh
from supple.support.arguments import check_path, check_vectors, comma_list, format_value
from supple.support.input_files import InputFileError, check_regular
from supple.support.progress import Progress


def deformation_gradients(mesh: Mesh, positions: np.ndarray) -> np.ndarray:
    """F (m, 3, 3) of every cell at positions (n, 3) [m]; triangles keep their thickness."""
    return np.linalg.solve(_edges(mesh.points, mesh.cells), _edges(positions, mesh.cells)).transpose(0, 2, 1)


def _edges(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(m, 3, 3) rows: three edges of a tet; two edges of a triangle and its unit normal."""
    edges = points[cells[:, 1:]] - points[cells[:, :1]]
    if edges.shape[1] == 3:
        return edges
    normal = np.cross(edges[:, 0], edges[:, 1])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    return np.concatenate([edges, normal[:, None]], axis=1)


def deform_data(mesh: Mesh, positions: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Cell and point data of a mesh at positions (n, 3) [m].

    Vectors follow F v with their rest length, tensors the rotation of F; vertices use the mean F of their
    cells.
    """
    cells, vertices = dict(mesh.cell_data), dict(mesh.point_data)
    if positions is mesh.points or not any(map(rotates, (*cells.values(), *vertices.values()))):
        return cells, vertices
    F = deformation_gradients(mesh, positions)
    cells = transform_data(cells, F)
    if any(map(rotates, vertices.values())):
        mean = means_at_vertices(F, mesh.cells, mesh.measures, mesh.n_vertices)
        vertices = transform_data(vertices, mean)
    return cells, vertices


# The modules are called directly: meshio.read() ends the process when a file cannot be read.
_FORMATS = {
    ".mesh": ("Medit", medit),
    ".msh": ("Gmsh", gmsh),
    ".vtk": ("VTK", legacy_vtk),
    ".vtu": ("VTU", vtu),
    ".node": ("TetGen", tetgen),
    ".ele": ("TetGen", tetgen),
}


def load_mesh(
    path: str | os.PathLike[str],
    repair: bool = False,
    *,
    edge_length: float | None = None,
    scale: ArrayLike = 1.0,
    progress: Progress | None = None,
) -> TetMesh:
    """Load a tetrahedral mesh from a file, or fill a closed surface with tetrahedra.

    Medit (.mesh), Gmsh (.msh), VTK (.vtk), VTU (.vtu) and TetGen (.node with .ele) files provide tets with
    cell and point data; other cells are ignored. Closed surfaces (.obj, .stl, .ply, .off) are filled, see
    `tetrahedralize`.

    Args:
        path: Path of the file.
        repair: Swap vertices of inverted tets and remove vertices without tets, see `TetMesh`.
        edge_length: Edge length of the tets that fill a surface [m], after scaling.
        scale: Scale factor, or one factor per axis.
        progress: Called as progress(done, total) after each stage in which a surface is filled, see
            `tetrahedralize`.

    Returns:
        The mesh.

    Raises:
        FileNotFoundError: Missing file.
        MeshError: Unreadable file or invalid mesh.
    """
    path = check_path(path, "the path of a mesh file")
    scaling(scale)  # validated before the file is read
    if is_surface_file(path):
        return _fill_surface(load_surface(path).scaled(scale), path, edge_length, progress)
    if edge_length is not None:
        raise MeshError(
            f"{path}: edge_length is only for surfaces ({', '.join(SURFACES)}); this file already "
            "has tets. Omit it."
        )
    mesh = _read(path, repair)
    return mesh if np.all(np.asarray(scale) == 1) else mesh.scaled(scale)


def _fill_surface(
    surface: TriMesh, path: Path, edge_length: float | None, progress: Progress | None
) -> TetMesh:
    try:
        return fill_surface(surface, edge_length, progress, lambda text: log.info("%s: %s", path.name, text))
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from error


def _content(path: Path) -> meshio.Mesh:
    name, module = _format(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no mesh file {path} (looked for {path.absolute()}).")
    try:
        check_regular(path)
    except InputFileError as error:
        raise MeshError(f"{path} {error}.") from None
    try:
        with redirect_stderr(io.StringIO()):  # meshio prints messages about skipped fields
            return module.read(str(path))
    except Exception as error:  # meshio raises arbitrary parser errors
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise MeshError(
            f"{path} could not be read as a {name} file ({reason}). It may be cut short or in another format."
        ) from error


def _read(path: Path, repair: bool) -> TetMesh:
    content = _content(path)
    try:
        data = {"cell_data": _cell_data(content, "tetra"), "point_data": _point_data(content)}
        return TetMesh(content.points, _tets(content), repair, **data)
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from error


def read_triangles(path: Path) -> TriMesh:
    """Read all triangles of a file with cell and point data; vertices without triangles are dropped."""
    content = _content(path)
    blocks = [block.data for block in content.cells if block.type == "triangle" and len(block.data)]
    if not blocks:
        raise MeshError(f"{path}: the file has no triangles for cloth.")
    used, triangles = np.unique(np.concatenate(blocks), return_inverse=True)
    point_data = {name: values[used] for name, values in _point_data(content).items()}
    cells = triangles.reshape(-1, 3)
    data = {"cell_data": _cell_data(content, "triangle"), "point_data": point_data}
    try:
        return TriMesh(content.points[used], cells, None, **data)
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from error


def save_mesh(
    mesh: Mesh,
    path: str | os.PathLike[str],
    positions: ArrayLike | None = None,
    point_data: Mapping[str, ArrayLike] | None = None,
    cell_data: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Write a mesh as .mesh, .msh, .vtk, .vtu, or .node with .ele, at rest or deformed.

    Data of the mesh rotate with its deformation. A .mesh file stores only the data medit:ref, a .node file
    none; a warning names the data that are lost.

    Args:
        mesh: Mesh to write.
        path: Path of the file; its suffix selects the format.
        positions: (n, 3) vertex positions [m]; by default the rest positions.
        point_data: Further data by name, one row per vertex; they replace mesh data of the same name.
        cell_data: Further data by name, one row per cell; they replace mesh data of the same name.

    Raises:
        TypeError: The first argument is not a mesh.
        MeshError: The suffix is unknown, or the format cannot hold the mesh or its data.
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f"save_mesh needs a TetMesh or a TriMesh, for example body.mesh; got {format_value(mesh)}"
        )
    write_meshes([mesh], path, positions, point_data, cell_data)
    name, _ = _format(Path(path))
    lost = [
        key for data in (mesh.cell_data, mesh.point_data) for key in data.keys() - _supported_data(name, data)
    ]
    if lost:
        sentence = (
            f"{path}: a {name} file cannot store {comma_list(sorted(lost))} of the mesh; write a .vtu file."
        )
        warnings.warn(sentence, stacklevel=2)


def write_meshes(
    meshes: Sequence[Mesh],
    path: str | os.PathLike[str],
    positions: ArrayLike | None = None,
    point_data: Mapping[str, ArrayLike] | None = None,
    cell_data: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Write several meshes into one file, vertices and cells concatenated; arguments as in `save_mesh`."""
    path = check_path(path, "the path of a mesh file")
    check_target(path)
    name, module = _format(path)
    if name in ("Medit", "TetGen") and (point_data or cell_data):
        raise MeshError(f"{path}: a {name} file cannot hold point_data or cell_data; write a .vtu file.")
    if name == "TetGen" and any(mesh.corners == 3 for mesh in meshes):
        raise MeshError(f"{path}: a TetGen file cannot hold triangles alone; write a .vtu file.")
    points = np.concatenate([mesh.points for mesh in meshes])
    if positions is not None:
        points = check_vectors("positions", positions, len(points), MeshError)
    cells = _rows("cell_data", cell_data, sum(mesh.n_cells for mesh in meshes), f"{meshes[0].cell}s")
    vertices = _rows("point_data", point_data, len(points), "vertices")
    own_cells, own_vertices = (
        _supported_data(name, data) for data in _own_data(meshes, points, positions is None)
    )
    blocks, counts = _blocks(meshes)
    ends = np.cumsum(counts)[:-1]
    content = meshio.Mesh(
        points,
        blocks,
        point_data=own_vertices | vertices,
        cell_data={key: np.split(rows, ends) for key, rows in (own_cells | cells).items()},
    )
    try:
        with redirect_stderr(io.StringIO()):
            module.write(str(path), content)
    except (meshio.WriteError, KeyError) as error:
        raise MeshError(f"{path} could not be written as a {name} file ({error}).") from error


def _own_data(
    meshes: Sequence[Mesh], points: np.ndarray, at_rest: bool
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Concatenated cell and point data of all meshes at points (n, 3) [m]."""
    first = np.cumsum([0, *(mesh.n_vertices for mesh in meshes)])
    data_by_mesh = [
        deform_data(mesh, mesh.points if at_rest else points[start : start + mesh.n_vertices])
        for mesh, start in zip(meshes, first[:-1], strict=True)
    ]
    for data in zip(*data_by_mesh, strict=True):
        check_same_shapes(data)
    counts = [mesh.n_cells for mesh in meshes], [mesh.n_vertices for mesh in meshes]
    cells, vertices = (
        merge_data(data, n) for data, n in zip(zip(*data_by_mesh, strict=True), counts, strict=True)
    )
    return cells, vertices


def _blocks(meshes: Sequence[Mesh]) -> tuple[list[tuple[str, np.ndarray]], list[int]]:
    """Cell blocks in meshio's format, with consecutive blocks of one type joined, and their sizes."""
    first = np.cumsum([0, *(mesh.n_vertices for mesh in meshes)])
    blocks = []
    for kind, group in groupby(zip(meshes, first[:-1], strict=True), lambda pair: pair[0].corners):
        cells = np.concatenate([mesh.cells + np.int32(start) for mesh, start in group])
        blocks.append(({3: "triangle", 4: "tetra"}[kind], cells))
    return blocks, [len(cells) for _, cells in blocks]


def check_target(path: Path) -> None:
    """Check the path of an output file before a long computation."""
    _format(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.parent} to write {path.name} into; create it first."
        )


def _format(path: Path) -> tuple[str, Any]:
    try:
        return _FORMATS[path.suffix.lower()]
    except KeyError:
        known = ", ".join(_FORMATS)
        raise MeshError(
            f"{path}: mesh files end in one of {known}, not {path.suffix!r}. "
            "Convert other formats first, for example with the meshio command."
        ) from None


def _tets(content: meshio.Mesh) -> np.ndarray:
    """All linear tets of a file, (m, 4)."""
    tets = [block.data for block in content.cells if block.type == "tetra" and len(block.data)]
    if tets:
        return np.concatenate(tets)
    counts: dict[str, int] = {}
    for block in content.cells:
        counts[block.type] = counts.get(block.type, 0) + len(block.data)
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "no cells at all"
    raise MeshError(
        f"the file has no linear tets (tetra cells); it has {summary}. Surfaces are tetrahedralized "
        f"from files of {', '.join(SURFACES)}."
    )


GMSH_DIM_TAGS = "gmsh:dim_tags"
"""Data in which meshio stores the inner structure of a Gmsh file, without meaning in other formats."""


def _cell_data(content: meshio.Mesh, kind: str) -> dict[str, np.ndarray]:
    """Numeric data of the cells of one type in a file."""
    chosen = [k for k, block in enumerate(content.cells) if block.type == kind and len(block.data)]
    data = {name: np.concatenate([blocks[k] for k in chosen]) for name, blocks in content.cell_data.items()}
    return {name: values for name, values in data.items() if values.dtype.kind in "biuf"}


def _point_data(content: meshio.Mesh) -> dict[str, np.ndarray]:
    data = {name: np.asarray(values) for name, values in content.point_data.items() if name != GMSH_DIM_TAGS}
    return {name: values for name, values in data.items() if values.dtype.kind in "biuf"}


def _rows(name: str, data: Mapping[str, ArrayLike] | None, count: int, what: str) -> dict[str, np.ndarray]:
    """Validate numeric data with one row per item and flatten tensors."""
    return _flat(check_data(name, data, count, what))


def _supported_data(format: str, data: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Mesh data that a file format can store."""
    if format in ("Medit", "TetGen"):
        return {key: rows for key, rows in data.items() if (format, key) == ("Medit", "medit:ref")}
    return _flat(data)


def _flat(data: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Flatten tensors to rows, since no format stores tensors."""
    return {key: rows.reshape(len(rows), -1) if rows.ndim > 2 else rows for key, rows in data.items()}
