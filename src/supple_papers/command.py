"""supple papers: figures and tables of the papers, and the corresponding measurements of supple."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supple_papers.internals import (
    Json,
    errors,
    folder,
    handle_errors,
    interruption,
    note,
    print_json,
    say,
    stdout,
)

if TYPE_CHECKING:
    from supple_papers.registry import Row

SOME_SKIPPED = 1
"""Exit code if rows were skipped."""


def papers(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Figures, tables or papers, such as pbng-fig7 or bnh; default: list all."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Measure all figures and tables.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Use the paper's problem sizes, which may take hours.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace existing measurements by new ones.")
    ] = False,
    page: Annotated[bool, typer.Option("--page", help="Write the results page of all measurements.")] = False,
    device: Annotated[
        str, typer.Option(help="Device of timed rows: cpu, or cuda with separate results.")
    ] = "cpu",
    output: Annotated[
        Path | None,
        typer.Option(
            parser=folder, help="Folder of the measurements and of the page; default: results/papers."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the figures and tables of the five papers, or measure some of them.

    Interrupted measurements are continued. Rows that need missing files or libraries are skipped. Exit codes:
    0 done; 1 some rows were skipped; 2 bad input; 130 interrupted.
    """
    with handle_errors(json):
        from supple_papers.measurements import DEVICES
        from supple_papers.registry import find_rows, rows
        from supple_papers.results_page import write_page

        if device not in DEVICES:
            raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}")
        results = output or Path("results/papers")
        chosen = list(rows().values()) if every else find_rows(names or [])
        if not chosen and not page:
            _list(results, json)
            return
        measured, skipped = _measure(chosen, results, full, overwrite, device)
        _judge(results)
        where = write_page(results)
        if json:
            print_json({"rows": measured, "skipped": skipped, "page": str(where)})
        else:
            for key, verdict in measured.items():
                say(f"{key}: {verdict}")
            _print_skipped(skipped, len(measured))
            say(where)
        if skipped:
            raise typer.Exit(SOME_SKIPPED)


def _measure(
    chosen: list[Row], output: Path, full: bool, overwrite: bool, device: str
) -> tuple[dict[str, str], list[str]]:
    """Measure rows.

    Returns:
        Verdict of each row by key (the reason, for rows that are not shown), and the keys of rows skipped for
        missing files or libraries.
    """
    from supple_papers.measurements import Measurements, measurements_path, run_row

    verdicts, skipped = {}, []
    for row in chosen:
        if row.state != "shown":
            verdicts[row.key] = f"{row.state}: it needs {row.needs}" if row.needs else row.state
            continue
        if overwrite:
            measurements_path(output, row.key, device).unlink(missing_ok=True)
        measurements = Measurements(output, row.key, full, note, device)
        try:
            verdicts[row.key] = run_row(measurements)
        except KeyboardInterrupt as error:
            code, word = interruption(error)
            errors.print(f"{word}; `supple papers {row.key}` goes on where this ended.")
            raise typer.Exit(code) from None
        except (FileNotFoundError, ImportError) as error:
            verdicts[row.key] = f"skipped: {error}"
            skipped.append(row.key)
            note(f"{row.key} is skipped: {error}")
    return verdicts, skipped


def _print_skipped(skipped: list[str], rows: int) -> None:
    """Print the number of skipped rows and the command to measure them later."""
    if skipped:
        say(
            f"{len(skipped)} of {rows} {'row' if rows == 1 else 'rows'} skipped, since what they need is not "
            f"there; once it is: supple papers {' '.join(skipped)}"
        )


def _judge(output: Path) -> None:
    """Update the verdicts of earlier measurements to the current criteria."""
    from supple_papers.measurements import DEVICES, judge_again
    from supple_papers.registry import rows

    for key, row in rows().items():
        for device in DEVICES:
            if row.state == "shown" and not judge_again(output, key, device):
                note(f"{key}: its criteria ask for more than was measured; `supple papers {key} --overwrite`")


def _list(output: Path, json: bool) -> None:
    from rich.table import Table

    from supple_papers.measurements import read_measurements
    from supple_papers.registry import rows, titles
    from supple_papers.results_page import row_status

    states = {key: row_status(row, read_measurements(output / f"{key}.json")) for key, row in rows().items()}
    if json:
        print_json({"rows": [_entry(row, states[key]) for key, row in rows().items()]})
        return
    console = stdout()
    for paper, title in titles().items():
        table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=None)
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column()
        for key, row in rows().items():
            if row.paper == paper:
                table.add_row(key, states[key], row.claim)
        console.print(table)
        console.print()


def _entry(row: Row, state: str) -> dict[str, Any]:
    return {"key": row.key, "state": state, "claim": row.claim, "shows": row.shows, "needs": row.needs}
