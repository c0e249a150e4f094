"""Thread loop of a live session: executes commands, updates the simulation and publishes snapshots."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

from supple.kernels import compilation
from supple.live.simulation import Simulation
from supple.live.snapshot import Notice, Snapshot, snapshot_of

log = logging.getLogger("supple")

QUICKEST, SLOWEST = 1 / 60, 1 / 10
"""Lower and upper bounds on the minimum time between updates [s]."""

LONG = 1.0
"""Time after which the page reports a step in progress [s], and the interval of these reports."""

IDLE = 1 / 30
"""Polling interval without work [s]."""

EXPECTED = (ValueError, ArithmeticError, MemoryError, OSError)
"""Errors whose text is a sentence for the user."""


class Worker:
    """Update loop of a session.

    Attributes:
        commands: Queue of commands executed between updates; None ends the loop.
        listeners: Functions that receive notices.
        urgent: Event, set after commands that abandon a step of a motion.
        snapshot: Latest snapshot.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._playing, self._steps, self._obeyed = False, 0, 0
        self._recent: deque[float] = deque(maxlen=20)
        self.listeners: list[Callable[[Notice], None]] = []
        self.commands: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.urgent = threading.Event()
        self._changed = threading.Condition()
        self.snapshot = snapshot_of(simulation, 0, 0, "Preparing the scene…", False, 0.0)

    def wait(self, version: int, timeout: float) -> Snapshot:
        """Wait for a newer snapshot; returns the current one after a timeout [s]."""
        with self._changed:
            self._changed.wait_for(lambda: self.snapshot.version > version, timeout)
        return self.snapshot

    def set_playing(self, playing: bool) -> None:
        self._playing, self._steps = playing, 0
        self._recent.clear()

    def step(self) -> None:
        self._playing, self._steps = False, self._steps + 1

    def reset(self) -> None:
        self.set_playing(False)
        self._simulation.reset()

    def live(self) -> None:
        """Thread function."""
        handler, level = _Announcer(self._show), log.level
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        try:
            with compilation():
                going = True
                while going:
                    if not self._attempt(self._work):
                        self.set_playing(False)
                        self._show("Paused after an error.")
                    going = self._obey()
        finally:
            log.removeHandler(handler)
            log.setLevel(level)

    def _obey(self) -> bool:
        """Execute queued commands, waiting for one if idle; False ends the thread."""
        self.urgent.clear()
        idle = not (self._playing or self._steps or self._simulation.stale)
        while True:
            try:
                command = self.commands.get(block=idle)
            except Empty:
                return True
            if command is None:
                return False
            self._attempt(command)
            self._obeyed += 1
            idle = False

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Call a function and report errors to listeners; False after an error."""
        try:
            action()
        except Exception as error:
            expected = isinstance(error, EXPECTED)
            if not expected:
                log.exception("a live session failed")
            notice = Notice("error", str(error) if expected else f"{type(error).__name__}: {error}")
            for listener in self.listeners:
                listener(notice)
            return False
        return True

    def _work(self) -> None:
        """Work between two checks of the command queue."""
        if self._simulation.stale:
            self._show("Preparing…")
            self._simulation.prepare()
        if self._steps:
            self._steps -= 1
            self._update()
        elif not self._playing:
            self._simulation.follow_pins()
            self._show("Paused.")
        elif self._simulation.rest():
            time.sleep(IDLE)
            self._show("In balance.")
        else:
            self._update()

    def _update(self) -> None:
        began = time.perf_counter()
        told = began

        def abandoned() -> bool:
            nonlocal told
            now = time.perf_counter()
            if now - told > LONG:
                told = now
                self._show(f"Solving a step for {now - began:.0f} s…")
            return self.urgent.is_set()

        done = self._simulation.update(lambda: not self.commands.empty(), abandoned)
        self._show("Playing." if self._playing else "Paused.")
        if self._playing and done:
            time.sleep(max(0.0, self._pace - (time.perf_counter() - began)))
            self._recent.append(time.perf_counter())

    @property
    def _pace(self) -> float:
        """Minimum time between updates [s]; motions are not shown faster than real time."""
        settings = self._simulation.settings
        return QUICKEST if settings.quasistatic else min(max(settings.dt, QUICKEST), SLOWEST)

    def _show(self, status: str) -> None:
        spent = self._recent[-1] - self._recent[0] if len(self._recent) > 1 else 0.0
        rate = (len(self._recent) - 1) / spent if spent else 0.0
        shown = snapshot_of(
            self._simulation, self.snapshot.version + 1, self._obeyed, status, self._playing, rate
        )
        with self._changed:
            self.snapshot = shown
            self._changed.notify_all()


class _Announcer(logging.Handler):
    """Log handler that shows the kernel being compiled, which takes seconds."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("compiling"):
            self._tell(f"{record.getMessage()[0].upper()}{record.getMessage()[1:]}…")
