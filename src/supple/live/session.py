"""Simulation in a separate thread, controlled by commands and observed through snapshots.

This module contains no web code.
"""

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
        self._ordered, self._ordering = 0, threading.Lock()
        self._thread = threading.Thread(target=self._worker.live, name="supple session", daemon=True)

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
            self._thread.join(timeout=LAST)

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
            self._ordered += 1
            self._worker.commands.put(command)
            if urgent:
                self._worker.urgent.set()
            return self._ordered
