"""Atomic replacement of files and folders."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from uuid import uuid4

from supple.io.checksums import add_checksum
from supple.support.os_errors import add_path_to_os_errors

TEMPORARY_NAME = re.compile(r"\.(unfinished|replaced)_([A-Za-z0-9.-]+)_(\d+)_[0-9a-f]{8}_(.+)")
"""Names of unfinished and replaced files: state, machine, process and final name."""

ABANDONED_AFTER = 24 * 3600.0
"""Time [s] without writes after which a process on another machine is considered terminated."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to a temporary path that replaces `path` when complete.

    In results folders with checksums, the checksum is recorded first.
    """
    temporary = temporary_path(path)
    try:
        with add_path_to_os_errors(path, temporary):
            yield temporary
            add_checksum(path, temporary)
            os.replace(temporary, path)
    finally:
        with suppress(OSError):  # fails on a read-only file system, too
            temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Write to a temporary folder that replaces the folder `path` when complete.

    The old folder is renamed first and deleted afterwards. In any case, either the old or the new folder is
    complete at `path`. Only if the process is killed between both renames, `restore_replaced`
    restores the old one.
    """
    restore_replaced(path)
    temporary, aside = temporary_path(path), _tagged_path(path, "replaced")
    try:
        with add_path_to_os_errors(path, temporary):
            yield temporary
            add_checksum(path, temporary)
            try:
                if path.exists():
                    os.replace(path, aside)
                os.replace(temporary, path)
            except BaseException:
                if aside.exists() and not path.exists():
                    os.rename(aside, path)
                raise
            _delete(aside)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def restore_replaced(path: Path) -> None:
    """Restore the old folder if its replacement was interrupted by a kill."""
    with suppress(OSError):  # another process was faster, or there is no write permission
        if not path.exists() and (left := find_leftovers(path, "replaced")):
            os.rename(max(left, key=lambda old: old.stat().st_ctime), path)


def find_leftovers(path: Path, *states: str) -> list[Path]:
    """Temporary files next to a path in the given states: "unfinished" new ones or "replaced" old ones."""
    matches = ((TEMPORARY_NAME.match(other.name), other) for other in path.parent.glob(".*"))
    return [other for match, other in matches if match and match[1] in states and match[4] == path.name]


def _delete(aside: Path) -> None:
    """Delete a replaced folder; renamed first, because an intact name means an intact folder."""
    if aside.exists():
        doomed = aside.with_name(aside.name.replace(".replaced_", ".unfinished_", 1))
        with suppress(OSError):
            os.rename(aside, doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def temporary_path(path: Path) -> Path:
    """Temporary name for an incomplete file or folder."""
    return _tagged_path(path, "unfinished")


def _tagged_path(path: Path, state: str) -> Path:
    """Name that is unique across processes and machines with a shared disk."""
    return path.with_name(f".{state}_{_host()}_{os.getpid()}_{uuid4().hex[:8]}_{path.name}")


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "-", platform.node())[:40] or "host"


def is_abandoned(path: Path) -> bool:
    """True if the writing process of a temporary file has ended.

    A process of this machine is looked up; one of another machine is considered terminated after LONG_AGO
    without writes.
    """
    match = TEMPORARY_NAME.match(path.name)
    if match is None:
        return False
    if match[2] != _host():
        try:
            return time() - path.stat().st_mtime > ABANDONED_AFTER
        except OSError:
            return False
    return int(match[3]) != os.getpid() and not _alive(int(match[3]))


def _alive(process: int) -> bool:
    if os.name == "nt":  # the query would terminate the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
