"""Reader and writer for the part of Zarr version 3 that data sets use.

Two kinds of arrays are supported: single-chunk arrays, and sharded arrays with one uncompressed chunk per
sample. The zarr package is not required; it reads the same files.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.errors import DatasetError
from supple.io.replace_file import replacing

LITTLE_ENDIAN_CODEC = {"name": "bytes", "configuration": {"endian": "little"}}
MISSING_CHUNK = 2**64 - 1
"""Offset and length of a missing chunk in the index of a shard."""


REPAIR_HINT = "Run `supple dataset verify --discard`, then `supple dataset resume`, to solve its shard again."


def group(attributes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Metadata of a Zarr group."""
    return {"zarr_format": 3, "node_type": "group", "attributes": dict(attributes or {})}


def array(
    shape: Sequence[int],
    dtype: np.dtype,
    axes: Sequence[str],
    shard: int | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Metadata of a Zarr array. Missing values read as NaN, or 0 for integer types.

    Args:
        shape: Shape of the array.
        dtype: Data type.
        axes: Dimension names.
        shard: Samples per shard along the first axis, one chunk each; a single chunk if None.
        attributes: User attributes.
    """
    inner = list(shape)
    codecs: list[dict[str, Any]] = [_bytes_codec(dtype)]
    if shard is not None:
        inner = [shard, *shape[1:]]
        configuration = {
            "chunk_shape": [1, *shape[1:]],
            "codecs": [_bytes_codec(dtype)],
            "index_codecs": [LITTLE_ENDIAN_CODEC, {"name": "crc32c"}],
            "index_location": "end",
        }
        codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [max(1, n) for n in inner]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN" if dtype.kind == "f" else False if dtype.kind == "b" else 0,
        "codecs": codecs,
        "attributes": dict(attributes or {}),
        "dimension_names": list(axes),
    }


def _bytes_codec(dtype: np.dtype) -> dict[str, Any]:
    return LITTLE_ENDIAN_CODEC if dtype.itemsize > 1 else {"name": "bytes"}


def chunk_file(dimensions: int, shard: int = 0) -> str:
    """Path of a shard, or of a single chunk, within its array folder."""
    return "/".join(["c", str(shard), *["0"] * (dimensions - 1)]) if dimensions else "c"


def write_json(path: Path, values: Any) -> None:
    """Write a JSON file atomically, synchronized to disk."""
    write_text(path, json.dumps(values))


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, synchronized to disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def write_array(folder: Path, values: np.ndarray, axes: Sequence[str], **attributes: Any) -> dict[str, Any]:
    """Write a single-chunk array; returns its metadata."""
    values = np.asarray(values)
    path = folder / chunk_file(values.ndim)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.write_bytes(values.tobytes())
    metadata = array(values.shape, values.dtype, axes, attributes=attributes)
    write_json(folder / "zarr.json", metadata)
    return metadata


def read_array(folder: Path) -> np.ndarray:
    """Read a single-chunk array.

    Raises:
        DatasetError: The size of the chunk file does not match the shape.
    """
    metadata = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
    shape, dtype = tuple(metadata["shape"]), np.dtype(metadata["data_type"])
    path = folder / chunk_file(len(shape))
    content = path.read_bytes()
    if len(content) != dtype.itemsize * int(np.prod(shape)):
        raise DatasetError(f"{path} is damaged: it has {len(content):,} bytes for an array of shape {shape}.")
    return np.frombuffer(content, dtype).reshape(shape)


def write_shard(path: Path, chunks: np.ndarray, slots: Sequence[int], size: int) -> None:
    """Write a shard atomically; unlisted slots are marked as missing.

    Args:
        path: File of the shard.
        chunks: (k, ...) chunks to write.
        slots: (k,) slot of each chunk within the shard.
        size: Number of slots.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    each = chunks.nbytes // max(len(chunks), 1)
    index = np.full((size, 2), MISSING_CHUNK, "<u8")
    for number, slot in enumerate(slots):
        index[slot] = number * each, each
    written = index.tobytes()
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        file.write(np.ascontiguousarray(chunks).data)
        file.write(written + struct.pack("<I", crc32c(written)))
        file.flush()
        os.fsync(file.fileno())


class Shard:
    """Memory-mapped shard; the operating system loads pages on access.

    Raises:
        DatasetError: The index is missing, fails its checksum or points beyond the end of the file.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype, size: int) -> None:
        self.path, self.shape, self.dtype = path, shape, dtype
        self._each = dtype.itemsize * int(np.prod(shape))
        tail = 16 * size + 4
        if path.stat().st_size < tail:
            raise DatasetError(f"{path} is damaged: it has no index. {REPAIR_HINT}")
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        written = self._map[-tail:-4]
        if struct.unpack("<I", self._map[-4:])[0] != crc32c(written):
            raise DatasetError(f"{path} is damaged: the checksum of its index is wrong. {REPAIR_HINT}")
        self._index = np.frombuffer(written, "<u8").reshape(size, 2)
        present = self._index[:, 0] != MISSING_CHUNK
        if (self._index[present, 1] != self._each).any() or (
            present.any() and int(self._index[present].sum(axis=1).max()) > len(self._map) - tail
        ):
            raise DatasetError(f"{path} is damaged: its index points beyond its end. {REPAIR_HINT}")

        self._rows = self._contiguous_view() if present.all() else None

    def _contiguous_view(self) -> np.ndarray | None:
        """View (size, ...) of all chunks if contiguous and ordered, otherwise None."""
        size = len(self._index)
        if not np.array_equal(self._index[:, 0], self._each * np.arange(size, dtype=np.uint64)):
            return None
        count = size * (self._each // self.dtype.itemsize)
        return np.frombuffer(self._map, self.dtype, count).reshape(size, *self.shape)

    def size_of(self, chunks: int) -> int:
        """File size in bytes of a shard with the given number of chunks."""
        return chunks * self._each + 16 * len(self._index) + 4

    def read_chunks(self, numbers: np.ndarray) -> np.ndarray:
        """Copy (k, ...) of the chunks with numbers (k,)."""
        if self._rows is not None:
            return self._rows[numbers]
        return np.stack([self[number] for number in numbers.tolist()])

    def __contains__(self, number: int) -> bool:
        return bool(self._index[number, 0] != MISSING_CHUNK)

    def __getitem__(self, number: int) -> np.ndarray:
        """Read-only view of a chunk; NaN or 0 for missing chunks."""
        if number not in self:
            return np.full(self.shape, np.nan if self.dtype.kind == "f" else 0, self.dtype)
        offset = int(self._index[number, 0])
        return np.frombuffer(self._map, self.dtype, self._each // self.dtype.itemsize, offset).reshape(
            self.shape
        )


@cache
def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


def crc32c(content: bytes) -> int:
    """CRC-32C (Castagnoli) checksum, used by Zarr for shard indices of about a kilobyte."""
    table, value = _table(), 0xFFFFFFFF
    for byte in content:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF
