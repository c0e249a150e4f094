"""supple export: frames of a run in the file formats of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supple.cli.console import announce_compilation, errors, folder, handle_errors, print_json, stdout
from supple.cli.shared_options import Json, Quiet


def export(
    results: Annotated[Path, typer.Argument(help="Results folder of `supple run`.", show_default=False)],
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            help="Comma-separated formats to export to, such as usd,glb, see `supple list exports`.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None, typer.Option(parser=folder, help="Output folder; default: the results folder.")
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated fields to write to USD, VTU, NPZ and Zarr, such as von_mises,cauchy, see "
            "`supple list quantities`."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Export the initial state and the frames of a run, finished or not, without simulating."""
    with handle_errors(json):
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        from supple.runs.present import export as write

        columns = TextColumn("frame"), MofNCompleteColumn(), BarColumn(bar_width=28)
        with (
            announce_compilation(),
            Progress(
                *columns, console=errors, transient=True, disable=quiet or not errors.is_terminal
            ) as bar,
        ):
            task = bar.add_task("export")

            def show_progress(done: int, all: int) -> None:
                bar.update(task, completed=done, total=all)

            paths = write(results, formats, output, show_progress, fields=fields)
        if json:
            print_json({"files": {name: str(path) for name, path in paths.items()}, "exit_code": 0})
        elif not quiet:
            for name, path in paths.items():
                stdout().print(f"{name:<5} {path}")
