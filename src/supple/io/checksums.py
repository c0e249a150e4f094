"""checksums.sha256: the SHA-256 checksum of every file of a results folder, as `sha256sum` writes them.

A run starts the file; whoever writes to the folder afterwards appends a line before the new file takes its
place (see `replacing`). A file that is interrupted in between matches the line before, so a file is whole if
it matches any line with its name. `compact_checksums` leaves one line per file.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

from supple.io.errors import ResultsError
from supple.naming import naming

CHECKSUMS = "checksums.sha256"

HEAD = "# SHA-256 checksums of the files of this folder, which `supple verify` and `sha256sum -c` compare.\n"

REMOVED = "# removed: "
"""Begins the line of a file that was deleted on purpose."""

ENTRY = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class Checksums:
    """The checksums of a folder.

    Attributes:
        folder: The folder.
        digests: For each file, relative to the folder, all of its recorded digests; the newest is the last.
        broken: Numbers of lines, from 1, that are no checksums.
    """

    folder: Path
    digests: dict[str, list[str]]
    broken: tuple[int, ...] = ()

    def is_whole(self, name: str) -> bool:
        """True if a file is there and has one of its recorded digests."""
        path = self.folder / name
        return path.is_file() and digest_of(path) in self.digests.get(name, ())


def start_checksums(folder: Path) -> None:
    """Start recording the checksums of the files that are written to a folder from now on."""
    with naming(folder / CHECKSUMS):
        (folder / CHECKSUMS).write_text(HEAD, encoding="utf-8")


def read_checksums(folder: Path) -> Checksums | None:
    """Return the checksums of a folder, or None if none were recorded, as by earlier versions."""
    path = folder / CHECKSUMS
    try:
        state = path.stat()
    except OSError:
        return None
    return _parsed(path, state.st_mtime_ns, state.st_size) if path.is_file() else None


@lru_cache(maxsize=8)
def _parsed(path: Path, time: int, size: int) -> Checksums:
    """The checksums in a file that was changed last at this time [ns]."""
    digests: dict[str, list[str]] = {}
    broken = []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last line break was cut short
        if line.startswith(REMOVED):
            digests.pop(line.removeprefix(REMOVED), None)
        elif entry := ENTRY.fullmatch(line):
            digests.setdefault(entry[2], []).append(entry[1])
        elif line and not line.startswith("#"):
            broken.append(number)
    return Checksums(path.parent, digests, tuple(broken))


def digest_of(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def add_checksum(path: Path, content: Path) -> None:
    """Append the checksum of `content`, which is about to become the file or folder `path`, to the checksums
    of the results folder that `path` is in; do nothing where there are none."""
    folder = _folder_with_checksums(path)
    if folder is None:
        return
    name, lines = path.relative_to(folder).as_posix(), []
    if content.is_dir():
        known = read_checksums(folder)
        of_folder = [old for old in known.digests if old.startswith(f"{name}/")] if known else []
        inside = {file.relative_to(content).as_posix(): file for file in _files_in(content)}
        lines += [f"{REMOVED}{old}" for old in of_folder if old.removeprefix(f"{name}/") not in inside]
        lines += [f"{digest_of(file)}  {name}/{rest}" for rest, file in inside.items()]
    else:
        lines.append(f"{digest_of(content)}  {name}")
    _append(folder / CHECKSUMS, lines)


def delete_with_checksum(path: Path) -> None:
    """Delete a file, and its checksum where the results folder that it is in has one."""
    folder = _folder_with_checksums(path)
    if folder is not None:
        _append(folder / CHECKSUMS, [f"{REMOVED}{path.relative_to(folder).as_posix()}"])
    path.unlink()


def compact_checksums(folder: Path, keep_missing: bool = True) -> None:
    """Leave one line for each file, the one that the file matches; for use by the holder of the lock.

    Args:
        folder: A results folder; nothing happens where it has no checksums.
        keep_missing: Keep the lines of files that are not there, so that `supple verify` misses them.
    """
    known = read_checksums(folder)
    if known is None:
        return
    lines = []
    for name, digests in sorted(known.digests.items()):
        if not keep_missing and not (folder / name).exists():
            continue
        found = digests[-1]
        if len(set(digests)) > 1 and (folder / name).is_file():
            now = digest_of(folder / name)
            found = now if now in digests else found
        lines.append(f"{found}  {name}\n")
    temporary = folder / f".unfinished_{uuid4().hex}_{CHECKSUMS}"
    try:
        with naming(folder / CHECKSUMS, temporary):
            temporary.write_text(HEAD + "".join(lines), encoding="utf-8")
            os.replace(temporary, folder / CHECKSUMS)
    finally:
        temporary.unlink(missing_ok=True)


def check_unchanged(path: Path, advice: str) -> None:
    """Raise a `ResultsError` if a file of a results folder has changed since it was written.

    Args:
        path: The file.
        advice: What to do about it, the second half of the sentence.
    """
    known = read_checksums(path.parent)
    if known is not None and path.name in known.digests and path.exists() and not known.is_whole(path.name):
        raise ResultsError(
            f"{path} is damaged: it has changed since it was written, as its checksum in {CHECKSUMS} says; "
            f"{advice}"
        )


def _files_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _folder_with_checksums(path: Path) -> Path | None:
    """The folder with checksums that a file is in, itself or in a folder of an export such as ply."""
    if (path.parent / CHECKSUMS).is_file():
        return None if path.name == CHECKSUMS else path.parent
    if not (path.parent.parent / CHECKSUMS).is_file():
        return None
    from supple.io.formats import FORMATS  # which know this file

    of_exports = {format.path for format in FORMATS.values() if format.files}
    return path.parent.parent if path.parent.name in of_exports else None


def _append(path: Path, lines: list[str]) -> None:
    """Append lines in one write, after a line break where the last line was cut short."""
    with naming(path), path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        torn = size > 0 and file.read(1) != b"\n"
        file.seek(0, os.SEEK_END)
        file.write(("\n" * torn + "".join(f"{line}\n" for line in lines)).encode())
