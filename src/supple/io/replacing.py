"""Files and folders that are complete whenever they exist."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from supple.naming import naming


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which takes the place of `path` once all is written."""
    temporary = _unfinished(path)
    try:
        with naming(path, temporary):
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to write to, which takes the place of the folder `path`, and of all that is in it,
    once all is written."""
    temporary = _unfinished(path)
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with naming(path, temporary):
            yield temporary
            if path.exists():
                shutil.rmtree(path)
            os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unfinished(path: Path) -> Path:
    """A name of this process's own."""
    return path.with_name(f".unfinished_{os.getpid()}_{path.name}")
