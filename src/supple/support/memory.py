"""Available memory, and checks of memory requirements before work begins."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_VERTICES = 2**31 - 1
"""Largest number of vertices, whose indices have 32 bits."""

MESH_BYTES = 240
"""Bytes per tetrahedron during mesh generation and checks; measured: 280 at the peak."""

MODEL_BYTES, BYTES_PER_NUMBER = 550, 105
"""Bytes per element, and per byte of a number, during the set-up of a problem; measured: 618 and 119."""


def refuse_too_many(
    vertices: float, count: float, kind: str, solved: bool = False, cells: str = "tetrahedra"
) -> None:
    """Check memory requirements of a generated mesh before its creation.

    Args:
        vertices: Number of vertices.
        count: Number of cells.
        kind: Name of the mesh in messages, such as "block".
        solved: Include the memory for solving it, in float32 at least.
        cells: Plural name of the cells in messages.

    Raises:
        ValueError: The mesh has too many vertices or needs too much memory.
    """
    if vertices > MAX_VERTICES:
        raise ValueError(
            f"the {kind} would have {format_count(vertices)} vertices; the limit is {MAX_VERTICES:,}."
        )
    needed = (MESH_BYTES + (MODEL_BYTES + 4 * BYTES_PER_NUMBER if solved else 0)) * count
    _refuse(needed, f"{'simulating ' if solved else ''}a {kind} of {format_count(count)} {cells}")


def refuse_large_problem(elements: int, number: int) -> None:
    """Check memory requirements of a problem before its set-up.

    Args:
        elements: Number of elements.
        number: Bytes per number.

    Raises:
        ValueError: The problem needs too much memory.
    """
    _refuse((MODEL_BYTES + number * BYTES_PER_NUMBER) * elements, f"a problem of {elements:,} elements")


def _refuse(needed: float, what: str) -> None:
    """Raise an error if more memory is needed than available [bytes]."""
    free = available_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"{what} needs about {format_bytes(needed)} of memory, but this process may use "
            f"{format_bytes(free)}. Make it coarser, or use a machine with more memory."
        )


def available_memory(root: Path = Path("/")) -> float | None:
    """Memory still available to this process [bytes].

    It is the minimum of the machine's available memory, the limits of its control groups (cgroups), and the
    process's own limit.

    Args:
        root: Root of the file system.

    Returns:
        Number of bytes, or None if the system does not report it.
    """
    limits = [*_of_machine(root), *_of_group(root), *_of_process(root)]
    return max(0.0, min(limits)) if limits else None


def format_bytes(count: float) -> str:
    """Format a byte count: 1.2 GB."""
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count / 1e6:.3g} MB"


def format_count(count: float) -> str:
    """Format a count: 12,345 or 1e+20."""
    return f"{count:,.0f}" if count < 1e15 else f"{count:.0e}" if math.isfinite(count) else "infinitely many"


def _of_machine(root: Path) -> Iterator[float]:
    """Available memory and swap of the machine [bytes]."""
    facts = _table(root / "proc/meminfo")
    if "MemAvailable:" in facts:
        yield 1024 * (facts["MemAvailable:"] + facts.get("SwapFree:", 0))
    elif sys.platform == "darwin":  # reports the total memory only
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_group(root: Path) -> Iterator[float]:
    """Remaining memory of the process's control groups, cgroup version 1 and 2 [bytes].

    File caches can be reclaimed and therefore count as available.
    """
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        mount = root / "sys/fs/cgroup" / controllers
        names = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes")
            if controllers
            else ("memory.max", "memory.current")
        )
        cache = "total_inactive_file" if controllers else "inactive_file"
        folder = mount / path.lstrip("/")
        for group in [folder, *folder.parents]:
            limit, used = (_number(group / name) for name in names)
            if limit is not None and used is not None:
                yield limit - used + _table(group / "memory.stat").get(cache, 0)
            if group == mount:
                break


def _of_process(root: Path) -> Iterator[float]:
    """Remaining address space of the process under its resource limit [bytes]."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = " ".join(_lines(root / "proc/self/statm")).split()
    if limit != resource.RLIM_INFINITY and pages:
        yield limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    """Lines of a text file; empty list if unreadable."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _table(path: Path) -> dict[str, int]:
    """Integers by name from a file with one name and number per line."""
    rows = [line.split() for line in _lines(path)]
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _number(path: Path) -> int | None:
    """Parse a file that consists of one integer; None for "max"."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None
