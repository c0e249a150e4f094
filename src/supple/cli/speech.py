"""What commands say: results on stdout, all else on stderr, mistakes as sentences."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated

import typer
from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]

errors = Console(stderr=True, highlight=False, soft_wrap=True)

PIPE_WIDTH = 140
"""Characters across where stdout is no terminal."""


def stdout() -> Console:
    """Where tables go."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


@contextmanager
def refusing(as_json: bool) -> Iterator[None]:
    """A mistake of the user ends the command with a sentence and exit code 2, not with a traceback."""
    try:
        yield
    except (ValueError, OSError) as error:
        sentence = _sentence(error)
        errors.print(f"[bold red]error:[/] {_escaped(sentence)}")
        if as_json:
            from supple.io.results import to_json

            typer.echo(to_json({"error": sentence, "exit_code": 2}))
        raise typer.Exit(2) from None


def note(sentence: str) -> None:
    errors.print(f"[yellow]note:[/] {_escaped(sentence)}")


class AnnounceCompilation(logging.Handler):
    """Says once that kernels are being compiled, which takes seconds during which nothing else happens."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._said = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._said and str(record.msg).startswith("compiling"):
            self._said = True
            errors.print("Compiling kernels, once on this machine…")


@contextmanager
def hearing(handler: logging.Handler) -> Iterator[None]:
    """Within it, a handler gets what supple logs."""
    log = logging.getLogger("supple")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def announcing_compilation() -> AbstractContextManager[None]:
    return hearing(AnnounceCompilation())


_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str) -> float:
    """Seconds from "2", "2 s", "500 ms", "1.5 min" or "1 h"."""
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(ms|s|min|h)?\s*", text)
    try:
        if match:
            return float(match[1]) * _UNITS[match[2] or "s"]
    except ValueError:
        pass
    raise ValueError(
        f"a time is a number of seconds or has a unit, such as '2 s', '500 ms' or '1 min'; got {text!r}"
    )


def say_seconds(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
