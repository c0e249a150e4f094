"""Time of a PBNG sweep: materials, precisions, sizes, and next to another busy process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from supple.api.bench import sweep
from supple.materials import MATERIALS

SMALL, LARGE = 31, 63
"""Cells along an edge of the block: 32,768 and 262,144 vertices."""

REPORTED_COLUMNS = (
    "vertices", "tets", "colors", "visits", "threads", "ms_per_sweep", "ms_min", "setup_seconds",
)  # fmt: skip


def sweep_times() -> dict[str, Any]:
    """Milliseconds per sweep of the small block by precision and material."""
    materials = {name: measured(material=name) for name in MATERIALS}
    return {"float32": materials, "float64": {"corotated": measured(precision="float64")}}


def large_block() -> dict[str, Any]:
    return {
        precision: measured(cells=LARGE, precision=precision, repeats=5)
        for precision in ("float32", "float64")
    }


def next_to_a_busy_process() -> dict[str, Any]:
    """The sweep on an idle machine, and while another process uses one core."""
    idle = [measured()["ms_per_sweep"]]
    with busy_process():
        disturbed = measured()["ms_per_sweep"]
    idle.append(measured()["ms_per_sweep"])
    return {"ms_alone": idle, "ms_disturbed": disturbed, "ratio": disturbed / (sum(idle) / len(idle))}


def measured(cells: int = SMALL, repeats: int = 40, **options: Any) -> dict[str, Any]:
    """Result of `supple bench sweep`, run twice so that the second run excludes compilation and first page
    access."""
    sweep(cells=cells, repeats=1, **options)
    entry = sweep(cells=cells, repeats=repeats, **options)
    return {name: entry[name] for name in REPORTED_COLUMNS}


@contextmanager
def busy_process() -> Iterator[None]:
    """Context with a process that uses one core all the time."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
