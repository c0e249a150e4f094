"""VTU files of volumes and cloth with fields, and a PVD file that opens them all in ParaView."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from supple.io.formats.interface import AddFrame, ExportContext, Format, FrameData
from supple.io.frames import write_pvd, write_vtu
from supple.io.saved_bodies import concatenate_bodies


@contextmanager
def write(path: Path, context: ExportContext) -> Iterator[AddFrame]:
    rest = concatenate_bodies(context.bodies)
    times: dict[int, float] = {}
    path.mkdir(parents=True, exist_ok=True)
    for old in path.glob("frame_[0-9][0-9][0-9][0-9]*.vtu"):
        old.unlink()

    def add(frame: FrameData) -> None:
        write_vtu(path, frame.index, frame.positions, rest, frame.fields)
        times[frame.index] = frame.time
        write_pvd(path, times.values(), first=min(times))

    yield add


VTU = Format(
    "vtu",
    "VTU of volumes and cloth with a PVD file, for ParaView",
    "vtu",
    write,
    files=("frame_*.vtu", "animation.pvd"),
    fields=True,
)
