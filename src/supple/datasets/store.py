"""A data set on disk: a Zarr hierarchy, and for each finished shard a record that it is."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.arrays import chunk_file, read_array, write_json, write_shard
from supple.datasets.errors import DatasetError
from supple.datasets.quantities import Kind

SCHEMA = 1
"""Of the layout; a reader refuses stores of a later one."""

RECORDS = "shards"
"""The folder of the records, each written when all of its shard is on disk."""

OUTCOMES = (
    "missing", "converged", "completed", "budget_iterations", "budget_time", "stagnated", "precision",
    "failed", "invalid", "crashed", "unbounded",
)  # fmt: skip
"""What became of a sample; the first is what an array has where nothing was written."""

GOOD = ("converged", "completed")

COLUMNS: dict[str, Any] = {
    "outcome": np.uint8,
    "imbalance": np.float64,
    "distance": np.float64,
    "energy": np.float64,
    "iterations": np.int64,
    "seconds": np.float64,
    "inverted": np.int64,
    "retries": np.int64,
    "warm": np.uint8,
    "stable": np.uint8,
}
"""The report of every sample; warm: whether it began at others rather than at the scene's own start; stable:
whether its energy rises in every direction, as far as that was computed."""


class Store:
    """A store that is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            root = json.loads((path / "zarr.json").read_text(encoding="utf-8"))
            self.facts: dict[str, Any] = root["attributes"]["supple"]
        except FileNotFoundError:
            raise DatasetError(f"{path} is no data set: it has no zarr.json.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"{path} is no data set of supple that can be read ({error}).") from None
        if self.facts["schema"] > SCHEMA:
            raise DatasetError(
                f"{path} was written by supple {self.facts['versions']['supple']}; a later one than "
                f"this is needed to read it."
            )

    @property
    def count(self) -> int:
        return int(self.facts["count"])

    @property
    def shard(self) -> int:
        """Samples in a shard."""
        return int(self.facts["shard"])

    @property
    def shards(self) -> int:
        return -(-self.count // self.shard)

    def ids(self, shard: int) -> range:
        """The samples of a shard."""
        return range(shard * self.shard, min(self.count, (shard + 1) * self.shard))

    @property
    def kinds(self) -> list[Kind]:
        return [Kind(k["name"], tuple(k["shape"]), tuple(k["axes"])) for k in self.facts["quantities"]]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.facts["precision"])

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.facts["spec"])

    @property
    def labels(self) -> list[str]:
        return [varied["label"] for varied in self.facts["varied"]]

    @cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        """(count,) or (count, size) values of each varied quantity, in the order of the ids."""
        return {label: read_array(self.path / "inputs" / label) for label in self.labels}

    def file(self, name: str, shard: int) -> Path:
        """Where the samples of a shard have a quantity."""
        kind = next(kind for kind in self.kinds if kind.name == name)
        return self.path / "samples" / name / chunk_file(len(kind.shape) + 1, shard)

    def record_file(self, shard: int) -> Path:
        return self.path / RECORDS / f"{shard:06d}.json"

    def journal_file(self, shard: int) -> Path:
        """What is done of a shard that is not finished."""
        return self.path / RECORDS / f"{shard:06d}.journal"

    def finished(self) -> list[int]:
        """Numbers of the shards whose record is there, in order."""
        return sorted(int(file.stem) for file in (self.path / RECORDS).glob("*.json") if file.stem.isdigit())

    def record(self, shard: int) -> dict[str, Any]:
        path = self.record_file(shard)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DatasetError(
                f"{path} is damaged ({error}). Delete it, and `supple dataset resume` solves its shard again."
            ) from None

    def publish(
        self,
        shard: int,
        samples: Mapping[str, Sequence[np.ndarray | None]],
        report: Mapping[str, Sequence[Any]],
        further: Mapping[str, Any],
    ) -> None:
        """Write all of a shard, its record last: what is not complete is never taken for finished."""
        checksums, sums = {}, {}
        for name, chunks in samples.items():
            rounded = [None if c is None else np.ascontiguousarray(c, self.dtype) for c in chunks]
            write_shard(self.file(name, shard), rounded, self.shard)
            checksums[name] = [None if c is None else zlib.crc32(c.data) for c in rounded]
            sums[name] = _sums([c for c in rounded if c is not None])
        columns = {name: [plain(v) for v in report[name]] for name in COLUMNS}
        write_json(
            self.record_file(shard), {**further, "report": columns, "checksums": checksums, "sums": sums}
        )

    def clear_unfinished(self) -> None:
        """Delete what workers that were killed have left behind; only while nobody writes."""
        for path in self.path.rglob(".unfinished_*"):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """A number that JSON has; NaN and infinity become text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if not isinstance(value, float) or np.isfinite(value) else repr(value)


def _sums(chunks: list[np.ndarray]) -> dict[str, Any]:
    """Of the last axis, as far as it is one of coordinates: count, sum, sum of squares, least and
    greatest."""
    if not chunks:
        return {"count": 0}
    wide = chunks[0].shape[-1] if chunks[0].ndim > 1 else 1
    values = np.concatenate([c.reshape(-1, wide) for c in chunks]).astype(float)
    return {
        "count": len(values),
        "sum": values.sum(axis=0).tolist(),
        "squares": (values * values).sum(axis=0).tolist(),
        "min": values.min(axis=0).tolist(),
        "max": values.max(axis=0).tolist(),
    }
