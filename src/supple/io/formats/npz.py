"""NPZ: the exact positions in all frames in one file."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from supple.io.bodies import joined
from supple.io.formats.format import AddFrame, Format, Moment, Shot
from supple.io.replacing import replacing


@contextmanager
def write(path: Path, shot: Shot) -> Iterator[AddFrame]:
    """positions (frames, n, 3) float64 [m], time (frames,) [s], index (frames,), tets (m, 4), body (m,) and
    names of bodies. Positions wait in a file beside it, as their number must come first."""
    mesh, body = joined(shot.bodies)
    times: list[float] = []
    indices: list[int] = []
    raw = path.with_name(f".unfinished_{path.name}.raw")
    try:
        with raw.open("wb") as file:

            def add(frame: Moment) -> None:
                np.ascontiguousarray(frame.positions, np.float64).tofile(file)
                times.append(frame.time)
                indices.append(frame.index)

            yield add
        names = [b.name for b in shot.bodies]
        arrays = {"time": times, "index": indices, "tets": mesh.tets, "body": body, "names": names}
        with replacing(path) as temporary:
            _pack(temporary, raw, (len(times), mesh.n_vertices, 3), arrays)
    finally:
        raw.unlink(missing_ok=True)


def _pack(path: Path, raw: Path, shape: tuple[int, int, int], arrays: dict[str, Any]) -> None:
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("positions.npy", "w", force_zip64=True) as member, raw.open("rb") as source:
            np.lib.format.write_array_header_1_0(member, header)
            shutil.copyfileobj(source, member)
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(values), allow_pickle=False)


NPZ = Format("npz", "NumPy archive of all positions", "positions.npz", write)
