"""The obstacles of a model: rigid shapes that move as prescribed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from supple.contact import shapes as kinds
from supple.contact.rigid import Rigid
from supple.contact.shapes import BEFORE, FRICTION, KINETIC, OBSTACLE, POSE, STEP, Shapes

Surface = tuple[np.ndarray, np.ndarray]
"""Points (p, 3) [m] and triangles (t, 3), counter-clockwise seen from outside."""


def _no_surfaces(time: float) -> dict[int, Surface]:
    return {}


@dataclass(frozen=True, eq=False)
class Obstacles:
    """names: of the obstacles, in order; rows (r, FIELDS): the shapes that they consist of, as in `Shapes`;
    values (v,): of their meshes; poses(t) (r, 12): the frames of the shapes at time t [s], as in a row;
    values_at(t): those of meshes that deform then, None where none does; rigid: those that have a
    mass, and are moved by what they touch; surfaces(t): points (p, 3) [m] in the frame of the shape and
    triangles (t, 3) of the meshes that shapes were made of, by the number of their row. The triangles of one
    shape are the same at all times."""

    names: tuple[str, ...]
    rows: np.ndarray
    values: np.ndarray
    poses: Callable[[float], np.ndarray]
    values_at: Callable[[float], np.ndarray] | None = None
    rigid: tuple[Rigid, ...] = ()
    surfaces: Callable[[float], dict[int, Surface]] = _no_surfaces

    @property
    def rough(self) -> bool:
        """Whether any has friction."""
        return bool((self.rows[:, FRICTION] > 0).any())

    @property
    def slippery(self) -> bool:
        """Whether any has less friction for what slides."""
        return bool((self.rows[:, KINETIC] != self.rows[:, FRICTION]).any())

    @property
    def planes(self) -> int:
        """How many planes a vertex may touch at once: that of every shape, and of a mesh with concave edges
        up to three. More than three do not hold it any better."""
        return min(len(self.rows) + 2 * int((self.rows[:, kinds.CREASES] > 0).sum()), 3)

    @property
    def obstacle(self) -> np.ndarray:
        """(r,) the number of the obstacle that each shape is of."""
        return self.rows[:, OBSTACLE].astype(int)

    @property
    def extents(self) -> tuple[np.ndarray, np.ndarray]:
        """(r,) [m] how thick each shape is where that is least, and how far it reaches from its frame's
        origin; infinite and 0 for what has no other side."""
        thick, reach = np.full(len(self.rows), np.inf), np.zeros(len(self.rows))
        for k, row in enumerate(self.rows):
            a, b, c = row[kinds.SIZE : kinds.SIZE + 3]
            size = {
                kinds.CAPSULE: (2 * b, 2 * b, 2 * (a + b)),
                kinds.CYLINDER: (2 * b, 2 * b, 2 * a),
                kinds.BOX: (2 * a, 2 * b, 2 * c),
                kinds.MESH: (a, b, c),
            }.get(int(row[kinds.KIND]))
            if size is not None and row[kinds.SIDE] > 0:
                thick[k], reach[k] = min(size), float(np.linalg.norm(size))
            if row[kinds.KIND] == kinds.MESH:
                thick[k] = row[kinds.THIN]
        return thick, reach

    def hurry(self, shapes: Shapes) -> float:
        """How far the shapes move in the present step, in parts of their thickness; the largest counts."""
        thick, reach = self.extents
        R = shapes.rows[:, STEP : STEP + 9].reshape(-1, 3, 3)
        now = shapes.rows[:, POSE + 9 : POSE + 12]
        before = np.einsum("kji,kj->ki", R, now - shapes.rows[:, STEP + 9 : STEP + 12])
        moved = np.linalg.norm(now - before, axis=1)
        turned = np.linalg.norm(R - np.eye(3), axis=(1, 2)) * reach
        return float(np.max((moved + turned) / thick, initial=0.0))

    def deformation(self, begin: float, end: float) -> float:
        """The largest distance by which vertices of a mesh that deforms move in its frame from one time [s]
        to another, in parts of the thickness of its thin parts."""
        if self.values_at is None or not self.surfaces(begin):
            return 0.0
        first, last, (thick, _) = self.surfaces(begin), self.surfaces(end), self.extents
        return max(
            float(np.linalg.norm(last[k][0] - first[k][0], axis=1).max(initial=0.0)) / thick[k] for k in first
        )

    def shapes(self, time: float) -> Shapes:
        """The shapes where they are at a time [s]; nothing has moved in the step so far."""
        rows = self.rows.copy()
        rows[:, POSE : POSE + 12] = self.poses(time)
        for first in (STEP, BEFORE):
            rows[:, first : first + 9] = np.eye(3).ravel()
        return Shapes(rows, self.values if self.values_at is None else self.values_at(time))

    def advance(self, shapes: Shapes, now: np.ndarray, time: float, dt: float = np.inf) -> None:
        """Bring shapes to frames (r, 12) at a time [s], and remember how they got there; after a step of dt
        [s], also how they had moved in the one before."""
        before = shapes.rows[:, POSE : POSE + 12].copy()
        shapes.rows[:, POSE : POSE + 12] = now
        shapes.rows[:, STEP : STEP + 12] = between(before, now)
        if self.values_at is not None:
            shapes.values[:] = self.values_at(time)
        if self.slippery and np.isfinite(dt):
            earlier = [self.poses(max(0.0, time - steps * dt)) for steps in (2, 1)]
            shapes.rows[:, BEFORE : BEFORE + 12] = between(*earlier)


def between(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """(r, 12) R and t of x → R x + t, which leads from frames (r, 12) to others."""
    R = np.einsum("kai,kaj->kij", now[:, :9].reshape(-1, 3, 3), before[:, :9].reshape(-1, 3, 3))
    t = now[:, 9:] - np.einsum("kij,kj->ki", R, before[:, 9:])
    return np.concatenate([R.reshape(-1, 9), t], axis=1)
