"""WebDataset export: tar files for sequential reading, with files of equal base name per sample."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np

from supple.datasets.exports.rows import SPLITS, quantity_values, sample_metadata
from supple.datasets.read.dataset import Dataset
from supple.support.progress import Progress

READING_GUIDE = """, tar files such as `train-000000.tar` have the samples, those of training, validation
and test apart, `rest.npz` what all samples share: points, cells, edges and masses.

```python
from glob import glob

import numpy as np
import webdataset

files = sorted(glob("train-*.tar"))
for sample in webdataset.WebDataset(files, shardshuffle=False).decode():
    output, about = sample["{quantity}.npy"], sample["json"]
    value, relative_residual = about["inputs"]["{label}"], about["report"]["relative_residual"]
points = np.load("rest.npz")["points"]
```

A sample is a file for each quantity and one of JSON: its `id` in the design, `inputs`, what varied, and
`report`, outcome, relative residual, position error, energy, iterations and seconds. Any program that
reads tar files opens them, too.
"""


def write(folder: Path, data: Dataset, progress: Progress) -> None:
    """Write tar files such as train-000000.tar, and rest.npz with the arrays shared by all samples."""
    done = 0
    for part in SPLITS:
        ids = data.split(part)
        for number, first in enumerate(range(0, len(ids), data.store.shard)):
            with tarfile.open(folder / f"{part}-{number:06d}.tar", "w") as tar:
                for sample in ids[first : first + data.store.shard]:
                    key = f"{int(sample):08d}"
                    for name, values in quantity_values(data, int(sample)).items():
                        _add(tar, f"{key}.{name}.npy", _npy(values))
                    _add(tar, f"{key}.json", json.dumps(sample_metadata(data, int(sample))).encode())
                    done += 1
                    progress(done, len(data.ids))
    np.savez(folder / "rest.npz", **data.rest)  # type: ignore[arg-type]


def _npy(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
