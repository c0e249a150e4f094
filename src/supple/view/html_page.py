"""Self-contained HTML page with pictures, film, curves, tables and the scene."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from supple.io.replace_file import replacing
from supple.view.style import THEMES

FILM_LIMIT = 12_000_000
"""Largest size of an embedded film [bytes]."""


@dataclass(frozen=True)
class Figure:
    """Picture or plot as data URIs, one per theme, with caption."""

    caption: str
    light: str
    dark: str


@dataclass(frozen=True)
class Table:
    """A table of texts, with heading and column names. Columns after the first few are numeric."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Page:
    """Contents of a page.

    Attributes:
        title, subtitle: Header lines.
        verdict: Sentence on the outcome.
        good: True for a successful outcome.
        quantities: Key quantities by name.
        pictures, plots: Images.
        tables: Tables.
        scene: Scene file.
        environment: Date, versions, machine and the like, by name.
        film: Data URI, or None.
        remarks: Sentences on omitted parts.
    """

    title: str
    subtitle: str
    verdict: str
    good: bool
    quantities: dict[str, str]
    pictures: Sequence[Figure]
    plots: Sequence[Figure]
    tables: Sequence[Table]
    scene: str
    environment: dict[str, str]
    film: str | None = None
    remarks: Sequence[str] = field(default_factory=tuple)

    def html(self) -> str:
        """Render the page."""
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
        """Write the page to an HTML file atomically; creates the folder."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(self.html(), encoding="utf-8")


def page_file(path: Path) -> Path:
    """Validate a page's path; raises a ValueError for folders."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file such as {path / 'report.html'}.")
    return path


def draw_figure(caption: str, draw: Callable[..., Any], *arguments: Any, **options: Any) -> Figure:
    """Run a plotting function that writes a PNG file, such as `history_plot`, in both themes."""
    with TemporaryDirectory() as folder:
        uris = {}
        for name, theme in THEMES.items():
            path = Path(folder) / f"{name}.png"
            draw(path, *arguments, theme=theme, **options)
            uris[name] = picture_uri(path)
    return Figure(caption, **uris)


def picture_uri(path: Path) -> str:
    """Return a picture as a WebP data URI, a tenth of the size of PNG."""
    from PIL import Image

    stream = BytesIO()
    Image.open(path).convert("RGB").save(stream, "webp", quality=90, method=4)
    return _uri("image/webp", stream.getvalue())


def film_uri(path: Path) -> str | None:
    """Return a film as data URI; None above FILM_LIMIT."""
    return _uri("video/mp4", path.read_bytes()) if path.stat().st_size <= FILM_LIMIT else None


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
