"""Wind in live scenes: speed and direction."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from supple.live.settings import Settings, Velocity
from supple.scene import Scene

MAX_SLIDER_SPEED = 20.0
"""Upper end of the speed slider [m/s], unless the scene has faster wind."""


class Winds:
    """Winds of a scene.

    Scenes with cloth but without wind get a wind on all cloth, which is inactive at zero velocity: it does
    not even cause air resistance.
    """

    def __init__(self, scene: Scene) -> None:
        cloth = [body for body in scene.bodies if body.kind == "cloth"]
        self.offered = cloth if not scene.winds else []
        """Bodies affected by the additional wind."""
        if self.offered:
            scene = copy(scene)
            scene.winds = []
            scene.add_wind((0.0, 0.0, 0.0), *cloth)
        self._winds = scene.winds

    def with_winds(self, settings: Settings) -> Settings:
        """Add the scene's winds to settings without winds."""
        if settings.winds:
            return settings
        x, y, z = np.array([wind.velocity for wind in self._winds], float).reshape(-1, 3).T.tolist()
        return replace(settings, winds=tuple(zip(x, y, z, strict=True)))

    def forces(
        self, velocities: tuple[Velocity, ...], x: np.ndarray, v: np.ndarray, time: float
    ) -> np.ndarray | None:
        """Total wind forces (n, 3) [N]; None without active wind.

        Args:
            velocities: Velocity of each wind [m/s].
            x: (n, 3) positions [m].
            v: (n, 3) velocities [m/s].
            time: Time [s].
        """
        blowing = [
            replace(wind, velocity=velocity).forces(x, v, time)
            for wind, velocity in zip(self._winds, velocities, strict=True)
            if any(velocity) or not self.offered
        ]
        return np.sum(blowing, axis=0) if blowing else None


class WindFolder:
    """Wind controls: speed and direction, for motions.

    Directions follow the convention of cameras: 0° blows along z, 90° along x.
    """

    def __init__(self, gui: Any, winds: int) -> None:
        numbers = tuple(str(k + 1) for k in range(winds))
        with gui.add_folder("Wind"):
            self.which = gui.add_dropdown("Which wind", numbers, visible=winds > 1)
            self.speed = gui.add_slider(
                "Speed [m/s]", 0.0, MAX_SLIDER_SPEED, 0.1, 0.0, hint="For motions; equilibria have no wind."
            )
            self.towards = gui.add_slider(
                "Towards [°]", -180.0, 180.0, 1.0, 90.0, hint="0 is along z, 90 along x."
            )
            self.rising = gui.add_slider("Rising [°]", -90.0, 90.0, 1.0, 0.0, hint="90 is along y.")
        self.clicked: list[Any] = [self.speed, self.towards, self.rising]
        self.typed: list[Any] = []
        self._last_values: tuple[float, ...] = ()

    def show(self, settings: Settings) -> None:
        velocity = settings.winds[int(self.which.value) - 1]
        if not np.allclose(self._velocity, velocity, rtol=0, atol=1e-9):
            speed = math.hypot(*velocity)
            self.speed.max = max(MAX_SLIDER_SPEED, speed)
            self.speed.value = speed
            if speed:  # zero velocity has no direction; keep the sliders
                x, y, z = velocity
                self.towards.value = math.degrees(math.atan2(x, z))
                self.rising.value = math.degrees(math.asin(np.clip(y / speed, -1, 1)))
        for control in self.clicked:
            control.disabled = settings.quasistatic
        self._last_values = self._values

    def read(self, before: Settings) -> Settings:
        if self._values == self._last_values:
            return before
        winds = list(before.winds)
        winds[int(self.which.value) - 1] = self._velocity
        return replace(before, winds=tuple(winds))

    @property
    def _values(self) -> tuple[float, ...]:
        return self.speed.value, self.towards.value, self.rising.value

    @property
    def _velocity(self) -> Velocity:
        """Velocity given by the sliders [m/s]."""
        speed, a, e = self.speed.value, math.radians(self.towards.value), math.radians(self.rising.value)
        return (
            speed * math.sin(a) * math.cos(e),
            speed * math.sin(e),
            speed * math.cos(a) * math.cos(e),
        )
