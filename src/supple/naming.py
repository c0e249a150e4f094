"""Errors of the system that name their file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def naming(path: str | os.PathLike[str], temporary: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """What the system refuses within it, such as a full disk, is said of this file where it names none, or
    names the temporary file or folder that stands for it."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        elif temporary is not None and str(error.filename).startswith(str(temporary)):
            error.filename = str(path) + str(error.filename)[len(str(temporary)) :]
            del error.filename2  # None would be shown as a name
        raise
