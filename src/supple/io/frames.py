"""One frame on disk: a VTU file for other programs, and an NPZ file with the exact numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from supple.io.replacing import replacing
from supple.meshes import TetMesh, save_mesh
from supple.meshes.measures import volumes


@dataclass(frozen=True, eq=False)
class SavedFrame:
    """positions and velocities (n, 3) float64 [m, m/s]; index 0 is the start, at time 0 [s]."""

    positions: np.ndarray
    velocities: np.ndarray
    index: int
    time: float


def frame_path(folder: Path, index: int, suffix: str) -> Path:
    return folder / f"frame_{index:04d}{suffix}"


def write_frame(folder: Path, frame: SavedFrame, mesh: TetMesh, body: np.ndarray) -> None:
    """Write frame_0001.vtu and then frame_0001.npz, so that a frame with an NPZ file is complete.

    mesh: all bodies at rest; body (m,): which body each tet belongs to.
    """
    write_vtu(folder, frame.index, frame.positions, mesh, body)
    with replacing(frame_path(folder, frame.index, ".npz")) as path:
        np.savez(
            path,
            positions=frame.positions,
            velocities=frame.velocities,
            index=frame.index,
            time=frame.time,
        )


def write_vtu(folder: Path, index: int, positions: np.ndarray, mesh: TetMesh, body: np.ndarray) -> None:
    """frame_0001.vtu with the fields displacement, body and volume_ratio."""
    with replacing(frame_path(folder, index, ".vtu")) as path:
        save_mesh(
            mesh,
            path,
            positions,
            point_data={"displacement": positions - mesh.points},
            cell_data={"body": body, "volume_ratio": volumes(positions, mesh.tets) / mesh.volumes},
        )


def read_frame(folder: Path, index: int) -> SavedFrame:
    with np.load(frame_path(folder, index, ".npz")) as saved:
        return SavedFrame(saved["positions"], saved["velocities"], int(saved["index"]), float(saved["time"]))


def write_pvd(folder: Path, times: Iterable[float], first: int = 1) -> None:
    """animation.pvd, which opens the frames first, first + 1, ... at their times [s] in ParaView."""
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
    with replacing(folder / "animation.pvd") as path:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
