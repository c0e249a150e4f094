"""SHA-256 checksums of the files of a results folder, in checksums.sha256, the format of `sha256sum`.

A run creates the file. Every later writer appends a line before its new file replaces the old one (see
`replacing`). If it is interrupted in between, the old file still matches an earlier line, so a file is intact
if it matches any line with its name. `compact_checksums` leaves one line per file.
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
from supple.support.os_errors import add_path_to_os_errors

CHECKSUMS = "checksums.sha256"

CHECKSUM_HEADER = (
    "# SHA-256 checksums of the files of this folder, which `supple verify` and `sha256sum -c` compare.\n"
)

REMOVED_PREFIX = "# removed: "
"""Prefix of the line that records the intended deletion of a file."""

CHECKSUM_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class Checksums:
    """The checksums of a folder.

    Attributes:
        folder: The folder.
        digests: Recorded digests of each file, by its path relative to the folder; the last is the newest.
        broken: Line numbers, from 1, of invalid lines.
    """

    folder: Path
    digests: dict[str, list[str]]
    broken: tuple[int, ...] = ()

    def is_intact(self, name: str) -> bool:
        """True for an existing file with one of its recorded digests."""
        path = self.folder / name
        return path.is_file() and compute_digest(path) in self.digests.get(name, ())


def start_checksums(folder: Path) -> None:
    """Start recording the checksums of files written to a folder."""
    with add_path_to_os_errors(folder / CHECKSUMS):
        (folder / CHECKSUMS).write_text(CHECKSUM_HEADER, encoding="utf-8")


def read_checksums(folder: Path) -> Checksums | None:
    """Return a folder's checksums; None for folders without recorded checksums, as by earlier versions."""
    path = folder / CHECKSUMS
    try:
        state = path.stat()
    except OSError:
        return None
    return _parse_checksums(path, state.st_mtime_ns, state.st_size) if path.is_file() else None


@lru_cache(maxsize=8)
def _parse_checksums(path: Path, time: int, size: int) -> Checksums:
    """Parse a checksums file; modification time [ns] and size are the cache key."""
    digests: dict[str, list[str]] = {}
    broken = []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines[:-1], start=1):  # text after the last line break is incomplete
        if line.startswith(REMOVED_PREFIX):
            digests.pop(line.removeprefix(REMOVED_PREFIX), None)
        elif entry := CHECKSUM_LINE.fullmatch(line):
            digests.setdefault(entry[2], []).append(entry[1])
        elif line and not line.startswith("#"):
            broken.append(number)
    return Checksums(path.parent, digests, tuple(broken))


def compute_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def add_checksum(path: Path, content: Path) -> None:
    """Record a checksum before the new file or folder takes its place.

    Does nothing outside of results folders with checksums.

    Args:
        path: Final path.
        content: Temporary path of the content.
    """
    folder = _folder_with_checksums(path)
    if folder is None:
        return
    name, lines = path.relative_to(folder).as_posix(), []
    if content.is_dir():
        known = read_checksums(folder)
        of_folder = [old for old in known.digests if old.startswith(f"{name}/")] if known else []
        inside = {file.relative_to(content).as_posix(): file for file in _files_in(content)}
        lines += [f"{REMOVED_PREFIX}{old}" for old in of_folder if old.removeprefix(f"{name}/") not in inside]
        lines += [f"{compute_digest(file)}  {name}/{rest}" for rest, file in inside.items()]
    else:
        lines.append(f"{compute_digest(content)}  {name}")
    _append(folder / CHECKSUMS, lines)


def delete_with_checksum(path: Path) -> None:
    """Delete a file together with its recorded checksum, if any."""
    folder = _folder_with_checksums(path)
    if folder is not None:
        _append(folder / CHECKSUMS, [f"{REMOVED_PREFIX}{path.relative_to(folder).as_posix()}"])
    path.unlink()


def compact_checksums(folder: Path, keep_missing: bool = True) -> None:
    """Reduce checksums to one line per file, the matching one; requires the folder's lock.

    Args:
        folder: A results folder; nothing happens if it has no checksums.
        keep_missing: Keep the lines of missing files, so that `supple verify` reports them.
    """
    known = read_checksums(folder)
    if known is None:
        return
    lines = []
    for name, digests in sorted(known.digests.items()):
        if not keep_missing and not (folder / name).exists():
            continue
        digest = digests[-1]
        if len(set(digests)) > 1 and (folder / name).is_file():
            now = compute_digest(folder / name)
            digest = now if now in digests else digest
        lines.append(f"{digest}  {name}\n")
    temporary = folder / f".unfinished_{uuid4().hex}_{CHECKSUMS}"
    try:
        with add_path_to_os_errors(folder / CHECKSUMS, temporary):
            temporary.write_text(CHECKSUM_HEADER + "".join(lines), encoding="utf-8")
            os.replace(temporary, folder / CHECKSUMS)
    finally:
        temporary.unlink(missing_ok=True)


def check_unchanged(path: Path, advice: str) -> None:
    """Raise a `ResultsError` if a file of a results folder has changed since it was written.

    Args:
        path: The file.
        advice: Suggested action, the second half of the sentence.
    """
    known = read_checksums(path.parent)
    if known is not None and path.name in known.digests and path.exists() and not known.is_intact(path.name):
        raise ResultsError(f"{path} is damaged: it does not match its checksum in {CHECKSUMS}; {advice}")


def _files_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _folder_with_checksums(path: Path) -> Path | None:
    """Folder with checksums that contains a file, directly or in an export subfolder such as ply."""
    if (path.parent / CHECKSUMS).is_file():
        return None if path.name == CHECKSUMS else path.parent
    if not (path.parent.parent / CHECKSUMS).is_file():
        return None
    from supple.io.formats import FORMATS  # imports this module

    of_exports = {format.path for format in FORMATS.values() if format.files}
    return path.parent.parent if path.parent.name in of_exports else None


def _append(path: Path, lines: list[str]) -> None:
    """Append lines in one write, starting with a line break if the last line is incomplete."""
    with add_path_to_os_errors(path), path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        torn = size > 0 and file.read(1) != b"\n"
        file.seek(0, os.SEEK_END)
        file.write(("\n" * torn + "".join(f"{line}\n" for line in lines)).encode())
