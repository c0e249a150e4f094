"""Lance export: a table with one row per sample, readable by Hugging Face `datasets`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from supple.datasets.exports.rows import part_of
from supple.datasets.read.dataset import Dataset
from supple.support.progress import Progress

READING_GUIDE = """, `samples.lance` a table with a row for each sample, `rest.npz` what all
samples share: points, cells, edges and masses.

```python
import lance
import numpy as np

table = lance.dataset("samples.lance").to_table(filter="split = 'train'")
shape = [int(size) for size in table.schema.metadata[b"shape:{quantity}"].split(b",")]
outputs = np.array(table["{quantity}"].to_pylist()).reshape(-1, *shape)
points, relative_residual = np.load("rest.npz")["points"], table["relative_residual"].to_numpy()
```

Columns: `id`, the number in the design; `split`, one of train, valid and test; what varied, with _ in place
of dots; outcome, relative residual, position error, energy, iterations and seconds; and the quantities
as flat lists, whose shapes are in the metadata of the schema.
"""


def write(folder: Path, data: Dataset, progress: Progress) -> None:
    """Write samples.lance and rest.npz.

    Quantities are flat lists of fixed size; the schema metadata contains their shapes.
    """
    schema = _schema(data)
    parts = part_of(data)

    def batches() -> Iterator[Any]:
        for first in range(0, len(data.ids), data.store.shard):
            ids = data.ids[first : first + data.store.shard]
            yield pa.RecordBatch.from_arrays(_columns(data, ids, parts, schema), schema=schema)
            progress(min(first + len(ids), len(data.ids)), len(data.ids))

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    lance.write_dataset(reader, str(folder / "samples.lance"), schema=schema)
    np.savez(folder / "rest.npz", **data.rest)  # type: ignore[arg-type]


def _schema(data: Dataset) -> Any:
    number = pa.from_numpy_dtype(data.store.dtype)
    fields = [pa.field("id", pa.int64()), pa.field("split", pa.string())]
    for name, column in data.inputs.items():
        data_type = pa.float64() if column.ndim == 1 else pa.list_(pa.float64(), column.shape[1])
        fields.append(pa.field(_flat(name), data_type))
    fields += [pa.field(name, pa.from_numpy_dtype(column.dtype)) for name, column in data.report.items()]
    shapes = {}
    for quantity in data.store.quantities:
        fields.append(pa.field(quantity.name, pa.list_(number, int(np.prod(quantity.shape)))))
        shapes[f"shape:{quantity.name}"] = ",".join(map(str, quantity.shape))
    return pa.schema(fields, metadata=shapes | {"title": data.title})


def _flat(name: str) -> str:
    """Column name without dots, which Lance reserves for fields of structures."""
    return name.replace(".", "_")


def _columns(data: Dataset, ids: np.ndarray, parts: dict[int, str], schema: Any) -> list[Any]:
    columns: list[Any] = [pa.array(ids, pa.int64()), pa.array([parts[int(i)] for i in ids], pa.string())]
    for column in (*data.inputs.values(), *data.report.values()):
        columns.append(_array(column[ids]))
    for quantity in data.store.quantities:
        columns.append(_array(data[quantity.name][ids].reshape(len(ids), -1)))
    return columns


def _array(values: np.ndarray) -> Any:
    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
