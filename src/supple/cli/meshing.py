"""Progress messages of tetrahedralization, which can take minutes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.status import Status
from rich.text import Text

from supple.cli.speech import errors, hearing, note
from supple.words import say_seconds


class ShowTetrahedralisation(logging.Handler):
    """Log handler that shows the current step and elapsed time on a terminal, and a single line elsewhere."""

    def __init__(self, status: Status) -> None:
        super().__init__(logging.INFO)
        self._status, self._said, self._began = status, False, perf_counter()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno >= logging.WARNING:
            note(text)
        elif errors.is_terminal:
            self._status.start()
            self._status.update(Text(f"{text} ({say_seconds(perf_counter() - self._began)})"))
        elif not self._said:
            errors.print(f"{text} …")
            self._said = True


@contextmanager
def showing_tetrahedralisation() -> Iterator[None]:
    """Show the progress of tetrahedralization within the context."""
    status = Status("", console=errors)
    try:
        with hearing(ShowTetrahedralisation(status)):
            yield
    finally:
        status.stop()
