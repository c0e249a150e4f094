"""Settings controls of the page, connected to a session."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from supple.live.choices import MaterialFolder, SolverFolder, TimeFolder
from supple.live.settings import Settings
from supple.live.snapshot import Snapshot
from supple.live.wind import WindFolder
from supple.materials import MATERIALS, Material

Folder = SolverFolder | MaterialFolder | TimeFolder | WindFolder

PATIENCE = 0.7
"""Seconds without a keystroke after which typed text is applied."""


class Controls:
    """Settings panel of the page.

    Args:
        gui: User interface of viser.
        settings: Initial settings.
        bodies: Names of the bodies.
        changed: Called with new settings; returns the number of the session's command.
        refused: Called with a sentence about invalid values.
        materials: Selectable materials by name.
    """

    def __init__(
        self,
        gui: Any,
        settings: Settings,
        bodies: list[str],
        changed: Callable[[Settings], int],
        refused: Callable[[str], None],
        materials: Mapping[str, type[Material]] = MATERIALS,
    ) -> None:
        self._settings, self._changed, self._refused = settings, changed, refused
        self._lock, self._ordered = threading.RLock(), 0
        self._timer = threading.Timer(0, lambda: None)
        solver, material, time = SolverFolder(gui), MaterialFolder(gui, bodies, materials), TimeFolder(gui)
        winds = [WindFolder(gui, len(settings.winds))] if settings.winds else []
        self._folders: tuple[Folder, ...] = (solver, material, time, *winds)
        self.show(settings)
        for choice in (material.body, *(folder.which for folder in winds)):
            choice.on_update(_by_user(lambda: self.show(self._settings)))
        for folder in self._folders:
            for control in folder.clicked:
                control.on_update(_by_user(self._apply))
            for control in folder.typed:
                control.on_update(_by_user(self._apply_soon))

    def show(self, settings: Settings) -> None:
        with self._lock:
            self._settings = settings
            for folder in self._folders:
                folder.show(settings)

    def follow(self, snapshot: Snapshot) -> None:
        """Show settings changed outside of this panel, for example after a rollback.

        Snapshots that precede the last command of this panel are ignored, since they contain outdated
        settings.
        """
        with self._lock:
            if self._timer.is_alive() or snapshot.obeyed < self._ordered:
                return
            if snapshot.settings is not self._settings:
                self.show(snapshot.settings)

    def _apply(self) -> None:
        with self._lock:
            settings = self._settings
            try:
                for folder in self._folders:
                    settings = folder.read(settings)
            except ValueError as error:
                self._refused(str(error))
                return
            self._ordered = self._changed(settings)
            self.show(settings)

    def _apply_soon(self) -> None:
        """Apply the controls after a pause in typing."""
        self._timer.cancel()
        self._timer = threading.Timer(PATIENCE, self._apply)
        self._timer.daemon = True
        self._timer.start()


def _by_user(action: Callable[[], None]) -> Callable[[Any], Awaitable[None]]:
    """Callback for user actions; values set by the page itself are ignored."""

    async def updated(event: Any) -> None:  # async callbacks run immediately and in order
        if event.client is not None:
            action()

    return updated
