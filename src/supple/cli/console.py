"""Console output of commands: results on stdout, messages on stderr, user errors as sentences."""

from __future__ import annotations

import codecs
import logging
import os
import re
import signal
import sys
import threading
import traceback
import unicodedata
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer
from rich.console import Console
from rich.text import Text

from supple.support.os_errors import add_path_to_os_errors
from supple.support.text import shorten_words

if TYPE_CHECKING:
    from supple.solve.call_options import Options

DONE, NOT_CONVERGED, REFUSED, DEFECT, OUT_OF_MEMORY, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 70, 71, 130, 141
"""Exit codes. 70 is EX_SOFTWARE and 71 EX_OSERR of sysexits.h; 130 and 141 are the shell's codes for SIGINT
and SIGPIPE."""

TERMINATED = 143
"""Exit code of shells for SIGTERM."""

STDOUT = "standard output"

MAX_WORD_LENGTH = 1000
"""Maximum number of characters of a word in an error message; most paths are shorter."""

PIPE_WIDTH = 140
"""Width in characters of output that is not a terminal."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, sent by `kill`, Slurm and Docker; it ends a command like Ctrl-C."""


def catch_sigterm() -> None:
    """Raise `Terminated` on the first SIGTERM and ignore later ones.

    The exception lets commands remove locks and temporary files. Existing handlers, and an ignored SIGTERM,
    stay unchanged.
    """

    def terminate(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    of_main_thread = threading.current_thread() is threading.main_thread()
    if of_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)


def interruption(error: KeyboardInterrupt) -> tuple[int, str]:
    """Exit code and leading word of the message for Ctrl-C and SIGTERM."""
    return (TERMINATED, "Terminated") if isinstance(error, Terminated) else (INTERRUPTED, "Interrupted")


class _LiteralConsole(Console):
    """Console that prints strings literally, since titles, names and paths may contain brackets and colons.

    Styles come from `Text` objects and table columns.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> None:
        drop_closed_streams()
        raise SystemExit(PIPE_CLOSED)


errors = _LiteralConsole(stderr=True, soft_wrap=True)


class _Stdout(_LiteralConsole):
    def print(self, *args: Any, **options: Any) -> None:
        with add_path_to_os_errors(STDOUT):
            super().print(*args, **options)


def stdout() -> Console:
    """Console for tables."""
    return _Stdout(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def say(text: object) -> None:
    """Print a result on stdout."""
    with add_path_to_os_errors(STDOUT):
        typer.echo(text)


def print_json(values: dict[str, Any]) -> None:
    """Print a result as JSON on stdout, escaped to ASCII if stdout cannot encode all characters."""
    from supple.io.results import to_json

    text = to_json(values)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = to_json(values, ascii_only=True)
    say(text)


@contextmanager
def handle_errors(as_json: bool) -> Iterator[None]:
    """Turn errors into messages and exit codes.

    User errors end the command with a sentence and exit code 2, without a traceback. Other failures have exit
    codes of their own.
    """
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except BrokenPipeError:  # closed pipe, as in `supple list | head`
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
    """Print the reason and exit; closed streams are ignored."""
    sentence = shorten_words(sentence, MAX_WORD_LENGTH)
    with suppress(OSError):
        if sentence:
            errors.print(
                sentence
                if code in (INTERRUPTED, TERMINATED)
                else Text.assemble(("error:", "bold red"), " ", sentence)
            )
        if sentence and as_json:
            print_json({"error": sentence, "exit_code": code})
    drop_closed_streams()
    raise typer.Exit(code) from None


def drop_closed_streams() -> None:
    """Redirect closed streams to the null device, since Python flushes them again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def folder(text: str) -> Path:
    """Parse a folder name; an empty name, which would mean the working directory, is rejected."""
    if not text.strip():
        raise typer.BadParameter("the name of the folder is empty; '.' is the working directory.")
    return Path(text)


def note(sentence: str) -> None:
    errors.print(Text.assemble(("note:", "yellow"), " ", sentence))


class CompilationHandler(logging.Handler):
    """Log handler that announces kernel compilation once and prints warnings."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._has_announced = False

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            note(record.getMessage())
        elif not self._has_announced and str(record.msg).startswith("compiling"):
            self._has_announced = True
            errors.print("Compiling kernels, once on this machine…")


@contextmanager
def attach_handler(handler: logging.Handler) -> Iterator[None]:
    """Attach a log handler to supple's logger within the context."""
    log = logging.getLogger("supple")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def announce_compilation() -> AbstractContextManager[None]:
    return attach_handler(CompilationHandler())


_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str) -> float:
    """Parse a duration in seconds: "2", "2 s", "500 ms", "1.5 min" or "1 h"."""
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(ms|s|min|h)?\s*", text)
    try:
        if match:
            return float(match[1]) * _UNITS[match[2] or "s"]
    except ValueError:
        pass
    raise ValueError(
        "a time must be a number of seconds, or have a unit, such as '2 s', '500 ms' or '1 min'; "
        f"got {text!r}"
    )


def collect_limits(
    tolerance: float | None,
    max_iterations: int | None,
    time_limit: str | None,
    position_tolerance: float | None = None,
) -> Options:
    """Termination criteria given on the command line."""
    limits: Options = {"max_iterations": max_iterations}
    if tolerance is not None:
        limits["tolerance"] = tolerance
    if time_limit is not None:
        limits["time_limit"] = parse_seconds(time_limit)
    if position_tolerance is not None:
        limits["position_tolerance"] = position_tolerance
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
        "Please report it with the lines above and what supple.show_versions() prints in Python."
    )


def _version() -> str:
    from supple import __version__

    return __version__


ASCII_REPLACEMENTS = {
    "·": "-",
    "–": "-",
    "—": "-",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
    "√": "sqrt",
    "→": "->",
    "∂": "d",
    "½": "1/2",
    "²": "^2",
    "³": "^3",
    "ᵀ": "^T",
    "λ": "lambda",
    "\u0302": "^",
}


def replace_letter(letter: str) -> str:
    """ASCII replacement of a character: nu for ν, e for é, ... for …, ? without a close match."""
    if letter in ASCII_REPLACEMENTS:
        return ASCII_REPLACEMENTS[letter]
    name = unicodedata.name(letter, "")
    if name.startswith("GREEK"):
        return name.split()[-1].lower()
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"


def _replace_unencodable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Encoding error handler that writes ASCII replacements; undecodable bytes of file names are kept."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    if all("\udc80" <= letter <= "\udcff" for letter in letters):
        return bytes(ord(letter) - 0xDC00 for letter in letters), error.end
    return "".join(map(replace_letter, letters)), error.end


codecs.register_error("supple.plain", _replace_unencodable)


def use_ascii_replacements(*streams: TextIO) -> None:
    """Replace characters that a stream cannot encode by ASCII."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="supple.plain")
