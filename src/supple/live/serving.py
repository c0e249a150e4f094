"""Server of a live page."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from supple.kernels.device import check_device
from supple.live.session import Session
from supple.live.settings import file_settings
from supple.live.visitors import visitors
from supple.scene import SceneFile

NEEDED = ("viser", "tomli_w")


@contextmanager
def serving(
    file: SceneFile,
    host: str = "127.0.0.1",
    port: int = 8080,
    folder: Path = Path(),
    play: bool = False,
    allowed: Iterable[str] = (),
    device: str = "cpu",
) -> Iterator[str]:
    """Serve a live page within the context; yields its address with access token.

    Args:
        file: The scene file.
        host: Host name or address to serve at.
        port: Port to serve at.
        folder: Folder for files saved by users.
        play: Start playing immediately.
        allowed: Origins, such as https://example.org, whose pages may access this one.
        device: "cpu" or "cuda".

    Raises:
        ValueError: viser or tomli_w is not installed.
        DeviceError: The device is not available.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"the live page needs {' and '.join(missing)}: pip install 'supple[view]'")
    from supple.live.page import Page

    welcome = visitors(host, allowed)
    _require(device)
    session = Session(file, replace(file_settings(file), device=device))
    page = Page(session, host, port, folder, welcome)
    session.start()
    if play:
        session.play()
    try:
        yield f"http://{_shown(host)}:{page.server.get_port()}/{page.query}"
    finally:
        page.close()
        session.close()


def _require(device: str) -> None:
    """Check that the device is available.

    Raises:
        DeviceError: It is not.
    """
    check_device(device)
    if device == "cuda":
        from supple.kernels.cuda import require_device

        require_device()


def _shown(host: str) -> str:
    """Host in the form used in a local URL."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host
