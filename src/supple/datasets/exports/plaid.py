"""PLAID export with the Zarr backend: one group per sample, shared constants, and a learning problem.

YAML files are written as JSON, a subset of YAML.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.exports.rows import SPLITS
from supple.datasets.read.dataset import Dataset
from supple.datasets.store.zarr_arrays import group, write_array, write_json
from supple.support.progress import Progress

MESH_PATH = "Base_3_3/Zone"
"""CGNS path of the mesh."""

READING_GUIDE = """, all else is in the layout of PLAID: `infos.yaml`, `variable_schema.yaml`, the
learning problem in `problem_definitions/`, samples in `data/`, those of training, validation and test apart,
and what they share in `constants/`. This layout keeps each sample as a group of Zarr.

```python
import json
from pathlib import Path

import numpy as np
import zarr

sample = zarr.open_group("data/train/sample_000000000", mode="r")
arrays = {{name: values[...] for name, values in sample.arrays()}}
layout = json.loads(Path("constants/train/layout.json").read_text())["points"]
at, shape = layout["offset"], tuple(layout["shape"])
points = np.memmap("constants/train/data.mmap", layout["dtype"], "r", at, shape)
```

Names of arrays are CGNS paths with __ in place of /, those of what varied begin with
Global__; the attribute `id` of a sample is its number in the design.
"""


def write(folder: Path, data: Dataset, progress: Progress) -> None:
    inputs = {f"Global/{name}": column for name, column in data.inputs.items()}
    outputs = {
        quantity.name: f"{MESH_PATH}/{_where(quantity.axes)}/{quantity.name}"
        for quantity in data.store.quantities
    }
    _yaml(folder / "infos.yaml", _infos(data))
    _yaml(folder / "variable_schema.yaml", _schema(data, inputs, outputs))
    done = 0
    for part in SPLITS:
        ids = data.split(part)
        _write_constants(folder / "constants" / part, data)
        write_json(folder / "data" / part / "zarr.json", group())
        for number, sample in enumerate(map(int, ids)):
            own = folder / "data" / part / f"sample_{number:09d}"
            write_json(own / "zarr.json", group({"id": sample}))
            for path, column in inputs.items():
                write_array(
                    own / path.replace("/", "__"), np.asarray(column[sample]), ("c",)[: column.ndim - 1]
                )
            for name, path in outputs.items():
                values = np.asarray(data[name][sample])
                write_array(own / path.replace("/", "__"), values, data[name].dims[1:])
            done += 1
            progress(done, len(data.ids))
    problem = {
        "name": "equilibria",
        "task": "regression",
        "input_features": sorted(inputs),
        "output_features": sorted(outputs.values()),
        "constant_features": [f"{MESH_PATH}/GridCoordinates", f"{MESH_PATH}/Elements"],
        "split": {part: list(range(len(data.split(part)))) for part in SPLITS},
    }
    _yaml(folder / "problem_definitions" / "equilibria.yaml", problem)


def _where(axes: tuple[str, ...]) -> str:
    return {"vertex": "VertexFields", "cell": "CellCenterFields"}.get(axes[0], "Global")


def _infos(data: Dataset) -> dict[str, Any]:
    facts, spec = data.store.facts, data.store.spec
    return {
        "legal": {"owner": "", "license": spec["license"]},
        "data_production": {
            "type": "simulation",
            "physics": "quasistatic hyperelasticity",
            "simulator": f"supple {facts['versions']['supple']}",
            "hardware": facts["machine"]["cpu"],
            "script": "scene.toml",
        },
        "data_description": {"number_of_samples": len(data.ids), "description": data.title},
        "num_samples": {part: len(data.split(part)) for part in SPLITS},
        "storage_backend": "zarr",
    }


def _schema(data: Dataset, inputs: dict[str, np.ndarray], outputs: dict[str, str]) -> dict[str, Any]:
    schema: dict[str, Any] = {path: {"dtype": "float64", "ndim": v.ndim - 1} for path, v in inputs.items()}
    for quantity in data.store.quantities:
        schema[outputs[quantity.name]] = {"dtype": data.store.dtype.name, "ndim": len(quantity.shape)}
    return schema


def _write_constants(folder: Path, data: Dataset) -> None:
    """Write all constants to one memory-mappable file, and their offsets to layout.json."""
    folder.mkdir(parents=True)
    layout, offset = {}, 0
    with (folder / "data.mmap").open("wb") as file:
        for name, values in data.rest.items():
            file.write(values.tobytes())
            layout[name] = {"offset": offset, "shape": values.shape, "dtype": values.dtype.name}
            offset += values.nbytes
    (folder / "layout.json").write_text(json.dumps(layout), encoding="utf-8")


def _yaml(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=2), encoding="utf-8")
