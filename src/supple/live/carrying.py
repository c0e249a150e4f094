"""Obstacles of a live scene with interactive offsets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from supple.contact import Obstacles
from supple.scene import Scene
from supple.scene.obstacles import obstacles_of


class Carried:
    """Obstacles of a scene, displaced from their prescribed motions by hand.

    Attributes:
        names: Names of the obstacles.
        offsets: (o, 3) offset of each obstacle [m].
    """

    def __init__(self, scene: Scene) -> None:
        self._own = obstacles_of(scene)
        self.names = () if self._own is None else self._own.names
        self.reset()

    def reset(self) -> None:
        self.offsets = np.zeros((len(self.names), 3))

    def poses(self, time: float) -> np.ndarray:
        """Frames (r, 12) of all shapes at a time [s], including offsets."""
        if self._own is None:
            return np.empty((0, 12))
        frames = self._own.poses(time).copy()
        frames[:, 9:] += self.offsets[self._own.obstacle]
        return frames

    def of(self, obstacles: Obstacles | None) -> Obstacles | None:
        """Copy of obstacles with displaced poses."""
        return None if obstacles is None else replace(obstacles, poses=self.poses)
