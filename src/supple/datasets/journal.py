"""What a worker has done of a shard that it has not finished: a file to which every sample is added, so that
whoever takes the shard up after the worker's end goes on where it was."""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.arrays import Shard
from supple.datasets.errors import DatasetError
from supple.datasets.store import Store, plain

HEAD = struct.Struct("<II")
"""Length and checksum of what follows."""


@dataclass(frozen=True)
class Row:
    """One sample. figures: of its report; quantities: as they are stored, None where it did not converge;
    positions (n, 3) float64: where the next ones may begin; sentence: why it has none; check: what came of
    solving it twice."""

    figures: dict[str, Any]
    quantities: dict[str, np.ndarray] | None
    positions: np.ndarray | None
    sentence: str = ""
    check: dict[str, Any] | None = None


class Journal:
    """The journal of a shard. What cannot be written is left away: it would only have saved time."""

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._identity = path, identity

    def read(self) -> dict[int, Row]:
        """The samples that are there as a whole."""
        found: dict[int, Row] = {}
        try:
            content = self._path.read_bytes()
        except OSError:
            return found
        at = 0
        while at + HEAD.size <= len(content):
            length, checksum = HEAD.unpack_from(content, at)
            entry = content[at + HEAD.size : at + HEAD.size + length]
            if len(entry) != length or zlib.crc32(entry) != checksum:
                break
            sample, row = _row(entry, self._identity)
            if row is None:
                break
            found[sample] = row
            at += HEAD.size + length
        if at < len(content):  # the end of who wrote it cut it short
            with suppress(OSError):
                os.truncate(self._path, at)
        return found

    def add(self, sample: int, row: Row) -> None:
        entry = _entry(sample, row, self._identity)
        with suppress(OSError), self._path.open("ab", buffering=0) as file:
            file.write(HEAD.pack(len(entry), zlib.crc32(entry)) + entry)

    def close(self) -> None:
        """The shard is finished."""
        with suppress(OSError):
            self._path.unlink()


def finished_rows(store: Store, shard: int) -> Iterator[tuple[int, Row]]:
    """The samples of a finished shard, each with its number, as its journal had them; a `DatasetError` where
    one is damaged."""
    account = store.account(shard)
    found = {k.name: Shard(store.file(k.name, shard), k.shape, store.dtype, store.shard) for k in store.kinds}
    checks = {check["sample"]: check for check in account["checks"]}
    for place, sample in enumerate(store.ids(shard)):
        figures = {
            name: float(column[place]) if isinstance(column[place], str) else column[place]
            for name, column in account["report"].items()
        }
        sentence = account["failures"].get(str(sample))
        quantities = None
        if sentence is None:
            quantities = {name: found[name][place] for name in found}
            for name, values in quantities.items():
                _refuse_damaged(store.file(name, shard), sample, values, account["checksums"][name][place])
        positions = None
        if quantities is not None and "positions" in quantities:
            positions = quantities["positions"].astype(float)
        yield sample, Row(figures, quantities, positions, sentence or "", checks.get(sample))


def _refuse_damaged(path: Path, sample: int, values: np.ndarray, checksum: int | None) -> None:
    if zlib.crc32(values.data) != checksum:
        raise DatasetError(
            f"{path}: sample {sample} is damaged: its checksum is wrong. `supple dataset verify --discard` "
            "and then `supple dataset resume` solve its shard again."
        )


def _entry(sample: int, row: Row, identity: str) -> bytes:
    """A line of JSON that says what follows it, and then the numbers of all arrays."""
    arrays = {f"q_{name}": values for name, values in (row.quantities or {}).items()}
    if row.positions is not None:
        arrays["positions"] = row.positions
    said = {
        "identity": identity,
        "sample": sample,
        "figures": {name: plain(value) for name, value in row.figures.items()},
        "sentence": row.sentence,
        "check": row.check,
        "arrays": {name: [values.dtype.str, values.shape] for name, values in arrays.items()},
    }
    return b"".join([json.dumps(said).encode(), b"\n", *(values.tobytes() for values in arrays.values())])


def _row(entry: bytes, identity: str) -> tuple[int, Row | None]:
    end = entry.find(b"\n")
    try:
        said = json.loads(entry[:end])
    except ValueError:  # of an earlier version of supple
        return 0, None
    if said["identity"] != identity:
        return 0, None
    arrays, at = {}, end + 1
    for name, (kind, shape) in said["arrays"].items():
        count = math.prod(shape)
        arrays[name] = np.frombuffer(entry, kind, count, at).reshape(shape)
        at += arrays[name].nbytes
    positions = arrays.pop("positions", None)
    quantities = {name.removeprefix("q_"): values for name, values in arrays.items()}
    figures = {name: float(v) if isinstance(v, str) else v for name, v in said["figures"].items()}
    row = Row(figures, quantities or None, positions, said["sentence"], said["check"])
    return int(said["sample"]), row
