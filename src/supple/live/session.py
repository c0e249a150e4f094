"""Simulation in a separate thread, controlled by commands and observed through snapshots.

This module contains no web code.
"""

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
from supple.live.movable_pins import Placement
from supple.live.settings import Settings
from supple.live.simulation import Simulation
from supple.live.snapshot import Notice, Snapshot, snapshot_of
from supple.scene import Scene, SceneFile
from supple.scene.files.loader import file_without_path
from supple.scene.scene import scene_of

log = logging.getLogger("supple")

MIN_UPDATE_INTERVAL, MAX_UPDATE_INTERVAL = 1 / 60, 1 / 10
"""Lower and upper bounds on the minimum time between updates [s]."""

PROGRESS_INTERVAL = 1.0
"""Time after which the page reports a step in progress [s], and the interval of these reports."""

IDLE_INTERVAL = 1 / 30
"""Polling interval without work [s]."""

EXPECTED_ERRORS = (ValueError, ArithmeticError, MemoryError, OSError)
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
        self._playing, self._steps, self._executed = False, 0, 0
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

    def run(self) -> None:
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
                    going = self._execute_commands()
        finally:
            log.removeHandler(handler)
            log.setLevel(level)

    def _execute_commands(self) -> bool:
        """Execute queued commands, waiting for one if idle; False ends the thread."""
        self.urgent.clear()
        idle = not (self._playing or self._steps or self._simulation.needs_preparation)
        while True:
            try:
                command = self.commands.get(block=idle)
            except Empty:
                return True
            if command is None:
                return False
            self._attempt(command)
            self._executed += 1
            idle = False

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Call a function and report errors to listeners; False after an error."""
        try:
            action()
        except Exception as error:
            expected = isinstance(error, EXPECTED_ERRORS)
            if not expected:
                log.exception("a live session failed")
            notice = Notice("error", str(error) if expected else f"{type(error).__name__}: {error}")
            for listener in self.listeners:
                listener(notice)
            return False
        return True

    def _work(self) -> None:
        """Work between two checks of the command queue."""
        if self._simulation.needs_preparation:
            self._show("Preparing…")
            self._simulation.prepare()
        if self._steps:
            self._steps -= 1
            self._update()
        elif not self._playing:
            self._simulation.follow_pins()
            self._show("Paused.")
        elif self._simulation.skip_if_at_rest():
            time.sleep(IDLE_INTERVAL)
            self._show("In balance.")
        else:
            self._update()

    def _update(self) -> None:
        began = time.perf_counter()
        last_report = began

        def is_abandoned() -> bool:
            nonlocal last_report
            now = time.perf_counter()
            if now - last_report > PROGRESS_INTERVAL:
                last_report = now
                self._show(f"Solving a step for {now - began:.0f} s…")
            return self.urgent.is_set()

        done = self._simulation.update(lambda: not self.commands.empty(), is_abandoned)
        self._show("Playing." if self._playing else "Paused.")
        if self._playing and done:
            time.sleep(max(0.0, self._min_interval - (time.perf_counter() - began)))
            self._recent.append(time.perf_counter())

    @property
    def _min_interval(self) -> float:
        """Minimum time between updates [s]; motions are not shown faster than real time."""
        settings = self._simulation.settings
        return (
            MIN_UPDATE_INTERVAL
            if settings.quasistatic
            else min(max(settings.dt, MIN_UPDATE_INTERVAL), MAX_UPDATE_INTERVAL)
        )

    def _show(self, status: str) -> None:
        spent = self._recent[-1] - self._recent[0] if len(self._recent) > 1 else 0.0
        rate = (len(self._recent) - 1) / spent if spent else 0.0
        snapshot = snapshot_of(
            self._simulation, self.snapshot.version + 1, self._executed, status, self._playing, rate
        )
        with self._changed:
            self.snapshot = snapshot
            self._changed.notify_all()


class _Announcer(logging.Handler):
    """Log handler that shows the kernel being compiled, which takes seconds."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("compiling"):
            self._tell(f"{record.getMessage()[0].upper()}{record.getMessage()[1:]}…")


CLOSE_TIMEOUT = 10.0
"""Maximum waiting time for the last update on closing [s]."""


