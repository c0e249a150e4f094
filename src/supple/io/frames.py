"""Frame files: VTU with fold angles and thread directions for other programs, and NPZ with exact values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from supple.io.checksums import Checksums
from supple.io.errors import FrameError
from supple.io.replace_file import replacing
from supple.io.saved_bodies import JoinedBodies
from supple.meshes import Mesh, TriMesh
from supple.meshes.files.load_save import write_meshes
from supple.model.state import State
from supple.postprocess.cell_quantities import folds
from supple.postprocess.evaluation import Fields
from supple.support.input_files import ArrayFile, open_arrays


def cloth_data(meshes: Sequence[Mesh], positions: np.ndarray) -> dict[str, np.ndarray]:
    """Compute cell data of cloth.

    Args:
        meshes: Meshes of all bodies.
        positions: (n, 3) vertex positions [m].

    Returns:
        `bending_angle`, the largest angle to a neighbor [degrees], and `weft` and `warp`, the directions
        along u and v of cloth with uv, for the cells of all meshes; NaN on solids. Empty without cloth.
    """
    if not any(isinstance(mesh, TriMesh) for mesh in meshes):
        return {}
    angle: list[np.ndarray] = []
    threads: dict[str, list[np.ndarray]] = {"weft": [], "warp": []}
    first = 0
    for mesh in meshes:
        x = positions[first : first + mesh.n_vertices]
        first += mesh.n_vertices
        sheet = isinstance(mesh, TriMesh)
        angle.append(folds(mesh.cells, x) if sheet else np.full(mesh.n_cells, np.nan))
        for name, axis in (("weft", "u"), ("warp", "v")):
            known = sheet and mesh.uv is not None
            threads[name].append(mesh.field(axis) if known else np.full((mesh.n_cells, 3), np.nan))
    strains = {name: np.concatenate(parts) for name, parts in threads.items()}
    woven = {name: values for name, values in strains.items() if not np.isnan(values).all()}
    return {"bending_angle": np.concatenate(angle), **woven}


PVD = "animation.pvd"

STATE_ARRAYS, HISTORY_PREFIX = ("displacements", "velocities"), "history of elements: "
"""Names of a `State`'s arrays in files, and the prefix of its history variables."""


@dataclass(frozen=True, eq=False)
class SavedFrame:
    """Frame data of a frame file.

    Attributes:
        positions: (n, 3) float64 [m].
        velocities: (n, 3) float64 [m/s].
        index: Frame number, 0 for the initial state.
        time: Time [s].
        state: State from which the next frame continues; None for the initial state and in files of earlier
            versions.
    """

    positions: np.ndarray
    velocities: np.ndarray
    index: int
    time: float
    state: State | None = None


def frame_path(folder: Path, index: int, suffix: str) -> Path:
    """Path of a frame's file."""
    return folder / f"frame_{index:04d}{suffix}"


def write_frame(folder: Path, frame: SavedFrame, rest: JoinedBodies, fields: Fields | None = None) -> None:
    """Write frame_0001.vtu, then frame_0001.npz, so that a frame with an NPZ file is complete.

    Args:
        folder: Results folder.
        frame: Frame.
        rest: All bodies at rest.
        fields: Additional fields for both files.
    """
    write_vtu(folder, frame.index, frame.positions, rest, fields)
    arrays: dict[str, Any] = {"index": frame.index, "time": frame.time}
    arrays |= {"positions": frame.positions, "velocities": frame.velocities}
    if frame.state is not None:
        arrays |= {f"state_{name}": getattr(frame.state, name) for name in STATE_ARRAYS}
        arrays |= {f"{HISTORY_PREFIX}{name}": values for name, values in frame.state.history.items()}
    with replacing(frame_path(folder, frame.index, ".npz")) as path:
        np.savez(path, allow_pickle=False, **arrays, **(fields or Fields()).all)


