"""Errors of the system that name their file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system refuses within it, such as a full disk, is said of this file where it names none."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
