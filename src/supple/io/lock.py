"""Exclusive lock for writing to a folder.

The operating system holds the lock and releases it at the end of the process, so there are no stale locks.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from supple.io.errors import ResultsError
from supple.support.os_errors import add_path_to_os_errors

log = logging.getLogger(__name__)

LOCK_NAME = ".lock"
"""Lock file; contains the holder, and is deleted on release."""

NO_LOCK_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""Error codes of file systems without locks."""

if os.name == "nt":
    import msvcrt

    LOCK_OFFSET = 1 << 30
    """Offset of a locked byte beyond the end of the file, because Windows makes locked bytes unreadable."""

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def hold_lock(folder: Path, outside: bool = False) -> Iterator[None]:
    """Hold the lock of a folder; a `ResultsError` names the current holder.

    Args:
        folder: Folder.
        outside: Create the lock file next to the folder instead of inside, so that the folder can be
            replaced.
    """
    path = folder.with_name(f"{LOCK_NAME}_{folder.name}") if outside else folder / LOCK_NAME
    descriptor = _acquire(path, folder)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows cannot delete an open file
            path.unlink()
        os.close(descriptor)
        if os.name == "nt":
            path.unlink(missing_ok=True)


def _acquire(path: Path, folder: Path) -> int:
    """Return a descriptor of the locked file."""
    while True:
        with add_path_to_os_errors(folder, path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor)
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                _sign(descriptor)
                return descriptor
            os.close(descriptor)  # another process has deleted it in the meantime
        except (BlockingIOError, PermissionError):
            os.close(descriptor)
            raise ResultsError(
                f"{folder} is being written by {_holder(path)}. Wait until it ends, or name another "
                "folder with --output."
            ) from None
        except OSError as error:
            if error.errno not in NO_LOCK_ERRORS:
                os.close(descriptor)
                raise
            log.warning("%s is on a file system without locks: do not start a second run there", folder)
            return descriptor


def _sign(descriptor: int) -> None:
    """Write the holder to the file."""
    facts = {
        "process": os.getpid(),
        "host": platform.node(),
        "since": datetime.now(UTC).isoformat(" ", timespec="seconds"),
    }
    with suppress(OSError):  # a full disk is reported for the next file written
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps(facts).encode())


def _holder(path: Path) -> str:
    """Description of the holder: process 4711 on workstation, since 2025-01-31 12:00:00+00:00."""
    try:
        facts = json.loads(path.read_text())
        return f"process {facts['process']} on {facts['host']}, since {facts['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has just started or ended
        return "another process"
