"""Data set on disk: a Zarr hierarchy with one manifest per finished shard."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.errors import DamagedError, DatasetError
from supple.datasets.read.quantities import Quantity
from supple.datasets.store.splits import split_of
from supple.datasets.store.store_checksums import has_valid_checksum, read_verified, write_with_checksum
from supple.datasets.store.zarr_arrays import chunk_file, read_array, write_shard
from supple.io.replace_file import find_leftovers, is_abandoned, restore_replaced

SCHEMA_VERSION = 4
"""Layout version; stores of other versions are rejected. Versions 1 and 2 have other names of columns and
outcomes, version 3 other keys of the spec."""

MANIFEST_FOLDER = "shards"
"""Folder of the shard manifests, each written after all data of its shard."""

OUTCOMES = (
    "missing", "converged", "fixed_iterations", "max_iterations", "time_limit", "stagnated", "rounding_limit",
    "failed", "invalid", "crashed", "unbounded", "intersecting",
)  # fmt: skip
"""Outcomes of a sample; the first one, code 0, is the fill value."""

GOOD_OUTCOMES = ("converged",)

REQUIRED_FACTS = (
    "identity", "origin", "files", "title", "count", "grown", "shard", "precision", "quantities", "varied",
    "bodies", "pins", "vertices", "spec", "created", "machine", "versions",
)  # fmt: skip
"""Attributes of zarr.json in every store."""

REPORT_COLUMNS: dict[str, Any] = {
    "outcome": np.uint8,
    "relative_residual": np.float64,
    "position_error": np.float64,
    "energy": np.float64,
    "iterations": np.int64,
    "seconds": np.float64,
    "inverted": np.int64,
    "retries": np.int64,
    "warm": np.uint8,
    "stable": np.uint8,
}
"""Report columns of every sample. warm: 1 if the solve started from other samples rather than from the
scene's initial positions. stable: 1 if the energy increases in every direction, as far as this was computed.
"""


class Store:
    """An existing store.

    Attributes:
        path: Folder of the store.
        facts: Attributes of zarr.json.

    Raises:
        DatasetError: The folder has no data set, or one of another version.
        DamagedError: zarr.json is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        restore_replaced(path)
        try:
            text = (path / "zarr.json").read_text(encoding="utf-8")
            self.facts: dict[str, Any] = json.loads(text)["attributes"]["supple"]
            schema = int(self.facts["schema"])
        except FileNotFoundError:
            raise DatasetError(f"{path} is not a data set: it has no zarr.json.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"{path} cannot be read as a data set of supple ({error}).") from None
        if schema != SCHEMA_VERSION:
            raise DatasetError(_describe_other_layout(path, schema, self.facts.get("versions")))
        if missing := [name for name in REQUIRED_FACTS if name not in self.facts]:
            raise DamagedError(f"{path / 'zarr.json'} is damaged: it lacks {', '.join(missing)}.")
        self.is_metadata_valid = has_valid_checksum(text)
        """True if zarr.json matches its checksum."""

    @property
    def count(self) -> int:
        return int(self.facts["count"])

    @property
    def previous_counts(self) -> list[int]:
        """Sample counts before each extension."""
        return list(self.facts["grown"])

    @property
    def shard(self) -> int:
        """Samples per shard."""
        return int(self.facts["shard"])

    @property
    def shards(self) -> int:
        return -(-self.count // self.shard)

    def ids(self, shard: int) -> range:
        """Sample ids of a shard."""
        return range(shard * self.shard, min(self.count, (shard + 1) * self.shard))

    @property
    def quantities(self) -> list[Quantity]:
        return [Quantity(k["name"], tuple(k["shape"]), tuple(k["axes"])) for k in self.facts["quantities"]]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.facts["precision"])

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.facts["spec"])

    @cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        """Values (count,) or (count, size) of varied quantities, in id order."""
        labels = [varied["label"] for varied in self.facts["varied"]]
        return {label: read_array(self.path / "inputs" / label) for label in labels}

    def parts_of(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """Ids that belong to the train, valid and test splits."""
        return split_of(ids, self.spec["seed"], self.spec["splits"])

    def file(self, name: str, shard: int) -> Path:
        """Shard file of a quantity."""
        quantity = next(quantity for quantity in self.quantities if quantity.name == name)
        return self.path / "samples" / name / chunk_file(len(quantity.shape) + 1, shard)

    def manifest_file(self, shard: int) -> Path:
        return self.path / MANIFEST_FOLDER / f"{shard:06d}.json"

    def journal_file(self, shard: int) -> Path:
        """Journal of an unfinished shard."""
        return self.path / MANIFEST_FOLDER / f"{shard:06d}.journal"

    def finished_shards(self) -> list[int]:
        """Sorted numbers of shards with a manifest."""
        names = {file.name for file in (self.path / MANIFEST_FOLDER).glob("*.json")}
        return [shard for shard in range(self.shards) if self.manifest_file(shard).name in names]

    def manifest(self, shard: int) -> dict[str, Any]:
        try:
            return read_verified(self.manifest_file(shard))
        except DatasetError as error:
            raise DatasetError(
                f"{error} Delete it, and `supple dataset resume` solves its shard again."
            ) from None

    def publish(
        self,
        shard: int,
        samples: Mapping[str, Sequence[np.ndarray | None]],
        report: Mapping[str, Sequence[Any]],
        extra_entries: Mapping[str, Any],
    ) -> None:
        """Write shard data, then the manifest; incomplete shards never count as finished.

        Args:
            shard: Number of the shard.
            samples: Quantities of each sample; None for failed samples.
            report: Report columns.
            extra_entries: Additional entries of the manifest.

        Raises:
            DatasetError: The store was extended or replaced since it was opened.
        """
        self._refuse_replaced()
        checksums, sums, ids = {}, {}, np.array(self.ids(shard))
        for name, chunks in samples.items():
            present = [k for k, chunk in enumerate(chunks) if chunk is not None]
            shape = next(quantity.shape for quantity in self.quantities if quantity.name == name)
            values = np.array([chunks[k] for k in present], self.dtype).reshape(len(present), *shape)
            write_shard(self.file(name, shard), values, present, self.shard)
            checksum_by_slot = dict(zip(present, map(zlib.crc32, values), strict=True))
            checksums[name] = [checksum_by_slot.get(k) for k in range(len(chunks))]
            sums[name] = {
                part: sums_of(values[np.isin(ids[present], own)]) for part, own in self.parts_of(ids).items()
            }
        columns = {name: [to_json_number(v) for v in report[name]] for name in REPORT_COLUMNS}
        write_with_checksum(
            self.manifest_file(shard),
            {**extra_entries, "report": columns, "checksums": checksums, "sums_by_part": sums},
        )

    def _refuse_replaced(self) -> None:
        """Refuse to write to a store extended or replaced since opening."""
        if Store(self.path).facts["identity"] != self.facts["identity"]:
            raise DatasetError(
                f"{self.path} has grown or was replaced during this solve; run `supple dataset "
                f"resume {self.path}`."
            )

    def clear_abandoned(self) -> None:
        """Delete temporary files and replaced folders of killed processes, in the store and next to it."""
        leftovers = find_leftovers(self.path, "unfinished", "replaced") if self.path.exists() else []
        for path in [*self.path.rglob(".unfinished_*"), *leftovers]:
            if is_abandoned(path):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _describe_other_layout(path: Path, schema: int, versions: object) -> str:
    """Sentence that refuses a store of another layout, of which only the schema number is relied on."""
    version = versions.get("supple", "") if isinstance(versions, dict) else ""
    needed = "a later version is needed to read it" if schema > SCHEMA_VERSION else "compute it again"
    return (
        f"{path} was written by {f'supple {version}'.rstrip()} in layout {schema}, not {SCHEMA_VERSION}; "
        f"{needed}."
    )


def to_json_number(value: Any) -> Any:
    """JSON-compatible number; NaN and infinity become text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if not isinstance(value, float) or np.isfinite(value) else repr(value)


BLOCK_SIZE = 32
"""Number of samples summed per block, chosen to fit in the processor cache."""


def sums_of(chunks: np.ndarray) -> dict[str, Any]:
    """Per-coordinate count, sum, sum of squares, minimum and maximum of chunks (k, ...).

    Coordinates are the last axis; chunks with at most one axis per sample are scalar. Samples are summed
    first, in memory order.
    """
    if not len(chunks):
        return {"count": 0}
    wide = chunks.shape[-1] if chunks.ndim > 2 else 1
    flat = chunks.reshape(len(chunks), -1)
    total, squares = np.zeros(flat.shape[1]), np.zeros(flat.shape[1])
    for first in range(0, len(flat), BLOCK_SIZE):
        values = flat[first : first + BLOCK_SIZE].astype(float)
        total += values.sum(axis=0)
        squares += np.einsum("ki,ki->i", values, values)
    return {
        "count": flat.size // wide,
        "sum": total.reshape(-1, wide).sum(axis=0).tolist(),
        "squares": squares.reshape(-1, wide).sum(axis=0).tolist(),
        "min": flat.min(axis=0).astype(float).reshape(-1, wide).min(axis=0).tolist(),
        "max": flat.max(axis=0).astype(float).reshape(-1, wide).max(axis=0).tolist(),
    }
