"""HDF5: one file with a chunk for each sample, in groups as in the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from supple.datasets.exports.rows import PARTS
from supple.datasets.opened import Dataset


def write(folder: Path, data: Dataset, watch: Callable[[int, int], None]) -> None:
    ids = data.ids
    with h5py.File(folder / "samples.h5", "w") as file:
        file.attrs["supple"] = json.dumps(data.store.facts)
        file["id"] = ids
        for name, values in data.rest.items():
            file[f"rest/{name}"] = values
        for name, column in data.inputs.items():
            file[f"inputs/{name}"] = column[ids]
        for name, column in data.report.items():
            file[f"report/{name}"] = column[ids]
        for part in PARTS:
            file[f"splits/{part}"] = np.flatnonzero(np.isin(ids, data.split(part)))
        kinds = data.store.kinds
        made = {
            kind.name: file.create_dataset(
                f"samples/{kind.name}", (len(ids), *kind.shape), data.store.dtype, chunks=(1, *kind.shape)
            )
            for kind in kinds
        }
        for row, sample in enumerate(ids):
            for name, rows in made.items():
                rows[row] = data[name][int(sample)]
            watch(row + 1, len(ids))
