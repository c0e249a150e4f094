"""supple report: a self-contained HTML page of a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supple.cli.console import handle_errors, note, print_json, say
from supple.cli.shared_options import Json


def report(
    results: Annotated[
        Path,
        typer.Argument(help="Results folder of `supple run` or `supple compare`.", show_default=False),
    ],
    output: Annotated[
        Path | None, typer.Option(help="HTML file; default: report.html in the results folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Write an HTML page with pictures, film, curves, all figures, the scene file, versions and machine.

    The page is self-contained and needs no other file.
    """
    with handle_errors(json):
        from supple.runs.pages import write_page

        path, page = write_page(results, output)
        if json:
            print_json({"file": str(path), "bytes": path.stat().st_size, "remarks": page.remarks})
            return
        for remark in page.remarks:
            note(remark)
        say(path)
