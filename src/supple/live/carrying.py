"""Obstacles of a live scene, which hands may shift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from supple.contact import Obstacles
from supple.scene import Scene
from supple.scene.obstacles import obstacles_of


class Carried:
    """The obstacles of a scene, each shifted by its offset (3,) [m] from where its motion has it."""

    def __init__(self, scene: Scene) -> None:
        self._own = obstacles_of(scene)
        self.names = () if self._own is None else self._own.names
        self.reset()

    def reset(self) -> None:
        self.offsets = np.zeros((len(self.names), 3))

    def poses(self, time: float) -> np.ndarray:
        """(r, 12) the frames of all shapes at a time [s]."""
        if self._own is None:
            return np.empty((0, 12))
        frames = self._own.poses(time).copy()
        frames[:, 9:] += self.offsets[self._own.obstacle]
        return frames

    def of(self, obstacles: Obstacles | None) -> Obstacles | None:
        """Those of a model, where they are carried to."""
        return None if obstacles is None else replace(obstacles, poses=self.poses)
