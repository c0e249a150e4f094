"""Messages about kernel compilation, which takes seconds.

Every compilation is logged at level INFO of the logger "supple". Without a log handler, one sentence is
printed to a terminal or notebook after MIN_NOTICE_SECONDS seconds. SUPPLE_QUIET=1 or
logging.getLogger("supple").setLevel("WARNING") suppresses it.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from time import perf_counter
from typing import Any

from numba.core import event

from supple.kernels.compile.disk_cache import can_cache, delete_unused

log = logging.getLogger("supple")

MIN_NOTICE_SECONDS = 1.0
"""Seconds of compilation after which the user is informed."""

_kernels: set[str] = set()


def announce(function: Callable) -> None:
    """Register a kernel whose compilation is announced."""
    _kernels.add(_name(function))


def _name(function: Callable) -> str:
    return f"{function.__module__}.{function.__qualname__}"


class _Compilations(event.Listener):
    """Timer of kernel compilations."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._began = 0.0

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if self._depth or _name(function) in _kernels:
            if not self._depth:
                self._began = perf_counter()
                self.begin(function)
            self._depth += 1

    def on_end(self, event: Any) -> None:
        if self._depth:
            self._depth -= 1
            if not self._depth:
                self.seconds += perf_counter() - self._began
                self.end()

    def begin(self, function: Callable) -> None:
        pass

    def end(self) -> None:
        pass


class _Announcements(_Compilations):
    """Logs compilations and informs the user if no log handler is active."""

    def __init__(self) -> None:
        super().__init__()
        self._timer: Timer | None = None
        self._was_printed = False

    def begin(self, function: Callable) -> None:
        delete_unused()
        log.info("compiling %s (%s)", function.__name__, _cache_note())
        if not self._was_printed and _is_interactive():
            self._timer = Timer(max(0.0, MIN_NOTICE_SECONDS - self.seconds), self._print_notice)
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _print_notice(self) -> None:
        self._was_printed = True
        print(f"supple: compiling kernels ({_cache_note()}) ...", file=sys.stderr, flush=True)


def _cache_note() -> str:
    return "once on this machine, then cached" if can_cache() else "kernels are not cached"


def _is_interactive() -> bool:
    """True if stderr is a terminal or notebook and the user has not configured supple's log."""
    if os.environ.get("SUPPLE_QUIET", "0") not in ("", "0") or log.level > logging.INFO:
        return False
    if log.isEnabledFor(logging.INFO) and log.hasHandlers():
        return False
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


event.register("numba:compile", _Announcements())


@contextmanager
def compilation() -> Iterator[_Compilations]:
    """Context manager that measures the compilation time of kernels in `.seconds`."""
    with event.install_listener("numba:compile", _Compilations()) as listener:
        yield listener
