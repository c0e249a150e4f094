"""VTU files through meshio, with a limit on the size of decompressed blocks."""

from __future__ import annotations

import base64
import lzma
import re
import zlib
from pathlib import Path
from typing import Any

import meshio
import numpy as np
from meshio.vtu._vtu import VtuReader, num_bytes_to_num_base64_chars, vtu_to_numpy_type

from supple.support.memory import format_bytes

write = meshio.vtu.write

LEAST_BUDGET, INFLATION = 2**28, 200
"""Limit on the decompressed size of a file in bytes, and as a multiple of the file size; meshes of regular
blocks expand by about 20."""


def read(name: str) -> meshio.Mesh:
    """Read a VTU file.

    Raises:
        ValueError: A block decompresses to more than its header states, or the file to more than the limit.
    """
    path = Path(name)
    budget = _Budget(max(LEAST_BUDGET, INFLATION * path.stat().st_size))
    _check_raw_blocks(path, budget)
    content = _Reader(name, budget)
    return meshio.Mesh(
        content.points,
        content.cells,
        point_data=content.point_data,
        cell_data=content.cell_data,
        field_data=content.field_data,
    )


class _Budget:
    """Remaining number of bytes to which the blocks of a file may decompress."""

    def __init__(self, left: int) -> None:
        self.left = left

    def inflate(self, compressor: str, data: bytes, header: np.ndarray) -> list[bytes]:
        """Decompress the blocks after a header: number of blocks, block size, size of the last, compressed
        sizes."""
        blocks, size, last = (int(number) for number in header[:3])
        claimed = (blocks - 1) * size + (last or size) if blocks else 0
        if claimed > self.left:
            raise ValueError(
                f"compressed data claims {format_bytes(claimed)}, more than {INFLATION} times the file's size"
            )
        self.left -= claimed
        blocks_data, at = [], 0
        for number in map(int, header[3 : 3 + blocks]):
            kind: Any = zlib.decompressobj() if compressor.endswith("ZLibDataCompressor") else None
            kind = kind or lzma.LZMADecompressor()
            block = kind.decompress(data[at : at + number], size + 1)
            if len(block) > size:
                raise ValueError(f"a compressed block is larger than the {format_bytes(size)} that it claims")
            blocks_data.append(block)
            at += number
        return blocks_data


class _Reader(VtuReader):  # type: ignore[misc]
    def __init__(self, name: str, budget: _Budget) -> None:
        self._budget = budget
        super().__init__(name)

    def read_compressed_binary(self, data: str, dtype: np.dtype[Any]) -> np.ndarray:
        kind = _with_byte_order(vtu_to_numpy_type[self.header_type], self.byte_order)
        first = _decode(data, 0, kind.itemsize)
        blocks = int(np.frombuffer(first, kind)[0])
        size = kind.itemsize * (3 + blocks)
        header = np.frombuffer(_decode(data, 0, size), kind)
        content = _decode(data, num_bytes_to_num_base64_chars(size), int(header[3:].sum()))
        inflated = self._budget.inflate(str(self.compression), content, header)
        return np.frombuffer(b"".join(inflated), _with_byte_order(dtype, self.byte_order))


def _decode(data: str, start: int, count: int) -> bytes:
    """Decode `count` bytes of base64 text, starting at a character."""
    content = base64.b64decode(data[start : start + num_bytes_to_num_base64_chars(count)])
    if len(content) < count:
        raise ValueError("compressed data is cut short")
    return content[:count]


def _with_byte_order(kind: np.dtype[Any], order: str | None) -> np.dtype[Any]:
    return kind if order is None else kind.newbyteorder("<" if order == "LittleEndian" else ">")


RAW_APPENDED_DATA = re.compile(rb'<AppendedData[^>]*encoding="raw"[^>]*>')


def _check_raw_blocks(path: Path, budget: _Budget) -> None:
    """Check the decompressed size of raw appended blocks before meshio decompresses them."""
    content = path.read_bytes()
    start = RAW_APPENDED_DATA.search(content)
    head = content[: start.end()] if start else b""
    compressor = re.search(rb'compressor="(\w+)"', head)
    if start is None or compressor is None:
        return
    order, kind = re.search(rb'byte_order="(\w+)"', head), re.search(rb'header_type="(\w+)"', head)
    numbers = _with_byte_order(
        vtu_to_numpy_type[kind[1].decode() if kind else "UInt32"], order[1].decode() if order else None
    )
    end = content.rfind(b"</AppendedData>")
    data = content[content.index(b"_", start.end()) + 1 : end].rsplit(b"\n", 1)[0]
    at = 0
    while at < len(data):
        blocks = int(np.frombuffer(data[at : at + numbers.itemsize], numbers)[0])
        header = np.frombuffer(data[at : at + numbers.itemsize * (3 + blocks)], numbers)
        at += header.nbytes
        if not blocks:
            continue
        size = int(header[3:].sum())
        budget.inflate(compressor[1].decode(), data[at : at + size], header)
        at += size
