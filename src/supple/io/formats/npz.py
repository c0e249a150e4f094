"""NPZ: exact positions of all frames in one file, with fields."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from supple.io.formats.interface import AddFrame, ExportContext, Format, FrameData
from supple.io.replace_file import replacing
from supple.io.saved_bodies import concatenate_bodies


class _Column:
    """An array (frames, ...) float64 that grows frame by frame.

    It is buffered in an unnamed temporary file, because its length is written first.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.count = file, 0
        self.shape: tuple[int, ...] = ()

    def append(self, values: np.ndarray) -> None:
        self.file.write(np.ascontiguousarray(values, "<f8").data)
        self.shape, self.count = np.shape(values), self.count + 1

    def pack(self, member: IO[bytes]) -> None:
        header = {"descr": "<f8", "fortran_order": False, "shape": (self.count, *self.shape)}
        np.lib.format.write_array_header_1_0(member, header)
        self.file.seek(0)
        shutil.copyfileobj(self.file, member)


@contextmanager
def write(path: Path, context: ExportContext) -> Iterator[AddFrame]:
    """Write an NPZ file.

    Its arrays are positions (frames, n, 3) float64 [m], time (frames,) [s], index (frames,), tets (m, 4) of
    solids and triangles (k, 3) of cloth if present, body (m + k,) and names of bodies, and fields (frames, n,
    ...) or (frames, m + k, ...) in body order, by their names.
    """
    rest = concatenate_bodies(context.bodies)
    times: list[float] = []
    indices: list[int] = []
    columns: dict[str, _Column] = {}
    with ExitStack() as stack:

        def add(frame: FrameData) -> None:
            for name, values in {"positions": frame.positions, **frame.fields.all}.items():
                if name not in columns:
                    columns[name] = _Column(stack.enter_context(tempfile.TemporaryFile(dir=path.parent)))
                columns[name].append(values)
            times.append(frame.time)
            indices.append(frame.index)

        yield add
        names = [b.name for b in context.bodies]
        arrays = {"time": times, "index": indices, **rest.cells, "body": rest.body, "names": names}
        with replacing(path) as temporary:
            _pack(temporary, columns, arrays)


def _pack(path: Path, columns: dict[str, _Column], arrays: dict[str, Any]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                column.pack(member)
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(values), allow_pickle=False)


NPZ = Format("npz", "NumPy archive of all positions", "positions.npz", write, fields=True, obstacles=False)
