"""A simulation in its own thread, which obeys commands and shows snapshots. No web code here."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from supple.kernels import compilation
from supple.live.pins import Placement
from supple.live.settings import Settings
from supple.live.simulation import Simulation
from supple.live.snapshot import Notice, Snapshot, look_at
from supple.scene import SceneFile

log = logging.getLogger("supple")

QUICKEST, SLOWEST = 1 / 60, 1 / 10
"""Seconds from update to update, at least, where nothing takes longer."""

IDLE = 1 / 30
"""Seconds between looks at the clock while there is nothing to solve."""

LAST = 10.0
"""Seconds that the last update may take."""

EXPECTED = (ValueError, ArithmeticError, MemoryError, OSError)
"""Errors whose text is a sentence for the user."""


class Session:
    """A scene that computes in its own thread.

    Commands return their number at once and are obeyed between updates, in their order. What they lead to is
    in the first `snapshot` with so many obeyed, and in notices for `listen`. Whatever goes wrong becomes a
    notice; an update that went wrong also makes the session pause.
    """

    def __init__(self, file: SceneFile, settings: Settings | None = None) -> None:
        self.file = file
        self._simulation = Simulation(file, settings)
        self._playing, self._steps = False, 0
        self._recent: deque[float] = deque(maxlen=20)
        self._listeners: list[Callable[[Notice], None]] = []
        self._commands: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._ordered, self._obeyed, self._ordering = 0, 0, threading.Lock()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._live, name="supple session", daemon=True)
        self.snapshot = look_at(self._simulation, 0, 0, "Preparing the scene…", False, 0.0)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread after the update that it is at; one that takes long ends with the process."""
        self._order(None)
        if self._thread.is_alive():
            self._thread.join(timeout=LAST)

    def listen(self, listener: Callable[[Notice], None]) -> None:
        """Have notices told, from the session's thread."""
        self._listeners.append(listener)

    def wait(self, version: int, timeout: float) -> Snapshot:
        """The first snapshot after a version; the present one when that takes too long [s]."""
        with self._changed:
            self._changed.wait_for(lambda: self.snapshot.version > version, timeout)
        return self.snapshot

    def play(self) -> int:
        return self._order(lambda: self._set_playing(True))

    def pause(self) -> int:
        return self._order(lambda: self._set_playing(False))

    def step(self) -> int:
        """Do one update, and pause."""
        return self._order(self._order_step)

    def reset(self) -> int:
        """Back to the start of the scene, paused, with the present settings."""
        return self._order(self._reset)

    def change(self, settings: Settings) -> int:
        return self._order(lambda: self._simulation.change(settings))

    def place(self, pin: int, placement: Placement) -> int:
        """Move, turn and stretch a pin set by hand."""
        return self._order(lambda: self._simulation.place(pin, placement))

    def grab(self, vertex: int, radius: float = 0.0, hand: Any = None) -> int:
        """Hold a vertex, and all within a radius [m] of it at rest. A hand holds one part at a time."""
        return self._order(lambda: self._simulation.grab(vertex, radius, hand))

    def drag(self, offset: np.ndarray, hand: Any = None) -> int:
        """Move what a hand has grabbed to so far (3,) [m] from where it was."""
        return self._order(lambda: self._simulation.drag(offset, hand))

    def release(self, hand: Any = None, keep: bool = False) -> int:
        """Let go of what a hand has grabbed; keep: it stays pinned where it is."""
        return self._order(lambda: self._simulation.release(hand, keep))

    def release_all(self) -> int:
        return self._order(self._simulation.release_all)

    def ask(self, question: Callable[[Simulation], None]) -> int:
        """Have something done with the simulation while it stands still."""
        return self._order(lambda: question(self._simulation))

    def _order(self, command: Callable[[], None] | None) -> int:
        """Have a command obeyed, None to end; returns its number."""
        with self._ordering:
            self._ordered += 1
            self._commands.put(command)
            return self._ordered

    def _set_playing(self, playing: bool) -> None:
        self._playing, self._steps = playing, 0
        self._recent.clear()

    def _order_step(self) -> None:
        self._playing, self._steps = False, self._steps + 1

    def _reset(self) -> None:
        self._set_playing(False)
        self._simulation.reset()

    def _live(self) -> None:
        """The thread."""
        handler, level = _Announcer(self._show), log.level
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        try:
            with compilation():
                going = True
                while going:
                    if not self._attempt(self._work):
                        self._set_playing(False)
                        self._show("Paused after an error.")
                    going = self._obey()
        finally:
            log.removeHandler(handler)
            log.setLevel(level)

    def _obey(self) -> bool:
        """Obey all commands that are waiting, and wait for one where there is nothing else to do."""
        idle = not (self._playing or self._steps or self._simulation.stale)
        while True:
            try:
                command = self._commands.get(block=idle)
            except Empty:
                return True
            if command is None:
                return False
            self._attempt(command)
            self._obeyed += 1
            idle = False

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Do something. What goes wrong is told; False then."""
        try:
            action()
        except Exception as error:
            expected = isinstance(error, EXPECTED)
            if not expected:
                log.exception("a live session failed")
            notice = Notice("error", str(error) if expected else f"{type(error).__name__}: {error}")
            for listener in self._listeners:
                listener(notice)
            return False
        return True

    def _work(self) -> None:
        """What is to do between two looks at the commands."""
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
        self._simulation.update(lambda: not self._commands.empty())
        self._show("Playing." if self._playing else "Paused.")
        if self._playing:
            time.sleep(max(0.0, self._pace - (time.perf_counter() - began)))
            self._recent.append(time.perf_counter())

    @property
    def _pace(self) -> float:
        """Seconds that an update takes at least: what moves is not shown faster than it is."""
        settings = self._simulation.settings
        return QUICKEST if settings.quasistatic else min(max(settings.dt, QUICKEST), SLOWEST)

    def _show(self, status: str) -> None:
        spent = self._recent[-1] - self._recent[0] if len(self._recent) > 1 else 0.0
        rate = (len(self._recent) - 1) / spent if spent else 0.0
        shown = look_at(
            self._simulation, self.snapshot.version + 1, self._obeyed, status, self._playing, rate
        )
        with self._changed:
            self.snapshot = shown
            self._changed.notify_all()


class _Announcer(logging.Handler):
    """Tells which kernel is being compiled, which takes seconds."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("compiling"):
            self._tell(f"{record.getMessage()[0].upper()}{record.getMessage()[1:]}…")
