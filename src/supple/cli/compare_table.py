"""Result table of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from supple.cli.console import stdout
from supple.runs.comparison import COLUMNS, Entry

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
        remarks.append(Text(f"{', '.join(other)} ran in float64, which is the only precision it has."))
    return remarks
