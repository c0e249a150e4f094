"""The settings of the page: folders of controls, bound to a session."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from supple.live.choices import MaterialFolder, SolverFolder, TimeFolder
from supple.live.settings import Settings
from supple.live.snapshot import Snapshot
from supple.live.wind import WindFolder
from supple.materials import MATERIALS, Material

PATIENCE = 0.7
"""Seconds without a keystroke after which what was typed counts."""


class Controls:
    """`changed` is called with new settings and returns the number of the session's command, `refused` with a
    sentence about values that make none."""

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
        self._folders: list[SolverFolder | MaterialFolder | TimeFolder | WindFolder]
        self._folders = [solver, material, time, *winds]
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
        """Show settings that came from elsewhere, such as those that a session went back to. A session that
        has not yet obeyed what was chosen here shows old ones."""
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
        """Apply once nobody types any more."""
        self._timer.cancel()
        self._timer = threading.Timer(PATIENCE, self._apply)
        self._timer.daemon = True
        self._timer.start()


def _by_user(action: Callable[[], None]) -> Callable[[Any], Awaitable[None]]:
    """A callback for what a user does; that the page itself sets a value is no news."""

    async def updated(event: Any) -> None:  # async callbacks come at once and in their order
        if event.client is not None:
            action()

    return updated
