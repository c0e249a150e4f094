"""Summary table of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from supple.cli.console import stdout
from supple.runs.text import has_inverted, inverted, outcome, solver_name
from supple.support.text import counted, say_seconds


def print_summary(account: dict[str, Any], folder: Path) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(account, folder).items():
        table.add_row(name, value)
    stdout().print(table)


def _distance(frame: dict[str, Any]) -> dict[str, str]:
    """Largest relative position error of all bodies, if computed."""
    error_estimate = frame.get("error_estimate")
    if not error_estimate:
        return {}
    worst = max(body["position_error"] for body in error_estimate["bodies"])
    return {"distance": f"{worst:.1e} of the size" + ("" if error_estimate["stable"] else ", not stable")}


def _rows(account: dict[str, Any], folder: Path) -> dict[str, str]:
    scene, frames, totals = account["scene"], account["frames"], account["totals"]
    last = frames[-1]
    several = len(frames) > 1
    compiling = totals["compile_seconds"]
    rows = {
        "scene": f"{scene['title']} ({scene['file']})",
        "vertices": f"{last['vertices']:,}",
        "elements": f"{last['elements']:,}",
        "solver": f"{solver_name(account)}, {last['precision']}, {counted(last['threads'], 'thread')}",
        "outcome": outcome(frames),
        **({"inverted": inverted(frames)} if several and has_inverted(frames) else {}),
        "iterations": f"{totals['iterations']:,}" + (f" in {len(frames)} frames" if several else ""),
        "relative residual": f"{totals['worst_relative_residual']:.2e}" + (" at worst" if several else ""),
        **_distance(last),
        "reduction": f"{last['reduction']:.2e}" + (" in the last frame" if several else ""),
        "energy": f"{last['energy']:.6g} J" + (" in the last frame" if several else ""),
        "seconds": f"{totals['seconds']:.3g}"
        + (f" (+ {say_seconds(compiling)} compiling)" if compiling else ""),
        "results": str(folder),
    }
    if account.get("picture"):
        rows["picture"] = str(folder / account["picture"]["file"])
    if account.get("film"):
        rows["film"] = ", ".join(str(folder / name) for name in account["film"]["files"])
    return rows
