"""supple view: a scene in the browser, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supple.cli.speech import ScenePath, errors, note, refusing


def view(
    scene: ScenePath,
    host: Annotated[
        str, typer.Option(help="Address to serve at; others than this machine's are open to all.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to serve at, or the next one that is free.")] = 8080,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Another address of the page, such as that of a proxy, or a site whose pages may use it: "
            "https://box.example.org. May be repeated.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Where to compute: cpu or cuda.")] = "cpu",
    output: Annotated[Path, typer.Option(help="Folder for what the page saves.")] = Path(),
    play: Annotated[bool, typer.Option("--play", help="Play at once.")] = False,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Show a scene in the browser, deforming while solver, material and pins are changed by hand.

    Ctrl+C ends it.
    """
    with refusing(False):
        from supple.cli.job import load_file
        from supple.live.address import free_port, is_local
        from supple.live.serving import serving

        file = load_file(scene)
        if not output.is_dir():
            raise ValueError(f"there is no folder {output} to save to")
        free = free_port(host, port)
        if free != port:
            note(f"port {port} is taken; using {free}")
        if not is_local(host):
            note(f"anybody who can reach this machine at {host} can use the page: it has no password")
        with serving(file, host, free, output, play, allow_origin or (), device) as url:
            errors.print(f"[bold]{file.title}[/] is live at [link={url}]{url}[/]. Ctrl+C ends it.")
            if browser:
                typer.launch(url)
            _wait()


def _wait() -> None:
    import threading

    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        errors.print("Ended.")
