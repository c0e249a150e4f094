"""Obstacles of a model: shapes with prescribed motion, or rigid bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from supple.collision.obstacles import signed_distance as sdf
from supple.collision.obstacles.rigid_body import RigidBody
from supple.collision.obstacles.signed_distance import (
    BEFORE,
    FRICTION,
    KINETIC,
    OBSTACLE,
    POSE,
    STEP,
    Shapes,
)

Surface = tuple[np.ndarray, np.ndarray]
"""Points (p, 3) [m] and triangles (t, 3), counterclockwise seen from outside."""


def _no_surfaces(time: float) -> dict[int, Surface]:
    return {}


@dataclass(frozen=True, eq=False)
class Obstacles:
    """All obstacles of a model.

    Attributes:
        names: Names of the obstacles.
        rows: (r, FIELDS) parameter rows of their shapes, see `Shapes`.
        values: (v,) trees of their meshes.
        poses: Function of time [s] that returns the frames (r, 12) of the shapes, as in a row.
        values_at: Function of time [s] that returns the trees of deforming meshes, or None.
        rigid: Obstacles with mass, moved by contact forces.
        surfaces: Function of time [s] that returns points (p, 3) [m] in the frame of the shape and triangles
            (t, 3) of meshes, by row. Triangles are constant in time.
    """

    names: tuple[str, ...]
    rows: np.ndarray
    values: np.ndarray
    poses: Callable[[float], np.ndarray]
    values_at: Callable[[float], np.ndarray] | None = None
    rigid: tuple[RigidBody, ...] = ()
    surfaces: Callable[[float], dict[int, Surface]] = _no_surfaces

    @property
    def has_friction(self) -> bool:
        """True if any obstacle has friction."""
        return bool((self.rows[:, FRICTION] > 0).any())

    @property
    def has_kinetic_friction(self) -> bool:
        """True if any kinetic friction coefficient differs from the static one."""
        return bool((self.rows[:, KINETIC] != self.rows[:, FRICTION]).any())

    @property
    def planes(self) -> int:
        """Number of contact planes per vertex: one per shape, two more with concave meshes, at most three.

        More than three planes do not constrain a vertex further.
        """
        return min(len(self.rows) + 2 * int((self.rows[:, sdf.CREASES] > 0).sum()), 3)

    @property
    def obstacle(self) -> np.ndarray:
        """(r,) obstacle of each shape."""
        return self.rows[:, OBSTACLE].astype(int)

    @property
    def extents(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest extents (r,) of the shapes [m], and diagonals (r,) of their bounding boxes [m].

        Infinite and 0 for shapes without another side. The extent of a mesh is the thickness of its thin
        parts.
        """
        thick, reach = np.full(len(self.rows), np.inf), np.zeros(len(self.rows))
        for k, row in enumerate(self.rows):
            a, b, c = row[sdf.SIZE : sdf.SIZE + 3]
            size = {
                sdf.CAPSULE: (2 * b, 2 * b, 2 * (a + b)),
                sdf.CYLINDER: (2 * b, 2 * b, 2 * a),
                sdf.BOX: (2 * a, 2 * b, 2 * c),
                sdf.MESH: (a, b, c),
            }.get(int(row[sdf.KIND]))
            if size is not None and row[sdf.SIDE] > 0:
                thick[k], reach[k] = min(size), float(np.linalg.norm(size))
            if row[sdf.KIND] == sdf.MESH:
                thick[k] = row[sdf.THIN]
        return thick, reach

    def motion_ratio(self, shapes: Shapes) -> float:
        """Largest displacement of a shape in the current step, relative to its thickness."""
        thick, reach = self.extents
        R = shapes.rows[:, STEP : STEP + 9].reshape(-1, 3, 3)
        now = shapes.rows[:, POSE + 9 : POSE + 12]
        before = np.einsum("kji,kj->ki", R, now - shapes.rows[:, STEP + 9 : STEP + 12])
        translation = np.linalg.norm(now - before, axis=1)
        rotation = np.linalg.norm(R - np.eye(3), axis=(1, 2)) * reach
        return float(np.max((translation + rotation) / thick, initial=0.0))

    def deformation(self, begin: float, end: float) -> float:
        """Largest displacement of mesh vertices in their frame, relative to the thickness of thin parts.

        Args:
            begin: Initial time [s].
            end: Final time [s].
        """
        if self.values_at is None or not self.surfaces(begin):
            return 0.0
        first, last, (thick, _) = self.surfaces(begin), self.surfaces(end), self.extents
        return max(
            float(np.linalg.norm(last[k][0] - first[k][0], axis=1).max(initial=0.0)) / thick[k] for k in first
        )

    def shapes(self, time: float) -> Shapes:
        """Shapes at a time [s], without displacement in the current step."""
        rows = self.rows.copy()
        rows[:, POSE : POSE + 12] = self.poses(time)
        for first in (STEP, BEFORE):
            rows[:, first : first + 9] = np.eye(3).ravel()
        return Shapes(rows, self.values if self.values_at is None else self.values_at(time))

    def advance(self, shapes: Shapes, now: np.ndarray, time: float, dt: float = np.inf) -> None:
        """Move shapes to new frames, and record their motion.

        Args:
            shapes: Shapes to update.
            now: (r, 12) frames.
            time: Time of the frames [s].
            dt: Time step [s]; if finite, the motion of the previous step is recorded for kinetic friction.
        """
        before = shapes.rows[:, POSE : POSE + 12].copy()
        shapes.rows[:, POSE : POSE + 12] = now
        shapes.rows[:, STEP : STEP + 12] = between(before, now)
        if self.values_at is not None:
            shapes.values[:] = self.values_at(time)
        if self.has_kinetic_friction and np.isfinite(dt):
            earlier = [self.poses(max(0.0, time - steps * dt)) for steps in (2, 1)]
            shapes.rows[:, BEFORE : BEFORE + 12] = between(*earlier)


def between(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Rigid motions R, t (r, 12) of x → R x + t from frames (r, 12) to others."""
    R = np.einsum("kai,kaj->kij", now[:, :9].reshape(-1, 3, 3), before[:, :9].reshape(-1, 3, 3))
    t = now[:, 9:] - np.einsum("kij,kj->ki", R, before[:, 9:])
    return np.concatenate([R.reshape(-1, 9), t], axis=1)
