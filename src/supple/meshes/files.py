"""Reading and writing mesh files; with gmsh.py, tetgen.py and vtu.py the only file that knows meshio."""

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

from supple.checks import a_path, finite_rows, listed, shown
from supple.input_files import InputFileError, check_regular
from supple.meshes import gmsh, tetgen, vtu
from supple.meshes.arguments import scaling
from supple.meshes.checks import MeshError
from supple.meshes.data import checked_data, merged, refuse_mixed
from supple.meshes.deforming import deformed_data
from supple.meshes.filling import Progress, log, tetrahedralise
from supple.meshes.mesh import Mesh
from supple.meshes.surfaces import SURFACES, is_surface_file, load_surface
from supple.meshes.tetmesh import TetMesh
from supple.meshes.trimesh import TriMesh

# The modules are called directly: meshio.read() ends the process when a file cannot be read.
_FORMATS = {
    ".mesh": ("Medit", meshio.medit),
    ".msh": ("Gmsh", gmsh),
    ".vtk": ("VTK", meshio.vtk),
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
    progress: Progress = log.info,
) -> TetMesh:
    """A mesh from a file, scaled by one factor or by one for each axis.

    The tets of a Medit (.mesh), Gmsh (.msh), VTK (.vtk), VTU (.vtu) or TetGen (.node with .ele) file, with
    the data that the file has for them and for vertices; other cells are ignored. `repair=True` swaps
    vertices of inverted tets and removes vertices without tets, see `TetMesh`.
    A closed surface (.obj, .stl, .ply, .off) is filled with tets whose edges are about edge_length [m] after
    scaling, see `tetrahedralise`, which calls progress.
    """
    path = a_path(path, "the path of a mesh file")
    scaling(scale)  # is refused before anything is read
    if is_surface_file(path):
        return _filled(load_surface(path).scaled(scale), path, edge_length, progress)
    if edge_length is not None:
        raise MeshError(
            f"{path}: edge_length is for surfaces ({', '.join(SURFACES)}); the tets of this file are given."
        )
    mesh = _read(path, repair)
    return mesh if np.all(np.asarray(scale) == 1) else mesh.scaled(scale)


