"""Tables that commands print: the summary of a run, and the results of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from supple.cli.console import stdout
from supple.runs.comparison import COLUMNS, Entry
from supple.runs.result_text import has_inverted, inverted, outcome, solver_name
from supple.support.text import format_duration, pluralize

N_FIRST_COLUMNS = 4
"""Number of columns in the first table if the terminal is too narrow for one table."""


def print_comparison(manifest: dict[str, Any], folder: Path) -> None:
    console = stdout()
    print_table(console, manifest["trials"])
    for line in _remarks(manifest):
        console.print(line, soft_wrap=True)
    console.print(f"Results are in {folder}.", soft_wrap=True)


def print_table(console: Console, trials: list[Entry]) -> None:
    """Print one table, or two on narrow terminals."""
    names = list(COLUMNS)
    full_table = _table(trials, names)
    if Measurement.get(console, console.options.update(width=1000), full_table).maximum <= console.width:
        console.print(full_table)
        return
    for half in (names[:N_FIRST_COLUMNS], names[N_FIRST_COLUMNS:]):
        console.print(_table(trials, half))
        console.print()


def _table(trials: list[Entry], columns: list[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("solver", style="cyan")
    for name in columns:
        table.add_column(name, justify="left" if name == "outcome" else "right", no_wrap=True)
    for trial in trials:
        cells = ["not run" if name == "outcome" else "" for name in columns]
        if trial["error"] is None:
            cells = [COLUMNS[name](trial) for name in columns]
        table.add_row(trial["label"], *cells)
    return table


def _remarks(manifest: dict[str, Any]) -> list[Text]:
    """Remarks below the table."""
    remarks = [
        Text.assemble((trial["label"], "cyan"), f" was not run: {trial['error']}.")
        for trial in manifest["trials"]
        if trial["error"] is not None
    ]
    other = [
        trial["label"]
        for trial in manifest["trials"]
        if trial["error"] is None and trial["precision"] != manifest["precision"]
    ]
    if other:
        remarks.append(Text(f"{', '.join(other)} ran in float64, the only precision it supports."))
    return remarks


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
