"""A simulation in its own thread, which obeys commands and shows snapshots. No web code here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.live.pins import Placement
from supple.live.settings import Settings
from supple.live.simulation import Simulation
from supple.live.snapshot import Notice, Snapshot
from supple.live.worker import Worker
from supple.scene import Scene, SceneFile
from supple.scene.files import file_without_path
from supple.scene.scene import scene_of

LAST = 10.0
"""Seconds that the last update may take."""


class Session:
    """A scene, or one of a file with its solver, that computes in its own thread.

    Commands return their number at once and are obeyed between updates, in their order. What they lead to is
    in the first `snapshot` with so many obeyed, and in notices for `listen`. Whatever goes wrong becomes a
    notice; an update that went wrong also makes the session pause.
    """

    def __init__(self, scene: Scene | SceneFile, settings: Settings | None = None) -> None:
        """Prepare a session.

        Args:
            scene: A `Scene`, or what `load_scene` returns, which also says how to solve it.
            settings: Solver, materials, time step and precision to begin with; those of the scene unless
                given.
        """
        self.file = scene if isinstance(scene, SceneFile) else file_without_path(scene_of(scene))
        self._simulation = Simulation(self.file, settings)
        self._worker = Worker(self._simulation)
        self._ordered, self._ordering = 0, threading.Lock()
        self._thread = threading.Thread(target=self._worker.live, name="supple session", daemon=True)

    @property
    def snapshot(self) -> Snapshot:
        """The latest."""
        return self._worker.snapshot

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread after the update that it is at; one that takes long ends with the process."""
        self._order(None, urgent=True)
        if self._thread.is_alive():
            self._thread.join(timeout=LAST)

    def listen(self, listener: Callable[[Notice], None]) -> None:
        """Have notices told, from the session's thread."""
        self._worker.listeners.append(listener)

    def wait(self, version: int, timeout: float) -> Snapshot:
        """The first snapshot after a version; the present one when that takes too long [s]."""
        return self._worker.wait(version, timeout)

    def play(self) -> int:
        return self._order(lambda: self._worker.set_playing(True))

    def pause(self) -> int:
        return self._order(lambda: self._worker.set_playing(False), urgent=True)

    def step(self) -> int:
        """Do one update, and pause."""
        return self._order(self._worker.step)

    def reset(self) -> int:
        """Back to the start of the scene, paused, with the present settings."""
        return self._order(self._worker.reset, urgent=True)

    def change(self, settings: Settings) -> int:
        return self._order(lambda: self._simulation.change(settings), urgent=True)

    def place(self, pin: int, placement: Placement) -> int:
        """Move, turn and stretch a pin set by hand."""
        return self._order(lambda: self._simulation.place(pin, placement))

    def carry(self, obstacle: int, offset: np.ndarray) -> int:
        """Shift an obstacle by hand, by so much (3,) [m] from where its motion has it."""
        return self._order(lambda: self._simulation.carry(obstacle, offset))

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

    def _order(self, command: Callable[[], None] | None, urgent: bool = False) -> int:
        """Have a command obeyed, None to end; returns its number. urgent: a step of a motion that is being
        solved is given up for it; others wait for the end of the step."""
        with self._ordering:
            self._ordered += 1
            self._worker.commands.put(command)
            if urgent:
                self._worker.urgent.set()
            return self._ordered
