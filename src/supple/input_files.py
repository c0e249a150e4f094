"""Input files: regular files only, of a size that fits, whose claims are checked before memory is taken."""

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

from supple.memory import available, say_bytes

TEXT_LIMIT = 16 * 2**20
"""Bytes that scene files, specs and other texts may have; those that come with supple have a few thousand."""

DEFLATE_RATIO = 1032
"""Bytes that deflate makes of one byte at the very most."""

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)

UNREADABLE = (ValueError, TypeError, EOFError, RuntimeError, SyntaxError, zipfile.BadZipFile, zlib.error)
"""What `zipfile` and NumPy raise where a file is damaged; RuntimeError has NotImplementedError in it."""


class InputFileError(ValueError):
    """An input file cannot be used; the message continues the name of the file: "is a pipe, ..."."""


def check_regular(path: Path) -> None:
    """Raise an `InputFileError` unless the path is a regular file, and an `OSError` if there is none.

    Reading a pipe waits until somebody writes to it, and reading a device may never end.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in KINDS if is_kind(mode)), "no regular file")
        raise InputFileError(f"is {kind}; only regular files are read")


def read_text(path: Path, limit: int = TEXT_LIMIT) -> str:
    """Return the text of a regular file in UTF-8.

    Raises:
        InputFileError: It is no regular file, or larger than the limit [bytes].
        OSError, UnicodeDecodeError: It cannot be read.
    """
    check_regular(path)
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise InputFileError(f"is larger than {say_bytes(limit)}, the limit for such a file")
    return content.decode("utf-8")


class ArrayFile(Mapping[str, np.ndarray]):
    """The arrays of numbers in an NPZ file, each read and checked when it is asked for.

    The size that an array claims must be that of its part of the file, and fit into memory.
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
        """The shape of an array, from its header; nothing else is read."""
        with self._opened(name) as member:
            return self._checked_header(name, member)[0]

    def __getitem__(self, name: str) -> np.ndarray:
        with self._opened(name) as member:
            self._checked_header(name, member)
        with self._opened(name) as member:
            values: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
            if member.read(1):  # reading to the end compares the checksum, too
                raise InputFileError(f"is damaged: {name!r} does not end where its header says")
        return values

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        info = self._members[name]
        if info.flag_bits & 1:
            raise InputFileError(f"is damaged: {name!r} is marked as encrypted")
        try:
            with self._archive.open(info) as member:
                yield member
        except InputFileError:
            raise
        except (*UNREADABLE, OSError) as error:
            if _is_of_system(error):
                raise
            raise InputFileError(f"is damaged: {name!r} cannot be read ({error})") from error

    def _checked_header(self, name: str, member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
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
                f"is damaged: {name!r} of shape {shape} needs {say_bytes(claimed)}, which are not in the file"
            )
        free = available()
        if free is not None and claimed > free:
            raise InputFileError(
                f"has {name!r} of shape {shape}, which needs {say_bytes(claimed)} of memory, and this "
                f"process may use {say_bytes(free)}"
            )
        return shape, dtype


def _is_of_system(error: Exception) -> bool:
    """True for what the system refuses, not for a seek to a place that a damaged file names."""
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)


@contextmanager
def open_arrays(path: str | os.PathLike[str]) -> Iterator[ArrayFile]:
    """Open an NPZ file, `with open_arrays("frame_0001.npz") as arrays: arrays["positions"]`.

    Raises:
        InputFileError: It is no regular file, no NPZ file, or damaged.
        KeyError: It lacks an array that is asked for.
        OSError: The system cannot read it.
    """
    path = Path(path)
    check_regular(path)
    try:
        archive = zipfile.ZipFile(path)
    except (*UNREADABLE, OSError) as error:
        if _is_of_system(error):
            raise
        raise InputFileError(f"is no NPZ file, or it is damaged ({error})") from error
    with archive:
        yield ArrayFile(archive, path.stat().st_size)
