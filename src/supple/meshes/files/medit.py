"""Medit files through meshio, which allocates as many vertices and cells as a file claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import meshio
from meshio.medit import _medit

from supple.meshes.files.bounded_readers import bound_reader

write = meshio.medit.write


def read(name: str) -> meshio.Mesh:
    """Read a Medit file.

    Raises:
        ValueError: The header announces more data than the file can contain.
    """
    reader: Any = bound_reader(_medit, Path(name).stat().st_size)
    return reader.read(name)
