"""Safe reading of input files: regular files of limited size, validated before memory is allocated."""

from __future__ import annotations

import errno
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from supple.support.memory import available_memory, format_bytes

TEXT_LIMIT = 16 * 2**20
"""Largest size of scene files, specs and other texts [bytes]; those of supple have a few thousand."""

DEFLATE_RATIO = 1032
"""Largest possible expansion factor of deflate."""

FILE_TYPES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
"""Predicates of file modes that are not regular files, with names for messages."""

READ_ERRORS = (ValueError, TypeError, EOFError, RuntimeError, SyntaxError, zipfile.BadZipFile, zlib.error)
"""Errors of `zipfile` and NumPy for damaged files; RuntimeError includes NotImplementedError."""


class InputFileError(ValueError):
    """Error about an unusable input file; the message continues the file name: "is a pipe, ..."."""


def check_regular(path: Path) -> None:
    """Check that a path points to a regular file.

    Reading a pipe would block until data is written to it, and reading a device may never end.

    Args:
        path: Path of the file.

    Raises:
        InputFileError: The path is not a regular file.
        OSError: The file does not exist.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in FILE_TYPES if is_kind(mode)), "no regular file")
        raise InputFileError(f"is {kind}; only regular files are read")


def read_text(path: Path, limit: int = TEXT_LIMIT) -> str:
    """Return the text of a regular UTF-8 file.

    Args:
        path: Path of the file.
        limit: Largest size [bytes].

    Raises:
        InputFileError: The file is not regular, or larger than the limit.
        OSError, UnicodeDecodeError: The file cannot be read.
    """
    check_regular(path)
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise InputFileError(f"is larger than {format_bytes(limit)}, the limit for such a file")
    return content.decode("utf-8")


class ArrayFile(Mapping[str, np.ndarray]):
    """Numeric arrays of an NPZ file, read and checked on access.

    The size in an array's header must match its part of the file, and fit into memory.
    """

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive, self._size = archive, size
        self._members = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return an array's shape from its header, without reading data."""
        with self._open_array(name) as member:
            return self._checked_header(name, member)[0]

    def __getitem__(self, name: str) -> np.ndarray:
        with self._open_array(name) as member:
            self._checked_header(name, member)
        with self._open_array(name) as member:
            values: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
            if member.read(1):  # reading to the end verifies the checksum
                raise InputFileError(f"is damaged: {name!r} does not end where its header says")
        return values

    @contextmanager
    def _open_array(self, name: str) -> Iterator[IO[bytes]]:
        """Open an array; damaged data raises an `InputFileError`."""
        info = self._members[name]
        if info.flag_bits & 1:
            raise InputFileError(f"is damaged: {name!r} is marked as encrypted")
        try:
            with self._archive.open(info) as member:
                yield member
        except InputFileError:
            raise
        except (*READ_ERRORS, OSError) as error:
            if _is_of_system(error):
                raise
            raise InputFileError(f"is damaged: {name!r} cannot be read ({error})") from error

    def _checked_header(self, name: str, member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Read shape and dtype; check them against file size and available memory."""
        version = np.lib.format.read_magic(member)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(member)
        if dtype.kind not in "biuf":
            raise InputFileError(f"has {name!r} of type {dtype}; real numbers are needed")
        info, claimed = self._members[name], math.prod(shape) * dtype.itemsize
        most = self._size * (1 if info.compress_type == zipfile.ZIP_STORED else DEFLATE_RATIO)
        if claimed != info.file_size - member.tell() or claimed > most or min(shape, default=0) < 0:
            raise InputFileError(
                f"is damaged: {name!r} of shape {shape} needs {format_bytes(claimed)}, more than the "
                "file contains"
            )
        free = available_memory()
        if free is not None and claimed > free:
            raise InputFileError(
                f"has {name!r} of shape {shape}, which needs {format_bytes(claimed)} of memory, but "
                f"this process may use {format_bytes(free)}"
            )
        return shape, dtype


def _is_of_system(error: Exception) -> bool:
    """True for errors of the operating system, except for seeks to positions that a damaged file names."""
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)


@contextmanager
def open_arrays(path: str | os.PathLike[str]) -> Iterator[ArrayFile]:
    """Open an NPZ file, `with open_arrays("frame_0001.npz") as arrays: arrays["positions"]`.

    Args:
        path: Path of the file.

    Yields:
        The arrays by name.

    Raises:
        InputFileError: The file is not regular, not an NPZ file, or damaged.
        KeyError: A requested array is missing.
        OSError: The operating system cannot read the file.
    """
    path = Path(path)
    check_regular(path)
    try:
        archive = zipfile.ZipFile(path)
    except (*READ_ERRORS, OSError) as error:
        if _is_of_system(error):
            raise
        raise InputFileError(f"is not an NPZ file, or it is damaged ({error})") from error
    with archive:
        yield ArrayFile(archive, path.stat().st_size)