class Session:
    """Interactive simulation in its own thread.

    Commands return their number immediately and are executed in order between updates. Their effects appear
    in the first `snapshot` whose count of executed commands has reached that number. Errors are reported as
    notices to listeners; a failed update also pauses the session.
    """

    def __init__(self, scene: Scene | SceneFile, settings: Settings | None = None) -> None:
        """Prepare a session.

        Args:
            scene: A `Scene`, or the result of `load_scene`, which includes solver settings.
            settings: Initial solver, materials, time step and precision; those of the scene by default.
        """
        self.file = scene if isinstance(scene, SceneFile) else file_without_path(scene_of(scene))
        self._simulation = Simulation(self.file, settings)
        self._worker = Worker(self._simulation)
        self._last_command, self._ordering = 0, threading.Lock()
        self._thread = threading.Thread(target=self._worker.run, name="supple session", daemon=True)

    @property
    def snapshot(self) -> Snapshot:
        """Latest snapshot."""
        return self._worker.snapshot

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop the thread after its current update; a very long update ends with the process."""
        self._order(None, urgent=True)
        if self._thread.is_alive():
            self._thread.join(timeout=CLOSE_TIMEOUT)

    def listen(self, listener: Callable[[Notice], None]) -> None:
        """Register a function that receives notices, called from the session's thread."""
        self._worker.listeners.append(listener)

    def wait(self, version: int, timeout: float) -> Snapshot:
        """Wait for a snapshot newer than a version.

        Args:
            version: Version of a known snapshot.
            timeout: Maximum waiting time [s].

        Returns:
            The newer snapshot, or the current one after the timeout.
        """
        return self._worker.wait(version, timeout)

    def play(self) -> int:
        return self._order(lambda: self._worker.set_playing(True))

    def pause(self) -> int:
        return self._order(lambda: self._worker.set_playing(False), urgent=True)

    def step(self) -> int:
        """Perform one update and pause."""
        return self._order(self._worker.step)

    def reset(self) -> int:
        """Pause and return to the initial scene state with current settings."""
        return self._order(self._worker.reset, urgent=True)

    def change(self, settings: Settings) -> int:
        return self._order(lambda: self._simulation.change(settings), urgent=True)

    def place(self, pin: int, placement: Placement) -> int:
        """Place a pin set by hand.

        Args:
            pin: Number of the pin set.
            placement: Position, rotation and stretch.
        """
        return self._order(lambda: self._simulation.place(pin, placement))

    def carry(self, obstacle: int, offset: np.ndarray) -> int:
        """Displace an obstacle by hand.

        Args:
            obstacle: Number of the obstacle.
            offset: (3,) offset from its prescribed motion [m].
        """
        return self._order(lambda: self._simulation.carry(obstacle, offset))

    def grab(self, vertex: int, radius: float = 0.0, hand: Any = None) -> int:
        """Grab a vertex and its surroundings; each hand holds one part at a time.

        Args:
            vertex: Vertex id.
            radius: Distance at rest within which vertices are grabbed [m].
            hand: Identifier of the hand.
        """
        return self._order(lambda: self._simulation.grab(vertex, radius, hand))

    def drag(self, offset: np.ndarray, hand: Any = None) -> int:
        """Move the grabbed part of a hand.

        Args:
            offset: (3,) offset from the position at the start of the grab [m].
            hand: Identifier of the hand.
        """
        return self._order(lambda: self._simulation.drag(offset, hand))

    def release(self, hand: Any = None, keep: bool = False) -> int:
        """Release the grabbed part of a hand.

        Args:
            hand: Identifier of the hand.
            keep: Keep the part pinned at its current position.
        """
        return self._order(lambda: self._simulation.release(hand, keep))

    def release_all(self) -> int:
        return self._order(self._simulation.release_all)

    def ask(self, question: Callable[[Simulation], None]) -> int:
        """Call a function with the simulation between updates."""
        return self._order(lambda: question(self._simulation))

    def _order(self, command: Callable[[], None] | None, urgent: bool = False) -> int:
        """Queue a command and return its number.

        Args:
            command: Function to call; None ends the thread.
            urgent: Abandon the current step of a motion instead of waiting for its end.
        """
        with self._ordering:
            self._last_command += 1
            self._worker.commands.put(command)
            if urgent:
                self._worker.urgent.set()
            return self._last_command
