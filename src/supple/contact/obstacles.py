"""The obstacles of a model: rigid shapes that move as prescribed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from supple.contact.shapes import FRICTION, OBSTACLE, POSE, STEP, Shapes


@dataclass(frozen=True, eq=False)
class Obstacles:
    """names: of the obstacles, in order; rows (r, FIELDS): the shapes that they consist of, as in `Shapes`;
    values (v,): of their grids; poses(t) (r, 12): the frames of the shapes at time t [s], as in a row."""

    names: tuple[str, ...]
    rows: np.ndarray
    values: np.ndarray
    poses: Callable[[float], np.ndarray]

    @property
    def rough(self) -> bool:
        """Whether any has friction."""
        return bool((self.rows[:, FRICTION] > 0).any())

    @property
    def planes(self) -> int:
        """How many of the shapes a vertex may touch at once: more than three do not hold it any better."""
        return min(len(self.rows), 3)

    @property
    def obstacle(self) -> np.ndarray:
        """(r,) the number of the obstacle that each shape is of."""
        return self.rows[:, OBSTACLE].astype(int)

    def shapes(self, time: float) -> Shapes:
        """The shapes where they are at a time [s]; nothing has moved in the step so far."""
        rows = self.rows.copy()
        rows[:, POSE : POSE + 12] = self.poses(time)
        rows[:, STEP : STEP + 9] = np.eye(3).ravel()
        return Shapes(rows, self.values)

    def advance(self, shapes: Shapes, time: float) -> None:
        """Bring shapes to where they are at a time [s], and remember how they got there."""
        before, now = shapes.rows[:, POSE : POSE + 12].copy(), self.poses(time)
        R = np.einsum("kai,kaj->kij", now[:, :9].reshape(-1, 3, 3), before[:, :9].reshape(-1, 3, 3))
        shapes.rows[:, POSE : POSE + 12] = now
        shapes.rows[:, STEP : STEP + 9] = R.reshape(-1, 9)
        shapes.rows[:, STEP + 9 :] = now[:, 9:] - np.einsum("kij,kj->ki", R, before[:, 9:])
