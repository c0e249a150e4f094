"""Gmsh files through meshio, which allocates as many nodes and elements as a file claims, and a table as long
as the largest number of a node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import meshio
import numpy as np
from meshio.gmsh import common, main
from meshio.gmsh.common import _fast_forward_to_end_block
from meshio.gmsh.main import _read_header, _readers

from supple.meshes.files.bounded_readers import bound_reader

write = meshio.gmsh.write

MAX_NODE_NUMBER, MAX_NUMBER_RATIO = 10**7, 100
"""Largest node number, and largest ratio of node numbers to their count; the larger limit applies."""


def read(name: str) -> meshio.Mesh:
    """Read a Gmsh file.

    Raises:
        ValueError: The header announces more data than the file can contain, or node numbers far exceed
            their count.
    """
    size = Path(name).stat().st_size
    readers = {version: bound_reader(module, size, common) for version, module in _readers.items()}
    numbers = _node_numbers(name, readers)
    most = max(MAX_NODE_NUMBER, MAX_NUMBER_RATIO * len(numbers))
    if len(numbers) and (numbers.max() > most or numbers.min() < 0):
        raise ValueError(
            f"node numbers range from {int(numbers.min())} to {int(numbers.max())} for "
            f"{len(numbers):,} nodes; renumber the nodes"
        )
    reader: Any = bound_reader(main, size, _readers=readers)
    return reader.read(name)


def _node_numbers(name: str, readers: Mapping[str, Any]) -> np.ndarray:
    """Node numbers of a Gmsh file, read by meshio's own reader; empty without a $Nodes section."""
    with open(name, "rb") as file:
        while (line := file.readline()) and line.strip() != b"$MeshFormat":
            pass
        version, data_size, is_ascii = _read_header(file)
        reader = readers.get(version) or readers.get(version.split(".")[0])
        while reader is not None and (line := file.readline()):
            section = line.decode(errors="replace").strip()
            if section == "$Nodes":
                sizes = (data_size,) if reader.__name__.endswith("41") else ()
                return np.asarray(reader._read_nodes(file, is_ascii, *sizes)[1])
            if section.startswith("$"):
                _fast_forward_to_end_block(file, section[1:])
    return np.zeros(0)
