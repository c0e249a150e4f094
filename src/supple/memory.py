"""How much memory there is, and what needs more than that before it is begun."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

MOST_VERTICES = 2**31 - 1
"""Vertices are numbered in 32 bits."""

MESH = 240
"""Bytes per tetrahedron while a mesh is generated and checked; measured: 280 at the peak."""

MODEL, PER_NUMBER = 550, 105
"""Bytes per element, and per byte of a number, while a problem is set up; measured: 618 and 119."""


def refuse_too_many(
    vertices: float, count: float, kind: str, solved: bool = False, cells: str = "tetrahedra"
) -> None:
    """Refuse a mesh, such as a "block", for which there cannot be memory, before it is made. count: of its
    cells. solved: count what solving it needs too, in float32 at least."""
    if vertices > MOST_VERTICES:
        raise ValueError(
            f"the {kind} would have {say_count(vertices)} vertices; at most {MOST_VERTICES:,} can be "
            "numbered."
        )
    needed = (MESH + (MODEL + 4 * PER_NUMBER if solved else 0)) * count
    _refuse(needed, f"{'simulating ' if solved else ''}a {kind} of {say_count(count)} {cells}")


def refuse_large_problem(elements: int, number: int) -> None:
    """Refuse to set up a problem of so many elements in numbers of so many bytes, where there cannot be
    memory for it."""
    _refuse((MODEL + number * PER_NUMBER) * elements, f"a problem of {elements:,} elements")


def _refuse(needed: float, what: str) -> None:
    free = available()
    if free is not None and needed > free:
        raise ValueError(
            f"{what} needs about {say_bytes(needed)} of memory, and this process may use {say_bytes(free)}. "
            "Make it coarser, or use a machine with more memory."
        )


def available(root: Path = Path("/")) -> float | None:
    """Bytes that this process may still use: what the machine has left, its group of processes (cgroup) is
    allowed and its own limit leaves. None where the system does not say."""
    limits = [*_of_machine(root), *_of_group(root), *_of_process(root)]
    return max(0.0, min(limits)) if limits else None


def say_bytes(count: float) -> str:
    """1.2 GB"""
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count / 1e6:.3g} MB"


def say_count(count: float) -> str:
    """12,345 or 1e+20"""
    return f"{count:,.0f}" if count < 1e15 else f"{count:.0e}" if math.isfinite(count) else "infinitely many"


def _of_machine(root: Path) -> Iterator[float]:
    facts = _table(root / "proc/meminfo")
    if "MemAvailable:" in facts:
        yield 1024 * (facts["MemAvailable:"] + facts.get("SwapFree:", 0))
    elif sys.platform == "darwin":  # which says only how much there is in all
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_group(root: Path) -> Iterator[float]:
    """Limits of the groups that this process is in, of both versions, less what they use; caches of files
    can be given up."""
    for line in _lines(root / "proc/self/cgroup"):
        _, kinds, path = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        place = root / "sys/fs/cgroup" / kinds
        names = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes") if kinds else ("memory.max", "memory.current")
        )
        cache = "total_inactive_file" if kinds else "inactive_file"
        folder = place / path.lstrip("/")
        for group in [folder, *folder.parents]:
            limit, used = (_number(group / name) for name in names)
            if limit is not None and used is not None:
                yield limit - used + _table(group / "memory.stat").get(cache, 0)
            if group == place:
                break


def _of_process(root: Path) -> Iterator[float]:
    try:
        import resource
    except ImportError:  # Windows
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = " ".join(_lines(root / "proc/self/statm")).split()
    if limit != resource.RLIM_INFINITY and pages:
        yield limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _table(path: Path) -> dict[str, int]:
    """The whole numbers of a file with a name and a number in each line."""
    rows = [line.split() for line in _lines(path)]
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _number(path: Path) -> int | None:
    """The number that a file consists of; "max" is none."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None
