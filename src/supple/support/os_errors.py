"""Operating system errors with the name of their file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def add_path_to_os_errors(
    path: str | os.PathLike[str], temporary: str | os.PathLike[str] | None = None
) -> Iterator[None]:
    """Add a file name to operating system errors, such as a full disk.

    Args:
        path: File to name in errors without a file name.
        temporary: Temporary file or folder that stands for `path`; errors name `path` instead.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        elif temporary is not None and str(error.filename).startswith(str(temporary)):
            error.filename = str(path) + str(error.filename)[len(str(temporary)) :]
            del error.filename2  # None would be printed as a name
        raise
