"""What commands say: results on stdout, all else on stderr, mistakes as sentences."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from supple.naming import naming
from supple.words import shorten_words

if TYPE_CHECKING:
    from supple.asking import Options

DONE, NOT_CONVERGED, REFUSED, DEFECT, OUT_OF_MEMORY, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 70, 71, 130, 141
"""Exit codes. 70 is EX_SOFTWARE and 71 EX_OSERR of sysexits.h; 130 and 141 are what shells give for SIGINT
and SIGPIPE."""

TERMINATED = 143
"""The exit code that shells give for SIGTERM."""

STDOUT = "standard output"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]
ScenePath = Annotated[
    Path, typer.Argument(help="A scene file (TOML), or a name of `supple list scenes`.", show_default=False)
]

LONGEST_WORD = 1000
"""Letters of a word in an error; most paths are shorter."""

PIPE_WIDTH = 140
"""Characters across where stdout is no terminal."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, which `kill`, Slurm and Docker send: it ends a command as Ctrl-C does."""


def catch_sigterm() -> None:
    """Let SIGTERM raise `Terminated` once, so that locks and unfinished files are removed; later ones are
    ignored. A handler of somebody else, or that SIGTERM is ignored, stays as it is."""

    def terminate(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    of_main_thread = threading.current_thread() is threading.main_thread()
    if of_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)


def interruption(error: KeyboardInterrupt) -> tuple[int, str]:
    """The exit code and the first word of the sentence for Ctrl-C and for SIGTERM."""
    return (TERMINATED, "Terminated") if isinstance(error, Terminated) else (INTERRUPTED, "Interrupted")


class _Speaker(Console):
    """A console that prints strings as they are: titles, names and paths may hold brackets and colons.
    Styles come from `Text` objects and from columns of tables."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> None:
        drop_closed_streams()
        raise SystemExit(PIPE_CLOSED)


errors = _Speaker(stderr=True, soft_wrap=True)


class _Stdout(_Speaker):
    def print(self, *args: Any, **options: Any) -> None:
        with naming(STDOUT):
            super().print(*args, **options)


def stdout() -> Console:
    """Where tables go."""
    return _Stdout(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def say(text: object) -> None:
    """One line, or several, of a result on stdout."""
    with naming(STDOUT):
        typer.echo(text)


def answer(values: dict[str, Any]) -> None:
    """A result as JSON on stdout, escaped where stdout cannot write all letters."""
    from supple.io.results import to_json

    text = to_json(values)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = to_json(values, ascii_only=True)
    say(text)


@contextmanager
def refusing(as_json: bool) -> Iterator[None]:
    """A mistake of the user ends the command with a sentence and exit code 2, not with a traceback; what else
    can go wrong has an exit code of its own."""
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except BrokenPipeError:  # nobody listens any more, as in `supple list | head`
        code, sentence = PIPE_CLOSED, ""
    except (ValueError, OSError) as error:
        code, sentence = REFUSED, _sentence(error)
    except MemoryError as error:
        code, sentence = OUT_OF_MEMORY, _out_of_memory(error)
    except KeyboardInterrupt as error:
        code, word = interruption(error)
        sentence = f"{word}."
    except Exception as error:
        traceback.print_exc()
        code, sentence = DEFECT, _defect(error)
    else:
        return
    _end(code, sentence, as_json)


def _end(code: int, sentence: str, as_json: bool) -> NoReturn:
    """Say why a command ends, as far as somebody listens."""
    sentence = shorten_words(sentence, LONGEST_WORD)
    with suppress(OSError):
        if sentence:
            errors.print(
                sentence
                if code in (INTERRUPTED, TERMINATED)
                else Text.assemble(("error:", "bold red"), " ", sentence)
            )
        if sentence and as_json:
            answer({"error": sentence, "exit_code": code})
    drop_closed_streams()
    raise typer.Exit(code) from None


def drop_closed_streams() -> None:
    """Let go of what cannot be written any more, which Python would try again when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def folder(text: str) -> Path:
    """A folder named on the command line; an empty name would be the one that the user is in."""
    if not text.strip():
        raise typer.BadParameter("the name of the folder is empty; '.' is the one that you are in.")
    return Path(text)


def note(sentence: str) -> None:
    errors.print(Text.assemble(("note:", "yellow"), " ", sentence))


class AnnounceCompilation(logging.Handler):
    """Says once that kernels are being compiled, which takes seconds during which nothing else happens, and
    what supple warns of."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._said = False

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            note(record.getMessage())
        elif not self._said and str(record.msg).startswith("compiling"):
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


def given_limits(
    tolerance: float | None,
    max_iterations: int | None,
    time_budget: str | None,
    distance: float | None = None,
) -> Options:
    """What the command line says of when to stop, without what it does not."""
    limits: Options = {"max_iterations": max_iterations}
    if tolerance is not None:
        limits["tolerance"] = tolerance
    if time_budget is not None:
        limits["time_budget"] = parse_seconds(time_budget)
    if distance is not None:
        limits["distance"] = distance
    return limits


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error)


def _out_of_memory(error: MemoryError) -> str:
    what = f" ({error})" if str(error) else ""
    return f"there was not enough memory{what}. Make the scene coarser, or use a machine with more memory."


def _defect(error: Exception) -> str:
    return (
        f"this is a defect of supple {_version()}, not of your input: {type(error).__name__}: {error}. "
        "Please report it with the lines above."
    )


def _version() -> str:
    from supple import __version__

    return __version__
