"""A data set on disk: a Zarr hierarchy, and for each finished shard an account that it is."""

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
from supple.io.replacing import is_abandoned, left_beside, put_back

SCHEMA = 1
"""Of the layout; a reader refuses stores of a later one."""

ACCOUNTS = "shards"
"""The folder of the accounts, each written when all of its shard is on disk."""

OUTCOMES = (
    "missing", "converged", "completed", "budget_iterations", "budget_time", "stagnated", "precision",
    "failed", "invalid", "crashed", "unbounded", "passed",
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
        put_back(path)
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
    def grown(self) -> list[int]:
        """How many samples it had before each time that it grew."""
        return list(self.facts.get("grown", []))

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

    def account_file(self, shard: int) -> Path:
        return self.path / ACCOUNTS / f"{shard:06d}.json"

    def journal_file(self, shard: int) -> Path:
        """What is done of a shard that is not finished."""
        return self.path / ACCOUNTS / f"{shard:06d}.journal"

    def finished(self) -> list[int]:
        """Numbers of the shards whose account is there, in order."""
        return sorted(int(file.stem) for file in (self.path / ACCOUNTS).glob("*.json") if file.stem.isdigit())

    def account(self, shard: int) -> dict[str, Any]:
        path = self.account_file(shard)
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
        """Write all of a shard, its account last: what is not complete is never taken for finished."""
        self._refuse_another()
        checksums, sums = {}, {}
        for name, chunks in samples.items():
            there = [k for k, chunk in enumerate(chunks) if chunk is not None]
            shape = next(kind.shape for kind in self.kinds if kind.name == name)
            whole = np.array([chunks[k] for k in there], self.dtype).reshape(len(there), *shape)
            write_shard(self.file(name, shard), whole, there, self.shard)
            found = dict(zip(there, map(zlib.crc32, whole), strict=True))
            checksums[name] = [found.get(k) for k in range(len(chunks))]
            sums[name] = _sums(whole)
        columns = {name: [plain(v) for v in report[name]] for name in COLUMNS}
        write_json(
            self.account_file(shard), {**further, "report": columns, "checksums": checksums, "sums": sums}
        )

    def _refuse_another(self) -> None:
        """Nothing is written where the set has grown or was replaced since this one was opened."""
        if Store(self.path).facts["identity"] != self.facts["identity"]:
            raise DatasetError(
                f"{self.path} has grown or was replaced while this was solved; start again to go on with it."
            )

    def clear_abandoned(self) -> None:
        """Delete what those who were killed have left unfinished, in the store and beside it, and what it
        replaced."""
        beside = left_beside(self.path, "unfinished", "replaced") if self.path.exists() else []
        for path in [*self.path.rglob(".unfinished_*"), *beside]:
            if is_abandoned(path):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """A number that JSON has; NaN and infinity become text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if not isinstance(value, float) or np.isfinite(value) else repr(value)


BLOCK = 32
"""Samples that are summed up together: about what a processor's cache holds."""


def _sums(chunks: np.ndarray) -> dict[str, Any]:
    """Of chunks (k, ...), for each number of their last axis, as far as it is one of coordinates: count, sum,
    sum of squares, least and greatest. Summed over samples first, along which memory is read as it lies."""
    if not len(chunks):
        return {"count": 0}
    wide = chunks.shape[-1] if chunks.ndim > 2 else 1
    flat = chunks.reshape(len(chunks), -1)
    total, squares = np.zeros(flat.shape[1]), np.zeros(flat.shape[1])
    for first in range(0, len(flat), BLOCK):
        values = flat[first : first + BLOCK].astype(float)
        total += values.sum(axis=0)
        squares += np.einsum("ki,ki->i", values, values)
    return {
        "count": flat.size // wide,
        "sum": total.reshape(-1, wide).sum(axis=0).tolist(),
        "squares": squares.reshape(-1, wide).sum(axis=0).tolist(),
        "min": flat.min(axis=0).astype(float).reshape(-1, wide).min(axis=0).tolist(),
        "max": flat.max(axis=0).astype(float).reshape(-1, wide).max(axis=0).tolist(),
    }
