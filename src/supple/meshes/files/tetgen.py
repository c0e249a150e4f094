"""TetGen file pairs, points in .node and tets in .ele; meshio's reader hangs on an empty file."""

from __future__ import annotations

from pathlib import Path

import meshio
import numpy as np

from supple.support.input_files import check_regular

write = meshio.tetgen.write


def read(name: str) -> meshio.Mesh:
    """Read a pair, given the name of either file; numbers may start at 0 or 1."""
    path = Path(name)
    nodes, tets = _table(path.with_suffix(".node"), 4), _table(path.with_suffix(".ele"), 5)
    first = nodes[0, 0]
    if not np.array_equal(nodes[:, 0], first + np.arange(len(nodes))):
        raise ValueError("nodes are not numbered consecutively")
    return meshio.Mesh(nodes[:, 1:4], [("tetra", (tets[:, 1:5] - first).astype(np.int64))])


def _table(path: Path, columns: int) -> np.ndarray:
    """Rows with `columns` numbers, below a header line that starts with the row count."""
    check_regular(path)
    lines = (line.partition("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    head, *rows = [line for line in lines if line]
    count, given = int(head[0]), int(head[1]) + 1
    if given != columns:
        raise ValueError(f"{path.name} should have {columns} numbers per row, but has {given}")
    if len(rows) < count:
        raise ValueError(f"{path.name} should have {count} rows, but has {len(rows)}")
    return np.array(rows[:count], float)
