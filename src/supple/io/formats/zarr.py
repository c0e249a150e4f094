"""Zarr: exact positions of all frames, one chunk per frame."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from supple.io.formats.interface import AddFrame, ExportContext, Format, FrameData
from supple.io.replace_file import replacing_folder
from supple.io.saved_bodies import concatenate_bodies

WRITE_TIMEOUT = 30.0
"""Longest wait for pending writes of an interrupted export [s]."""


@contextmanager
def write(path: Path, context: ExportContext) -> Iterator[AddFrame]:
    """Write a group with the arrays of the NPZ format, including fields; names of bodies are attributes."""
    import zarr

    rest = concatenate_bodies(context.bodies)
    with replacing_folder(path) as temporary, _wait_for_writes():
        group = zarr.open_group(temporary, mode="w")
        n = len(rest.points)
        positions = group.create_array("positions", shape=(0, n, 3), chunks=(1, n, 3), dtype="f8")
        time = group.create_array("time", shape=(0,), chunks=(1024,), dtype="f8")
        index = group.create_array("index", shape=(0,), chunks=(1024,), dtype="i8")
        for name, cells in rest.cells.items():
            group.create_array(name, data=cells)
        group.create_array("body", data=rest.body)
        group.attrs.update(names=[b.name for b in context.bodies], dt=context.dt, units="m, s", up="y")

        columns: dict[str, zarr.Array[Any]] = {}

        def add(frame: FrameData) -> None:
            positions.append(np.asarray(frame.positions, np.float64)[None])
            for name, values in frame.fields.all.items():
                if name not in columns:
                    shape = values.shape
                    columns[name] = group.create_array(
                        name, shape=(0, *shape), chunks=(1, *shape), dtype="f8"
                    )
                columns[name].append(np.asarray(values, np.float64)[None])
            time.append(np.array([frame.time]))
            index.append(np.array([frame.index]))

        yield add


@contextmanager
def _wait_for_writes() -> Iterator[None]:
    """Wait for pending writes of Zarr's thread after an interruption.

    Otherwise they would recreate the deleted folder.
    """
    from zarr.core.sync import sync

    async def wait_for_others() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=WRITE_TIMEOUT)

    try:
        yield
    except KeyboardInterrupt:
        sync(wait_for_others())
        raise


ZARR = Format(
    "zarr",
    "Zarr group of all positions",
    "positions.zarr",
    write,
    "zarr",
    "zarr",
    fields=True,
    obstacles=False,
)
