"""HDF5 export: one file with the store's groups and one chunk per sample."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np

from supple.datasets.exports.rows import SPLITS
from supple.datasets.read.dataset import Dataset
from supple.support.progress import Progress

READING_GUIDE = """, `samples.h5` has all else, as HDF5.

```python
import h5py

with h5py.File("samples.h5") as file:
    train = file["splits/train"][:]
    outputs, inputs = file["samples/{quantity}"][:][train], file["inputs/{label}"][:][train]
    points, relative_residual = file["rest/points"][:], file["report/relative_residual"][:]
```

Rows of `samples/` are the samples, in chunks of one; `inputs/` and `report/` have as many rows, what varied
and outcome, relative residual, position error, energy, iterations and seconds. `splits/` has the rows
for training, validation and test, `id` the number of each in the design, `rest/` points, cells, edges and
masses; the attribute `supple` of the file is JSON of the spec and the environment.
"""


def write(folder: Path, data: Dataset, progress: Progress) -> None:
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
        for part in SPLITS:
            file[f"splits/{part}"] = np.flatnonzero(np.isin(ids, data.split(part)))
        quantities = data.store.quantities
        made = {
            quantity.name: file.create_dataset(
                f"samples/{quantity.name}",
                (len(ids), *quantity.shape),
                data.store.dtype,
                chunks=(1, *quantity.shape),
            )
            for quantity in quantities
        }
        for row, sample in enumerate(ids):
            for name, rows in made.items():
                rows[row] = data[name][int(sample)]
            progress(row + 1, len(ids))