def _filled(surface: TriMesh, path: Path, edge_length: float | None, progress: Progress) -> TetMesh:
    try:
        return tetrahedralise(surface, edge_length, lambda text: progress(f"{path.name}: {text}"))
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
        with redirect_stderr(io.StringIO()):  # meshio prints about fields it skips
            return module.read(str(path))
    except Exception as error:  # meshio raises whatever its parser stumbled on
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
    """All triangles of a file, with their data and those of vertices; vertices without triangles are left
    out."""
    content = _content(path)
    found = [block.data for block in content.cells if block.type == "triangle" and len(block.data)]
    if not found:
        raise MeshError(f"{path}: the file has no triangles, of which cloth could be made.")
    used, triangles = np.unique(np.concatenate(found), return_inverse=True)
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
    """Write a mesh, at rest or at positions (n, 3) [m], as .mesh, .msh, .vtk, .vtu, or .node with .ele.

    point_data and cell_data: name → one row for each vertex or cell, beside or instead of those of the mesh,
    which turn as it deforms. Of those .mesh holds medit:ref only, and .node nothing, which a warning says.
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(f"save_mesh writes a TetMesh or a TriMesh, for example body.mesh; got {shown(mesh)}")
    write_meshes([mesh], path, positions, point_data, cell_data)
    name, _ = _format(Path(path))
    lost = [key for data in (mesh.cell_data, mesh.point_data) for key in data.keys() - _held_by(name, data)]
    if lost:
        sentence = (
            f"{path}: a {name} file does not hold {listed(sorted(lost))} of the mesh; a .vtu file does."
        )
        warnings.warn(sentence, stacklevel=2)


def write_meshes(
    meshes: Sequence[Mesh],
    path: str | os.PathLike[str],
    positions: ArrayLike | None = None,
    point_data: Mapping[str, ArrayLike] | None = None,
    cell_data: Mapping[str, ArrayLike] | None = None,
) -> None:
    """`save_mesh` of several meshes in one file, their vertices and cells one after the other."""
    path = a_path(path, "the path of a mesh file")
    check_target(path)
    name, module = _format(path)
    if name in ("Medit", "TetGen") and (point_data or cell_data):
        raise MeshError(f"{path}: a {name} file cannot hold point_data or cell_data; write a .vtu file.")
    if name == "TetGen" and any(mesh.corners == 3 for mesh in meshes):
        raise MeshError(f"{path}: a TetGen file cannot hold triangles alone; write a .vtu file.")
    points = np.concatenate([mesh.points for mesh in meshes])
    if positions is not None:
        points = finite_rows("positions", positions, len(points), MeshError)
    cells = _rows("cell_data", cell_data, sum(mesh.n_cells for mesh in meshes), f"{meshes[0].cell}s")
    vertices = _rows("point_data", point_data, len(points), "vertices")
    own_cells, own_vertices = (_held_by(name, data) for data in _own_data(meshes, points, positions is None))
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
    """The data of cells and vertices of all meshes at points (n, 3) [m]."""
    first = np.cumsum([0, *(mesh.n_vertices for mesh in meshes)])
    found = [
        deformed_data(mesh, mesh.points if at_rest else points[start : start + mesh.n_vertices])
        for mesh, start in zip(meshes, first[:-1], strict=True)
    ]
    for data in zip(*found, strict=True):
        refuse_mixed(data)
    counts = [mesh.n_cells for mesh in meshes], [mesh.n_vertices for mesh in meshes]
    cells, vertices = (merged(data, n) for data, n in zip(zip(*found, strict=True), counts, strict=True))
    return cells, vertices


def _blocks(meshes: Sequence[Mesh]) -> tuple[list[tuple[str, np.ndarray]], list[int]]:
    """Cells as meshio wants them, those of one kind that follow each other together, and how many."""
    first = np.cumsum([0, *(mesh.n_vertices for mesh in meshes)])
    blocks = []
    for kind, group in groupby(zip(meshes, first[:-1], strict=True), lambda pair: pair[0].corners):
        cells = np.concatenate([mesh.cells + np.int32(start) for mesh, start in group])
        blocks.append(({3: "triangle", 4: "tetra"}[kind], cells))
    return blocks, [len(cells) for _, cells in blocks]


def check_target(path: Path) -> None:
    """Refuse a path that `save_mesh` cannot write to, for use before long work."""
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
    kinds: dict[str, int] = {}
    for block in content.cells:
        kinds[block.type] = kinds.get(block.type, 0) + len(block.data)
    found = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count) or "no cells at all"
    raise MeshError(
        f"the file has no linear tets (tetra cells); it has {found}. "
        f"A surface is tetrahedralised where its file is one of {', '.join(SURFACES)}."
    )


FOREIGN = "gmsh:dim_tags"
"""What meshio makes of a file's inner structure, which is of no use elsewhere."""


def _cell_data(content: meshio.Mesh, kind: str) -> dict[str, np.ndarray]:
    """Data of the cells of a kind in a file, what is no number left out."""
    chosen = [k for k, block in enumerate(content.cells) if block.type == kind and len(block.data)]
    data = {name: np.concatenate([blocks[k] for k in chosen]) for name, blocks in content.cell_data.items()}
    return {name: values for name, values in data.items() if values.dtype.kind in "biuf"}


def _point_data(content: meshio.Mesh) -> dict[str, np.ndarray]:
    data = {name: np.asarray(values) for name, values in content.point_data.items() if name != FOREIGN}
    return {name: values for name, values in data.items() if values.dtype.kind in "biuf"}


def _rows(name: str, data: Mapping[str, ArrayLike] | None, count: int, what: str) -> dict[str, np.ndarray]:
    """Arrays of numbers with one row for each item."""
    return _flat(checked_data(name, data, count, what))


def _held_by(format: str, data: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a format can hold of the data of a mesh."""
    if format in ("Medit", "TetGen"):
        return {key: rows for key, rows in data.items() if (format, key) == ("Medit", "medit:ref")}
    return _flat(data)


def _flat(data: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices as rows, since no format holds matrices."""
    return {key: rows.reshape(len(rows), -1) if rows.ndim > 2 else rows for key, rows in data.items()}
