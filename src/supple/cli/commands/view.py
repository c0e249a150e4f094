"""supple view: a live scene in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supple.cli.console import TERMINATED, Terminated, errors, folder, handle_errors, note
from supple.cli.shared_options import Device, ScenePath


def view(
    scene: ScenePath,
    host: Annotated[
        str,
        typer.Option(help="Address of the server; 127.0.0.1 accepts connections from this machine only."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the server; the next free one if it is taken.")] = 8080,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Further allowed origin, such as the address of a proxy or of an embedding site: "
            "https://box.example.org. May be repeated.",
            show_default=False,
        ),
    ] = None,
    device: Device = "cpu",
    output: Annotated[
        Path | None,
        typer.Option(
            parser=folder,
            help="Folder for files saved by the page, created if missing; default: the working directory.",
        ),
    ] = None,
    play: Annotated[bool, typer.Option("--play", help="Start the simulation immediately.")] = False,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Show a live scene in the browser, with interactive solver, material and pins.

    Ctrl+C ends it.
    """
    with handle_errors(False):
        from rich.text import Text

        from supple.cli.job import load_file
        from supple.live.server import free_port, is_local, serve_page

        file = load_file(scene)
        saved = output or Path()
        if saved.exists() and not saved.is_dir():
            raise ValueError(f"{saved} is not a folder that files can be saved to")
        free = free_port(host, port)
        if free != port:
            note(f"port {port} is taken; using {free}")
        if not is_local(host):
            note(
                f"{host} is reachable over the network, unencrypted: share the address only with people "
                "you trust"
            )
        saved.mkdir(parents=True, exist_ok=True)
        with serve_page(file, host, free, saved, play, allow_origin or (), device) as url:
            errors.print(
                Text.assemble((file.title, "bold"), " is live at ", (url, f"link {url}"), ". Ctrl+C ends it.")
            )
            if browser:
                typer.launch(url)
            _wait()


def _wait() -> None:
    import threading

    try:
        threading.Event().wait()
    except KeyboardInterrupt as error:
        errors.print("Ended.")
        if isinstance(error, Terminated):
            raise typer.Exit(TERMINATED) from None
