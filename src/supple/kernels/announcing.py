"""Saying that kernels are being compiled, which takes seconds during which nothing else happens.

Every kernel is logged, at the level INFO of the logger "supple". Where nobody listens to that, one sentence
goes to a terminal or notebook once it takes long; SUPPLE_QUIET=1 or logging.getLogger("supple").setLevel(
"WARNING") silence it.
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

from supple.kernels.keeping import can_keep, forget_unused

log = logging.getLogger("supple")

LONG = 1.0
"""Seconds of compilation after which a person should know."""

_kernels: set[str] = set()


def announce(function: Callable) -> None:
    """Say in future when a kernel is compiled."""
    _kernels.add(_name(function))


def _name(function: Callable) -> str:
    return f"{function.__module__}.{function.__qualname__}"


class _Compilations(event.Listener):
    """Times the compilation of supple's kernels."""

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
    """Logs what is compiled, and tells a person who sees no log."""

    def __init__(self) -> None:
        super().__init__()
        self._timer: Timer | None = None
        self._said = False

    def begin(self, function: Callable) -> None:
        forget_unused()
        log.info("compiling %s (%s)", function.__name__, _how_often())
        if not self._said and _someone_waits():
            self._timer = Timer(max(0.0, LONG - self.seconds), self._say)
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say(self) -> None:
        self._said = True
        print(f"supple: compiling kernels ({_how_often()}) ...", file=sys.stderr, flush=True)


def _how_often() -> str:
    return "once on this machine, then cached" if can_keep() else "kernels are not kept"


def _someone_waits() -> bool:
    """Whether a person looks at stderr and has not chosen to read supple's log, or not to."""
    if os.environ.get("SUPPLE_QUIET", "0") not in ("", "0") or log.level > logging.INFO:
        return False
    if log.isEnabledFor(logging.INFO) and log.hasHandlers():
        return False
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


event.register("numba:compile", _Announcements())


@contextmanager
def compilation() -> Iterator[_Compilations]:
    """Within it, kernels that have to be compiled are timed: `.seconds` is what that took."""
    with event.install_listener("numba:compile", _Compilations()) as listener:
        yield listener
