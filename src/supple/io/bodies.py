"""The bodies of a results folder: what is the same in all of its frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from supple.embedding import Embedding, Part, embed
from supple.io.replacing import replacing
from supple.meshes import TetMesh, TriMesh, merge_meshes

SKINS, DATA = "skins.npz", "mesh_data.npz"


@dataclass(frozen=True, eq=False)
class SavedBody:
    """A body at rest; vertices: its part of the positions of a frame; skin: its render surface."""

    name: str
    mesh: TetMesh
    vertices: slice
    skin: Embedding | None


def joined(bodies: Sequence[Part]) -> tuple[TetMesh, np.ndarray]:
    """All bodies at rest as one mesh, and the number (m,) of the body that each tet belongs to."""
    mesh = merge_meshes([body.mesh for body in bodies])
    return mesh, np.repeat(np.arange(len(bodies), dtype=np.int32), [body.mesh.n_tets for body in bodies])


def write_skins(folder: Path, bodies: Sequence[Part]) -> None:
    """skins.npz: the render surfaces at rest of the bodies that have one; no file where there is none."""
    skins = {number: body.skin for number, body in enumerate(bodies) if isinstance(body.skin, Embedding)}
    if skins:
        with replacing(folder / SKINS) as path:
            arrays = {f"points_{number}": skin.surface.points for number, skin in skins.items()}
            arrays |= {f"triangles_{number}": skin.triangles for number, skin in skins.items()}
            arrays |= {f"uv_{number}": skin.uv for number, skin in skins.items() if skin.uv is not None}
            np.savez(path, allow_pickle=False, **arrays)


def write_data(folder: Path, bodies: Sequence[Part]) -> None:
    """mesh_data.npz: the data of the meshes at rest; no file where there are none."""
    arrays = {
        f"{number} {kind} {name}": values
        for number, body in enumerate(bodies)
        for kind in ("cell_data", "point_data")
        for name, values in getattr(body.mesh, kind).items()
    }
    if arrays:
        with replacing(folder / DATA) as path:
            np.savez(path, allow_pickle=False, **arrays)


def _read_data(folder: Path) -> dict[int, Any]:
    """For each body that has some: cell_data and point_data."""
    found: dict[int, Any] = {}
    if (folder / DATA).exists():
        with np.load(folder / DATA) as saved:
            for key in saved:
                number, kind, name = key.split(" ", 2)
                found.setdefault(int(number), {}).setdefault(kind, {})[name] = saved[key]
    return found


def read_bodies(folder: Path, frame: Path, names: Sequence[str]) -> list[SavedBody]:
    """The bodies of these names, from the VTU file of any frame, skins.npz and mesh_data.npz."""
    import pyvista

    grid = pyvista.read(frame)
    rest = np.asarray(grid.points, float) - grid.point_data["displacement"]
    tets, owner = grid.cells_dict[pyvista.CellType.TETRA], grid.cell_data["body"]
    skins, data = _read_skins(folder), _read_data(folder)
    bodies = []
    for number, name in enumerate(names):
        mine = tets[owner == number]
        vertices = slice(int(mine.min()), int(mine.max()) + 1)
        mesh = TetMesh(rest[vertices], mine - vertices.start, **data.get(number, {}))
        skin = embed(skins[number], mesh) if number in skins else None
        bodies.append(SavedBody(name, mesh, vertices, skin))
    return bodies


def _read_skins(folder: Path) -> dict[int, TriMesh]:
    if not (folder / SKINS).exists():
        return {}
    with np.load(folder / SKINS) as saved:
        numbers = [int(key.removeprefix("points_")) for key in saved if key.startswith("points_")]
        return {
            n: TriMesh(saved[f"points_{n}"], saved[f"triangles_{n}"], saved.get(f"uv_{n}")) for n in numbers
        }
