"""Bodies of a results folder: data shared by all frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from supple.io.errors import ResultsError
from supple.io.replace_file import replacing
from supple.meshes import Mesh, TetMesh, TriMesh
from supple.meshes.measures import measures
from supple.meshes.skinning import Embedding, Part, embed
from supple.support.input_files import ArrayFile, InputFileError, check_regular, open_arrays

SKINS, DATA = "skins.npz", "mesh_data.npz"


@dataclass(frozen=True, eq=False)
class SavedBody:
    """A body at rest.

    Attributes:
        name: Name.
        mesh: Rest mesh.
        vertices: Range of the body's vertices in the positions of a frame.
        skin: Embedded render surface, or None.
        rest_measures: (m,) stress-free volumes [m³] or areas [m²] of the cells.
    """

    name: str
    mesh: Mesh
    vertices: slice
    skin: Embedding | None
    rest_measures: np.ndarray


@dataclass(frozen=True, eq=False)
class JoinedBodies:
    """All bodies at rest.

    Attributes:
        meshes: Meshes of the bodies.
        body: (m,) body of each cell, in body order.
        points: (n, 3) rest positions [m].
        rest_measures: (m,) stress-free volumes [m³] or areas [m²] of the cells.
    """

    meshes: Sequence[Mesh]
    body: np.ndarray
    points: np.ndarray
    rest_measures: np.ndarray

    @property
    def cells(self) -> dict[str, np.ndarray]:
        """Connectivity by kind: tets (m, 4) of solids and triangles (k, 3) of cloth, if present."""
        first = np.cumsum([0, *(mesh.n_vertices for mesh in self.meshes)])
        cells: dict[str, list[np.ndarray]] = {}
        for mesh, start in zip(self.meshes, first[:-1], strict=True):
            cells.setdefault(f"{mesh.cell}s", []).append(mesh.cells + np.int32(start))
        return {kind: np.concatenate(parts) for kind, parts in cells.items()}

    def measures(self, positions: np.ndarray) -> np.ndarray:
        """(m,) volumes [m³] or areas [m²] of cells with vertices at positions (n, 3) [m]."""
        ends = np.cumsum([mesh.n_vertices for mesh in self.meshes])[:-1]
        parts = zip(self.meshes, np.split(positions, ends), strict=True)
        return np.concatenate([measures(x, mesh.cells) for mesh, x in parts])


def concatenate_bodies(bodies: Sequence[Part]) -> JoinedBodies:
    """Concatenate all bodies at rest, for files that combine them."""
    return JoinedBodies(
        [body.mesh for body in bodies],
        np.repeat(np.arange(len(bodies), dtype=np.int32), [body.mesh.n_cells for body in bodies]),
        np.concatenate([body.mesh.points for body in bodies]),
        np.concatenate([body.rest_measures for body in bodies]),
    )


def write_skins(folder: Path, bodies: Sequence[Part]) -> None:
    """Write skins.npz with the rest render surfaces of bodies; nothing without any."""
    skins = {number: body.skin for number, body in enumerate(bodies) if isinstance(body.skin, Embedding)}
    if skins:
        with replacing(folder / SKINS) as path:
            arrays = {f"points_{number}": skin.surface.points for number, skin in skins.items()}
            arrays |= {f"triangles_{number}": skin.triangles for number, skin in skins.items()}
            arrays |= {f"uv_{number}": skin.uv for number, skin in skins.items() if skin.uv is not None}
            np.savez(path, allow_pickle=False, **arrays)


def write_data(folder: Path, bodies: Sequence[Part]) -> None:
    """Write mesh_data.npz with cell and point data, texture coordinates and stress-free areas of cloth.

    Stress-free areas are stored if they differ from those of the mesh. Nothing is written without any data.
    """
    arrays = {
        f"{number} {kind} {name}": values
        for number, body in enumerate(bodies)
        for kind in ("cell_data", "point_data")
        for name, values in getattr(body.mesh, kind).items()
    }
    for number, body in enumerate(bodies):
        if body.mesh.uv is not None:
            arrays[f"{number} own uv"] = body.mesh.uv
        if body.rest_measures is not body.mesh.measures:
            arrays[f"{number} own rest_measures"] = body.rest_measures
    if arrays:
        with replacing(folder / DATA) as path:
            np.savez(path, allow_pickle=False, **arrays)


def _read_data(folder: Path) -> dict[int, Any]:
    """Read mesh_data.npz: for each body with data, cell_data, point_data, and other data as `own`."""
    data: dict[int, Any] = {}
    if (folder / DATA).exists():
        with _arrays(folder / DATA) as saved:
            for key in saved:
                number, kind, name = key.split(" ", 2)
                data.setdefault(int(number), {}).setdefault(kind, {})[name] = saved[key]
    return data


def read_bodies(folder: Path, frame: Path, names: Sequence[str]) -> list[SavedBody]:
    """Read bodies from the VTU file of any frame, skins.npz and mesh_data.npz.

    Args:
        folder: Results folder.
        frame: VTU file.
        names: Names of the bodies, in their order.

    Raises:
        ResultsError: A file is damaged.
    """
    import pyvista

    try:
        check_regular(frame)
    except InputFileError as error:
        raise ResultsError(f"{frame} {error}.") from None
    grid = pyvista.read(frame)
    rest = np.asarray(grid.points, float) - grid.point_data["displacement"]
    owner, cell_types = np.asarray(grid.cell_data["body"]), np.asarray(grid.celltypes)
    skins, data = _read_skins(folder), _read_data(folder)
    bodies = []
    for number, name in enumerate(names):
        kind = cell_types[owner == number][0]
        cells = grid.cells_dict[kind][owner[cell_types == kind] == number]
        vertices = slice(int(cells.min()), int(cells.max()) + 1)
        own = data.get(number, {}).pop("own", {})
        given = rest[vertices], (cells - vertices.start).astype(np.int32)
        mesh_data = data.get(number, {})
        mesh = (
            TetMesh(*given, **mesh_data)
            if kind == pyvista.CellType.TETRA
            else TriMesh(*given, own.get("uv"), **mesh_data)
        )
        skin = embed(skins[number], mesh) if number in skins else None
        bodies.append(SavedBody(name, mesh, vertices, skin, own.get("rest_measures", mesh.measures)))
    return bodies


@contextmanager
def _arrays(path: Path) -> Iterator[ArrayFile]:
    """Open skins.npz or mesh_data.npz; raises a ResultsError if it is damaged."""
    try:
        with open_arrays(path) as saved:
            yield saved
    except (InputFileError, KeyError) as error:
        raise ResultsError(
            f"{path} is damaged and cannot be read; `supple run` with --resume writes it again."
        ) from error


def _read_skins(folder: Path) -> dict[int, TriMesh]:
    if not (folder / SKINS).exists():
        return {}
    with _arrays(folder / SKINS) as saved:
        numbers = [int(key.removeprefix("points_")) for key in saved if key.startswith("points_")]
        return {
            n: TriMesh(
                saved[f"points_{n}"],
                saved[f"triangles_{n}"],
                saved.get(f"uv_{n}"),
            )
            for n in numbers
        }
