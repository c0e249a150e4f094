"""The table at the end of a run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from rich.table import Table

from supple.cli.speech import say_seconds, stdout
from supple.words import counted


def print_summary(record: dict[str, Any], folder: Path) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(record, folder).items():
        table.add_row(name, value)
    stdout().print(table)


def _rows(record: dict[str, Any], folder: Path) -> dict[str, str]:
    scene, frames, totals = record["scene"], record["frames"], record["totals"]
    last = frames[-1]
    several = len(frames) > 1
    compiling = totals["compile_seconds"]
    rows = {
        "scene": f"{scene['title']} ({scene['file']})",
        "vertices": f"{last['vertices']:,}",
        "elements": f"{last['elements']:,}",
        "solver": f"{solver_name(record)}, {last['precision']}, {counted(last['threads'], 'thread')}",
        "outcome": outcome(frames),
        **({"inverted": inverted(frames)} if has_inverted(frames) else {}),
        "iterations": f"{totals['iterations']:,}" + (f" in {len(frames)} frames" if several else ""),
        "imbalance": f"{totals['worst_imbalance']:.2e}" + (" at worst" if several else ""),
        "reduction": f"{last['reduction']:.2e}" + (" in the last frame" if several else ""),
        "energy": f"{last['energy']:.6g} J" + (" in the last frame" if several else ""),
        "seconds": f"{totals['seconds']:.3g}"
        + (f" (+ {say_seconds(compiling)} compiling)" if compiling else ""),
        "results": str(folder),
    }
    if record.get("picture"):
        rows["picture"] = str(folder / record["picture"]["file"])
    if record.get("film"):
        rows["film"] = ", ".join(str(folder / name) for name in record["film"]["files"])
    return rows


def solver_name(record: dict[str, Any]) -> str:
    """pbng (chebyshev)"""
    solver = record["solver"]
    acceleration = solver["options"].get("acceleration")
    return solver["method"] + (f" ({acceleration})" if acceleration not in (None, "none") else "")


def outcome(frames: list[dict[str, Any]]) -> str:
    """The sentence that holds for all frames, or how many frames each sentence holds for."""
    counts = Counter(frame["sentence"] for frame in frames)
    if len(counts) == 1:
        return frames[0]["sentence"]
    return "\n".join(f"{counted(count, 'frame')}: {sentence}" for sentence, count in counts.most_common())


def has_inverted(frames: list[dict[str, Any]]) -> bool:
    return any(frame["inverted"] for frame in frames)


def inverted(frames: list[dict[str, Any]]) -> str:
    """14 elements; of several frames, in how many and how many at most: up to 14 elements, in 3 of 12 frames
    (the last has none)"""
    counts = [frame["inverted"] for frame in frames]
    if len(counts) == 1:
        return counted(counts[0], "element")
    some = sum(count > 0 for count in counts)
    last = f"{counts[-1]:,}" if counts[-1] else "none"
    return f"up to {counted(max(counts), 'element')}, in {some} of {len(counts)} frames (the last has {last})"


def inversion_warning(frames: list[dict[str, Any]]) -> str | None:
    """What inverted elements mean for a run; None where there are none."""
    if not has_inverted(frames):
        return None
    return (
        f"Elements are turned inside out: {inverted(frames)}. The forces may balance, but no body can take "
        "that shape; look at the picture, use a finer mesh, smaller steps or another material."
    )