def write_vtu(
    folder: Path,
    index: int,
    positions: np.ndarray,
    rest: JoinedBodies,
    fields: Fields | None = None,
) -> None:
    """Write frame_0001.vtu.

    Its fields are displacement, body, volume_ratio, cloth data, additional fields and the data of the meshes.
    """
    fields = fields or Fields()
    volume_ratio = rest.measures(positions) / rest.rest_measures
    of_cloth = cloth_data(rest.meshes, positions)
    with replacing(frame_path(folder, index, ".vtu")) as path:
        write_meshes(
            rest.meshes,
            path,
            positions,
            point_data={"displacement": positions - rest.points, **fields.vertices},
            cell_data={"body": rest.body, "volume_ratio": volume_ratio, **of_cloth, **fields.cells},
        )


def read_frame(folder: Path, index: int) -> SavedFrame:
    """Read a frame.

    Args:
        folder: Results folder.
        index: Frame number, 0 for the initial state.

    Returns:
        The frame.

    Raises:
        FrameError: The file is missing or damaged.
    """
    path = frame_path(folder, index, ".npz")
    try:
        with open_arrays(path) as saved:
            frame = _frame(saved)
    except PermissionError:
        raise
    except FileNotFoundError:
        raise FrameError(f"{path} is missing; `supple run` with --resume computes it again.") from None
    except (KeyError, OSError, TypeError, ValueError) as error:
        how = "goes back to the frame before it and computes it again" if index else "writes it again"
        raise FrameError(
            f"{path} is damaged, so frame {index} cannot be read; `supple run` with --resume {how}."
        ) from error
    return frame


def check_frame(folder: Path, index: int, vertices: int, checksums: Checksums | None = None) -> None:
    """Raise a FrameError if a frame file is damaged, or its number of vertices differs."""
    for suffix in (".npz", ".vtu") if checksums is not None else ():
        path = frame_path(folder, index, suffix)
        if not path.exists():
            raise FrameError(f"{path} is missing.")
        if checksums is not None and not checksums.is_intact(path.name):
            raise FrameError(f"{path} is damaged: it does not match its checksum.")
    n_vertices = len(read_frame(folder, index).positions)
    if n_vertices != vertices:
        path = frame_path(folder, index, ".npz")
        raise FrameError(f"{path} has the positions of {n_vertices} vertices; the scene has {vertices}.")
    path = frame_path(folder, index, ".vtu")
    if not path.is_file():
        raise FrameError(f"{path} is not a regular file.")
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 64))
        if not file.read().rstrip().endswith(b"</VTKFile>"):
            raise FrameError(f"{path} is damaged: its end is missing.")


def _frame(saved: ArrayFile) -> SavedFrame:
    """Frame of an NPZ file; raises a ValueError or KeyError for invalid contents."""
    vectors = [saved["positions"], saved["velocities"]]
    state = None
    if f"state_{STATE_ARRAYS[0]}" in saved:
        u, v = (saved[f"state_{name}"] for name in STATE_ARRAYS)
        names = [name for name in saved if name.startswith(HISTORY_PREFIX)]
        state = State(u, v, {name.removeprefix(HISTORY_PREFIX): saved[name] for name in names})
        vectors += [u, v]
    if any(v.shape != (len(vectors[0]), 3) or not np.isfinite(v).all() for v in vectors):
        raise ValueError("vectors are missing or not finite")
    return SavedFrame(vectors[0], vectors[1], int(saved["index"]), float(saved["time"]), state)


def write_pvd(folder: Path, times: Iterable[float], first: int = 1) -> None:
    """Write animation.pvd, which opens the frames first, first + 1, ... at their times [s] in ParaView."""
    with replacing(folder / PVD) as path:
        path.write_text(pvd_text(folder, times, first), encoding="utf-8")


def pvd_text(folder: Path, times: Iterable[float], first: int = 1) -> str:
    """Text of animation.pvd: frame files with their times [s]."""
    entries = [
        f'    <DataSet timestep="{time!r}" part="0" file="{frame_path(folder, index, ".vtu").name}"/>'
        for index, time in enumerate(times, start=first)
    ]
    lines = [
        '<?xml version="1.0"?>',
        '<VTKFile type="Collection" version="0.1">',
        "  <Collection>",
        *entries,
        "  </Collection>",
        "</VTKFile>",
    ]
    return "\n".join(lines) + "\n"
