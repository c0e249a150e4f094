"""Files and folders that are complete whenever they exist."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from uuid import uuid4

from supple.naming import naming

LONG_AGO = 24 * 3600.0
"""Seconds after which nobody on another machine is thought to write to something still."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which takes the place of `path` once all is written."""
    temporary = unfinished(path)
    try:
        with naming(path, temporary):
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to write to, which takes the place of the folder `path`, and of all that is in it,
    once all is written. What was there is put aside before and deleted after: whenever this ends, one of
    them is there as a whole."""
    temporary, aside = unfinished(path), _own(path, "replaced")
    try:
        with naming(path, temporary):
            yield temporary
            if path.exists():
                os.replace(path, aside)
            try:
                os.replace(temporary, path)
            except OSError:
                if aside.exists():
                    os.replace(aside, path)
                raise
            shutil.rmtree(aside, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def unfinished(path: Path) -> Path:
    """What to call a file or folder until it is complete."""
    return _own(path, "unfinished")


def _own(path: Path, state: str) -> Path:
    """A name that nobody else takes, be it on another machine with the same disk."""
    return path.with_name(f".{state}_{_host()}_{os.getpid()}_{uuid4().hex[:8]}_{path.name}")


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "-", platform.node())[:40] or "host"


def is_abandoned(path: Path) -> bool:
    """Whether who was writing a file or folder that is not finished has ended, as far as that can be told:
    a process of this machine is not there, one of another has not written for long."""
    match = re.match(r"\.unfinished_([A-Za-z0-9.-]+)_(\d+)_[0-9a-f]{8}_", path.name)
    if match is None:
        return False
    if match[1] != _host():
        try:
            return time() - path.stat().st_mtime > LONG_AGO
        except OSError:
            return False
    return int(match[2]) != os.getpid() and not _alive(int(match[2]))


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
