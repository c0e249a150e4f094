"""Files and folders that are complete whenever they exist."""

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
from supple.naming import naming

OWN = re.compile(r"\.(unfinished|replaced)_([A-Za-z0-9.-]+)_(\d+)_[0-9a-f]{8}_(.+)")
"""Names of what is not finished and of what was replaced: its state, machine, process, and what it is of."""

LONG_AGO = 24 * 3600.0
"""Seconds after which nobody on another machine is thought to write to something still."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which takes the place of `path` once all is written; in results folders
    with checksums its checksum is recorded first."""
    temporary = unfinished(path)
    try:
        with naming(path, temporary):
            yield temporary
            add_checksum(path, temporary)
            os.replace(temporary, path)
    finally:
        with suppress(OSError):  # a file system that is read only refuses this, too
            temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to write to, which takes the place of the folder `path`, and of all that is in it,
    once all is written. What was there is put aside before and deleted after. However this ends, one of them
    is at `path` as a whole, or, where the process was killed between the two changes of names, `put_back`
    brings the old one back."""
    put_back(path)
    temporary, aside = unfinished(path), _own(path, "replaced")
    try:
        with naming(path, temporary):
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


def put_back(path: Path) -> None:
    """Where who was replacing a folder was killed before the new one had its place, the old one has it
    again."""
    with suppress(OSError):  # another process was faster, or it is not ours to write to
        if not path.exists() and (left := left_beside(path, "replaced")):
            os.rename(max(left, key=lambda old: old.stat().st_ctime), path)


def left_beside(path: Path, *states: str) -> list[Path]:
    """What is beside a file or folder of those that were to become it (unfinished) or were it (replaced)."""
    found = ((OWN.match(other.name), other) for other in path.parent.glob(".*"))
    return [other for match, other in found if match and match[1] in states and match[4] == path.name]


def _delete(aside: Path) -> None:
    """What was put aside is whole as long as it has its name."""
    if aside.exists():
        doomed = aside.with_name(aside.name.replace(".replaced_", ".unfinished_", 1))
        with suppress(OSError):
            os.rename(aside, doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def unfinished(path: Path) -> Path:
    """What to call a file or folder until it is complete."""
    return _own(path, "unfinished")


def _own(path: Path, state: str) -> Path:
    """A name that nobody else takes, be it on another machine with the same disk."""
    return path.with_name(f".{state}_{_host()}_{os.getpid()}_{uuid4().hex[:8]}_{path.name}")


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "-", platform.node())[:40] or "host"


def is_abandoned(path: Path) -> bool:
    """Whether who was writing or replacing a file or folder has ended, as far as that can be told:
    a process of this machine is not there, one of another has not written for long."""
    match = OWN.match(path.name)
    if match is None:
        return False
    if match[2] != _host():
        try:
            return time() - path.stat().st_mtime > LONG_AGO
        except OSError:
            return False
    return int(match[3]) != os.getpid() and not _alive(int(match[3]))


def _alive(process: int) -> bool:
    if os.name == "nt":  # where to ask would be to end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
