"""Summary table of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from supple.cli.console import stdout
from supple.runs.result_text import has_inverted, inverted, outcome, solver_name
from supple.support.text import format_duration, pluralize


def print_summary(manifest: dict[str, Any], folder: Path) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(manifest, folder).items():
        table.add_row(name, value)
    stdout().print(table)


def _distance(frame: dict[str, Any]) -> dict[str, str]:
    """Largest relative position error of all bodies, if computed."""
    error_estimate = frame.get("error_estimate")
    if not error_estimate:
        return {}
    worst = max(body["position_error"] for body in error_estimate["bodies"])
    return {"distance": f"{worst:.1e} of the size" + ("" if error_estimate["stable"] else ", not stable")}


def _rows(manifest: dict[str, Any], folder: Path) -> dict[str, str]:
    scene, frames, totals = manifest["scene"], manifest["frames"], manifest["totals"]
    last = frames[-1]
    is_sequence = len(frames) > 1
    compiling = totals["compile_seconds"]
    rows = {
        "scene": f"{scene['title']} ({scene['file']})",
        "vertices": f"{last['vertices']:,}",
        "elements": f"{last['elements']:,}",
        "solver": f"{solver_name(manifest)}, {last['precision']}, {pluralize(last['threads'], 'thread')}",
        "outcome": outcome(frames),
        **({"inverted": inverted(frames)} if is_sequence and has_inverted(frames) else {}),
        "iterations": f"{totals['iterations']:,}" + (f" in {len(frames)} frames" if is_sequence else ""),
        "relative residual": f"{totals['worst_relative_residual']:.2e}"
        + (" at worst" if is_sequence else ""),
        **_distance(last),
        "reduction": f"{last['reduction']:.2e}" + (" in the last frame" if is_sequence else ""),
        "energy": f"{last['energy']:.6g} J" + (" in the last frame" if is_sequence else ""),
        "seconds": f"{totals['seconds']:.3g}"
        + (f" (+ {format_duration(compiling)} compiling)" if compiling else ""),
        "results": str(folder),
    }
    if manifest.get("picture"):
        rows["picture"] = str(folder / manifest["picture"]["file"])
    if manifest.get("film"):
        rows["film"] = ", ".join(str(folder / name) for name in manifest["film"]["files"])
    return rows
