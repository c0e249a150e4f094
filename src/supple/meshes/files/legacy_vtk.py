"""Legacy VTK files through meshio, which allocates as many points and cells as a file claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import meshio
from meshio import _vtk_common
from meshio.vtk import _main, _vtk_42, _vtk_51

from supple.meshes.files.bounded_readers import bound_reader

write = meshio.vtk.write

TYPES = ["UNSTRUCTURED_GRID"]
"""Types of data sets with triangles or tetrahedra. A line of text makes a structured grid of any size."""


def read(name: str) -> meshio.Mesh:
    """Read a legacy VTK file.

    Raises:
        ValueError: The header announces more data than the file can contain.
    """
    size = Path(name).stat().st_size
    old, new = (
        bound_reader(module, size, _vtk_common, vtk_dataset_types=TYPES) for module in (_vtk_42, _vtk_51)
    )
    reader: Any = bound_reader(_main, size, _vtk_42=old, _vtk_51=new)
    return reader.read(name)
