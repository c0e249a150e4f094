"""Wind on the live page: how fast it blows, and which way."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from supple.live.settings import Settings, Velocity
from supple.scene import Scene

FASTEST = 20.0
"""End of the slider of speeds [m/s], where the scene has no faster wind."""


class Winds:
    """Those of a scene. Where cloth has none, there is one on all of it, which does nothing until somebody
    lets it blow: not even what air at rest does."""

    def __init__(self, scene: Scene) -> None:
        cloth = [body for body in scene.bodies if body.kind == "cloth"]
        self.offered = cloth if not scene.winds else []
        """What a wind that the scene does not have would blow on."""
        if self.offered:
            scene = copy(scene)
            scene.winds = []
            scene.add_wind((0.0, 0.0, 0.0), *cloth)
        self._winds = scene.winds

    def known(self, settings: Settings) -> Settings:
        """Settings that say nothing of winds have those of the scene."""
        if settings.winds:
            return settings
        x, y, z = np.array([wind.velocity for wind in self._winds], float).reshape(-1, 3).T.tolist()
        return replace(settings, winds=tuple(zip(x, y, z, strict=True)))

    def forces(
        self, velocities: tuple[Velocity, ...], x: np.ndarray, v: np.ndarray, time: float
    ) -> np.ndarray | None:
        """(n, 3) [N] of all winds with velocities [m/s], at a time [s], on vertices at positions x (n, 3) [m]
        with velocities v (n, 3) [m/s]; None where there is no wind."""
        blowing = [
            replace(wind, velocity=velocity).forces(x, v, time)
            for wind, velocity in zip(self._winds, velocities, strict=True)
            if any(velocity) or not self.offered
        ]
        return np.sum(blowing, axis=0) if blowing else None


class WindFolder:
    """Speed and direction of one of the winds, in motions. Directions are as those of cameras: 0° blows
    along z, 90° along x."""

    def __init__(self, gui: Any, winds: int) -> None:
        numbers = tuple(str(k + 1) for k in range(winds))
        with gui.add_folder("Wind"):
            self.which = gui.add_dropdown("Which wind", numbers, visible=winds > 1)
            self.speed = gui.add_slider(
                "Speed [m/s]", 0.0, FASTEST, 0.1, 0.0, hint="In motions; equilibria have no wind."
            )
            self.towards = gui.add_slider(
                "Towards [°]", -180.0, 180.0, 1.0, 90.0, hint="0 is along z, 90 along x."
            )
            self.rising = gui.add_slider("Rising [°]", -90.0, 90.0, 1.0, 0.0, hint="90 is along y.")
        self.clicked = [self.speed, self.towards, self.rising]
        self.typed: list[Any] = []
        self._shown: tuple[float, ...] = ()

    def show(self, settings: Settings) -> None:
        velocity = settings.winds[int(self.which.value) - 1]
        if not np.allclose(self._velocity, velocity, rtol=0, atol=1e-9):
            speed = math.hypot(*velocity)
            self.speed.max = max(FASTEST, speed)
            self.speed.value = speed
            if speed:  # air at rest goes nowhere; the direction stays for when it blows again
                x, y, z = velocity
                self.towards.value = math.degrees(math.atan2(x, z))
                self.rising.value = math.degrees(math.asin(np.clip(y / speed, -1, 1)))
        for control in self.clicked:
            control.disabled = settings.quasistatic
        self._shown = self._values

    def read(self, before: Settings) -> Settings:
        if self._values == self._shown:
            return before
        winds = list(before.winds)
        winds[int(self.which.value) - 1] = self._velocity
        return replace(before, winds=tuple(winds))

    @property
    def _values(self) -> tuple[float, ...]:
        return self.speed.value, self.towards.value, self.rising.value

    @property
    def _velocity(self) -> Velocity:
        """What the sliders say [m/s]."""
        speed, a, e = self.speed.value, math.radians(self.towards.value), math.radians(self.rising.value)
        return (
            speed * math.sin(a) * math.cos(e),
            speed * math.sin(e),
            speed * math.cos(a) * math.cos(e),
        )
