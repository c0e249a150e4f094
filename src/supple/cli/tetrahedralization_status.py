"""Status line of tetrahedralization, which can take minutes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.status import Status
from rich.text import Text

from supple.cli.console import attach_handler, errors, note
from supple.support.text import format_duration


class TetrahedralizationHandler(logging.Handler):
    """Log handler that shows the current step and elapsed time on a terminal, and a single line elsewhere."""

    def __init__(self, status: Status) -> None:
        super().__init__(logging.INFO)
        self._status, self._has_announced, self._began = status, False, perf_counter()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno >= logging.WARNING:
            note(text)
        elif errors.is_terminal:
            self._status.start()
            self._status.update(Text(f"{text} ({format_duration(perf_counter() - self._began)})"))
        elif not self._has_announced:
            errors.print(f"{text} …")
            self._has_announced = True


@contextmanager
def show_tetrahedralization() -> Iterator[None]:
    """Show the progress of tetrahedralization within the context."""
    status = Status("", console=errors)
    try:
        with attach_handler(TetrahedralizationHandler(status)):
            yield
    finally:
        status.stop()
