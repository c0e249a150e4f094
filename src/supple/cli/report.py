"""supple report: one HTML page of a results folder, ready to be mailed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supple.cli.speech import Json, answer, note, refusing, say


def report(
    results: Annotated[
        Path,
        typer.Argument(help="A results folder of `supple run` or `supple compare`.", show_default=False),
    ],
    output: Annotated[
        Path | None, typer.Option(help="The HTML file; report.html in the results folder unless given.")
    ] = None,
    json: Json = False,
) -> None:
    """Write one page with pictures, film, curves, all figures, the scene file, versions and machine.

    It holds everything in itself and needs no other file.
    """
    with refusing(json):
        from supple.cli.pages import page_of
        from supple.io.replacing import replacing

        page = page_of(results)
        path = results / "report.html" if output is None else output
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name a file such as {path / 'report.html'} with --output.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(page.html(), encoding="utf-8")
        if json:
            answer({"file": str(path), "bytes": path.stat().st_size, "remarks": page.remarks})
            return
        for remark in page.remarks:
            note(remark)
        say(path)
