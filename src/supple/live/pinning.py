"""Numerical controls of pin sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from supple.live.pins import Placement
from supple.live.session import Session
from supple.live.snapshot import Handle, Snapshot, placed_handle


class PinFolder:
    """Position, rotation and stretch of a pin set as numbers."""

    def __init__(self, gui: Any, session: Session) -> None:
        self._session = session
        self._ordered = 0
        names = tuple(handle.name for handle in session.snapshot.handles)
        with gui.add_folder("Pins", expand_by_default=bool(names), visible=bool(names)):
            self.handles = gui.add_checkbox("Show handles", True)
            self._set = gui.add_dropdown("Pin set", names or ("none",), visible=len(names) > 1)
            self._place = gui.add_vector3("Middle [m]", (0.0, 0.0, 0.0), step=0.001)
            self._turn = gui.add_vector3(
                "Turn [°]", (0.0, 0.0, 0.0), step=0.1, hint="About x, then y, then z."
            )
            self._stretch = [gui.add_slider(f"Stretch {axis}", 0.2, 3.0, 0.01, 1.0) for axis in "xyz"]
        self._names = names
        if names:
            self._show(session.snapshot.handles[0])
        self._set.on_update(lambda _: self._show(session.snapshot.handles[self._number]))
        for control in (self._place, self._turn, *self._stretch):
            control.on_update(self._moved)

    @property
    def _number(self) -> int:
        return self._names.index(self._set.value)

    async def _moved(self, event: Any) -> None:  # async callbacks run immediately and in order
        if event.client is None:
            return
        turn = Rotation.from_euler("xyz", self._turn.value, degrees=True)
        stretch = np.array([slider.value for slider in self._stretch])
        placement = Placement(np.array(self._place.value), turn, stretch)
        self._shown = placed_handle(self._set.value, placement)
        self._ordered = self._session.place(self._number, placement)

    def follow(self, snapshot: Snapshot) -> None:
        """Show the current placement unless already displayed or commands are pending."""
        if not self._names or snapshot.obeyed < self._ordered:
            return
        handle = snapshot.handles[self._number]
        if not handle.same_as(self._shown):
            self._show(handle)

    def _show(self, handle: Handle) -> None:
        self._shown = handle
        turn = Rotation.from_quat(np.roll(handle.wxyz, -1)).as_euler("xyz", degrees=True)
        self._place.value = tuple(np.round(handle.position, 4).tolist())
        self._turn.value = tuple(np.round(turn, 2).tolist())
        for slider, factor in zip(self._stretch, handle.stretch, strict=True):
            slider.value = float(factor)
