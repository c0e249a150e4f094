"""Journal of an unfinished shard, and release of failed samples for another attempt.

Each solved sample is appended, so that another worker can resume the shard after an interruption.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.errors import DatasetError
from supple.datasets.store.dataset_store import Store, to_json_number
from supple.datasets.store.summary import (
    REPORT_FILE,
    UNFINISHED_REPORT,
)
from supple.datasets.store.zarr_arrays import Shard, write_text

ENTRY_HEADER = struct.Struct("<II")
"""Length and checksum of the entry that follows."""


@dataclass(frozen=True)
class Row:
    """One sample.

    Attributes:
        report: Columns of its report.
        quantities: Quantities in storage precision; None if it did not converge.
        positions: (n, 3) float64 positions [m], used to predict initial positions of later samples.
        sentence: Reason for a missing result.
        check: Comparison of warm start and cold start, if both were solved.
    """

    report: dict[str, Any]
    quantities: dict[str, np.ndarray] | None
    positions: np.ndarray | None
    sentence: str = ""
    check: dict[str, Any] | None = None


class Journal:
    """Journal of a shard. Write errors are ignored: the journal only saves time."""

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._identity = path, identity

    def read(self) -> dict[int, Row]:
        """Read all complete entries; truncates the file after the last one."""
        entries: dict[int, Row] = {}
        try:
            content = self._path.read_bytes()
        except OSError:
            return entries
        at = 0
        while at + ENTRY_HEADER.size <= len(content):
            length, checksum = ENTRY_HEADER.unpack_from(content, at)
            entry = content[at + ENTRY_HEADER.size : at + ENTRY_HEADER.size + length]
            if len(entry) != length or zlib.crc32(entry) != checksum:
                break
            sample, row = _parse_entry(entry, self._identity)
            if row is None:
                break
            entries[sample] = row
            at += ENTRY_HEADER.size + length
        if at < len(content):  # incomplete entry of an interrupted process
            with suppress(OSError):
                os.truncate(self._path, at)
        return entries

    def add(self, sample: int, row: Row) -> None:
        """Append a sample."""
        entry = _serialize_entry(sample, row, self._identity)
        with suppress(OSError), self._path.open("ab", buffering=0) as file:
            file.write(ENTRY_HEADER.pack(len(entry), zlib.crc32(entry)) + entry)

    def close(self) -> None:
        """Delete the journal of a finished shard."""
        with suppress(OSError):
            self._path.unlink()


def finished_rows(store: Store, shard: int) -> Iterator[tuple[int, Row]]:
    """Yield sample numbers and journal entries of a finished shard.

    Raises:
        DatasetError: A sample is damaged.
    """
    manifest = store.manifest(shard)
    shards = {
        k.name: Shard(store.file(k.name, shard), k.shape, store.dtype, store.shard) for k in store.quantities
    }
    checks = {check["sample"]: check for check in manifest["checks"]}
    for slot, sample in enumerate(store.ids(shard)):
        report = {
            name: float(column[slot]) if isinstance(column[slot], str) else column[slot]
            for name, column in manifest["report"].items()
        }
        sentence = manifest["failures"].get(str(sample))
        quantities = None
        if sentence is None:
            quantities = {name: shards[name][slot] for name in shards}
            for name, values in quantities.items():
                _refuse_damaged(store.file(name, shard), sample, values, manifest["checksums"][name][slot])
        positions = None
        if quantities is not None and "positions" in quantities:
            positions = quantities["positions"].astype(float)
        yield sample, Row(report, quantities, positions, sentence or "", checks.get(sample))


def _refuse_damaged(path: Path, sample: int, values: np.ndarray, checksum: int | None) -> None:
    if zlib.crc32(values.data) != checksum:
        raise DatasetError(
            f"{path}: sample {sample} is damaged: its checksum is wrong. Run `supple dataset verify "
            "--discard`, then `supple dataset resume`, to solve its shard again."
        )


def _serialize_entry(sample: int, row: Row, identity: str) -> bytes:
    """Serialize a sample: one line of JSON with array types and shapes, then the raw array data."""
    arrays = {f"q_{name}": values for name, values in (row.quantities or {}).items()}
    if row.positions is not None:
        arrays["positions"] = row.positions
    header = {
        "identity": identity,
        "sample": sample,
        "figures": {name: to_json_number(value) for name, value in row.report.items()},
        "sentence": row.sentence,
        "check": row.check,
        "arrays": {name: [values.dtype.str, values.shape] for name, values in arrays.items()},
    }
    return b"".join([json.dumps(header).encode(), b"\n", *(values.tobytes() for values in arrays.values())])


def _parse_entry(entry: bytes, identity: str) -> tuple[int, Row | None]:
    end = entry.find(b"\n")
    try:
        header = json.loads(entry[:end])
    except ValueError:  # not an entry of a journal
        return 0, None
    if header["identity"] != identity:
        return 0, None
    arrays, at = {}, end + 1
    for name, (kind, shape) in header["arrays"].items():
        count = math.prod(shape)
        arrays[name] = np.frombuffer(entry, kind, count, at).reshape(shape)
        at += arrays[name].nbytes
    positions = arrays.pop("positions", None)
    quantities = {name.removeprefix("q_"): values for name, values in arrays.items()}
    report = {name: float(v) if isinstance(v, str) else v for name, v in header["figures"].items()}
    row = Row(report, quantities or None, positions, header["sentence"], header["check"])
    return int(header["sample"]), row


def release_failed(store: Store, shards: Iterable[int]) -> int:
    """Mark shards with failed samples as unfinished and return the number of failed samples.

    All other samples of these shards are written to their journals and are not solved again. Reports count as
    unfinished from then on. Manifests are deleted last, so that an interrupted call loses nothing.
    """
    count = 0
    for shard in shards:
        if not (failures := store.manifest(shard)["failures"]):
            continue
        journal = Journal(store.journal_file(shard), store.facts["identity"])
        journal.close()  # left by an interrupted attempt
        for sample, row in finished_rows(store, shard):
            if str(sample) not in failures:
                journal.add(sample, row)
        write_text(store.path / REPORT_FILE, UNFINISHED_REPORT)
        store.manifest_file(shard).unlink()
        count += len(failures)
    return count
