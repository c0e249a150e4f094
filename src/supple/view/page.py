"""One HTML page that holds everything in itself: pictures, film, curves, tables and the scene."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from supple.io.replacing import replacing
from supple.view.style import THEMES

FILM_LIMIT = 12_000_000
"""Bytes of a film up to which it is put into a page."""


@dataclass(frozen=True)
class Figure:
    """A picture or plot as data URIs, light and dark; caption: what it shows."""

    caption: str
    light: str
    dark: str


@dataclass(frozen=True)
class Table:
    """heading; columns: names; rows: a list of texts each. Columns after the first few are numbers."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Page:
    """What a page shows. verdict: the sentence that says how it went, `good` where it went well; film: a data
    URI, or None; remarks: sentences on what is missing."""

    title: str
    subtitle: str
    verdict: str
    good: bool
    figures: dict[str, str]
    pictures: Sequence[Figure]
    plots: Sequence[Figure]
    tables: Sequence[Table]
    scene: str
    circumstances: dict[str, str]
    film: str | None = None
    remarks: Sequence[str] = field(default_factory=tuple)

    def html(self) -> str:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("supple.view", "."),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        return environment.get_template("page.html").render(page=self)

    def write(self, path: Path) -> None:
        """Into an HTML file, whole or not at all; its folder is made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(self.html(), encoding="utf-8")


def page_file(path: Path) -> Path:
    """A path for a page, which must be no folder."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file such as {path / 'report.html'}.")
    return path


def drawn(caption: str, draw: Callable[..., Any], *arguments: Any, **options: Any) -> Figure:
    """What a function such as `history_plot` draws into a PNG file, in both themes."""
    with TemporaryDirectory() as folder:
        made = {}
        for name, theme in THEMES.items():
            path = Path(folder) / f"{name}.png"
            draw(path, *arguments, theme=theme, **options)
            made[name] = picture_uri(path)
    return Figure(caption, **made)


def picture_uri(path: Path) -> str:
    """A picture as a data URI, as WebP, which is a tenth of the size of PNG."""
    from PIL import Image

    stream = BytesIO()
    Image.open(path).convert("RGB").save(stream, "webp", quality=90, method=4)
    return _uri("image/webp", stream.getvalue())


def film_uri(path: Path) -> str | None:
    """A film as a data URI; None where it is too large to be mailed."""
    return _uri("video/mp4", path.read_bytes()) if path.stat().st_size <= FILM_LIMIT else None


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
