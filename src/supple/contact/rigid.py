"""Rigid bodies with a mass among the obstacles: what pushes bodies is pushed by them.

A step of backward Euler takes the centre x and the rotation θ of the step to where

    m (x - x̂)/Δt² = F    and    I (θ - θ̂)/Δt² = τ,

with x̂ = x₀ + Δt v + Δt² f/m, θ̂ = Δt ω̂ and the force F and torque τ of what touches it there. One correction
is Δ = (M/Δt² + Σ Jᵀ k J)⁻¹ times what is missing, with the stiffness k of each vertex that touches: the step
that Gauss-Seidel makes of one more unknown. In the end momentum has changed by what bodies did, to the
tolerance of the solve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

if TYPE_CHECKING:
    from supple.contact.obstacles import Obstacles


class Rigid(NamedTuple):
    """row: its shape; mass [kg]; inertia (3,): principal moments in its own frame [kg m²]; force (3,) [N]:
    its weight; velocity (3,) [m/s] and spin (3,) [rad/s] at the start."""

    row: int
    mass: float
    inertia: np.ndarray
    force: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray


class Push(NamedTuple):
    """What vertices do to a rigid body: the points (k, 3) [m] where they touch it, their forces (k, 3) [N] on
    it, the directions (k, d, 3) in which they resist it, and their stiffnesses (k,) [N/m]."""

    points: np.ndarray
    forces: np.ndarray
    ways: np.ndarray
    stiffness: np.ndarray


def together(*pushes: Push) -> Push:
    """All of them as one."""
    return Push(*map(np.concatenate, zip(*pushes, strict=True)))


NO_PUSH = Push(np.empty((0, 3)), np.empty((0, 3)), np.empty((0, 1, 3)), np.empty(0))


@dataclass
class RigidMotion:
    """One rigid body on its way: centre (3,) [m] and axes (3, 3), as a row of shapes has them; velocity and
    spin at the end of the step; what it had when the step began."""

    body: Rigid
    centre: np.ndarray
    axes: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray

    def begin(self, dt: float) -> None:
        """Coast, where the step of dt [s] begins."""
        b = self.body
        self._dt, self._start, self._from = dt, self.centre.copy(), self.axes.copy()
        self._inertia = self.axes.T @ np.diag(b.inertia) @ self.axes
        whirl = np.cross(self.spin, self._inertia @ self.spin)
        self._aim = self.centre + dt * self.velocity + dt * dt * b.force / b.mass
        self._turn_aim = dt * (self.spin - dt * np.linalg.solve(self._inertia, whirl))
        self._put(self._aim.copy(), self._turn_aim.copy())

    def _put(self, centre: np.ndarray, turn: np.ndarray) -> None:
        self.centre, self._turn = centre, turn
        self.axes = self._from @ Rotation.from_rotvec(turn).as_matrix().T

    def settle(self, damping: float) -> None:
        """Velocities of where it is now."""
        self.velocity = (1 - damping) * (self.centre - self._start) / self._dt
        self.spin = (1 - damping) * self._turn / self._dt

    def system(self, push: Push) -> tuple[np.ndarray, np.ndarray]:
        """H (6, 6) and r (6,) of the correction H s = r that leads to where the law of motion holds under
        what pushes it."""
        b, square = self.body, self._dt**2
        arms = push.points - self.centre
        force, torque = push.forces.sum(axis=0), np.cross(arms, push.forces).sum(axis=0)
        missing = np.concatenate(
            [
                force - b.mass / square * (self.centre - self._aim),
                torque - self._inertia @ (self._turn - self._turn_aim) / square,
            ]
        )
        J = np.concatenate([push.ways, np.cross(arms[:, None], push.ways)], axis=2)
        H = np.einsum("k,kdi,kdj->ij", push.stiffness, J, J)
        H[:3, :3] += b.mass / square * np.eye(3)
        H[3:, 3:] += self._inertia / square
        return H, missing

    def correct(self, step: np.ndarray) -> float:
        """Shift [m] and turn [rad] by s (6,); returns how far that is [m]."""
        self._put(self.centre + step[:3], self._turn + step[3:])
        return float(np.linalg.norm(step[:3]) + self.reach * np.linalg.norm(step[3:]))

    @property
    def reach(self) -> float:
        """The radius of gyration [m]."""
        return float(np.sqrt(max(self.body.inertia) / self.body.mass))

    def moved(self, point: np.ndarray) -> np.ndarray:
        """(3,) [m] by how much the step has moved what of the body is at a point (3,) now."""
        return point - (self._start + self._from.T @ (self.axes @ (point - self.centre)))

    @property
    def numbers(self) -> np.ndarray:
        """(18,) centre, axes, velocity and spin, for a `State`."""
        return np.concatenate([self.centre, self.axes.ravel(), self.velocity, self.spin])

    @staticmethod
    def of(body: Rigid, numbers: np.ndarray) -> RigidMotion:
        centre, axes, velocity, spin = np.split(np.array(numbers, float), [3, 12, 15])
        return RigidMotion(body, centre, axes.reshape(3, 3), velocity, spin)

    @property
    def frame(self) -> np.ndarray:
        """(12,) as in a row of shapes."""
        return np.concatenate([self.axes.ravel(), self.centre])


@dataclass(frozen=True, eq=False)
class KnownPoses:
    """t -> the frames (r, 12) of all shapes of obstacles at a time [s], with rigid bodies where they were at
    the nearest of times (f,) [s]: numbers (f, k, 18)."""

    obstacles: Obstacles
    times: np.ndarray
    numbers: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        frames = self.obstacles.poses(t).copy()
        nearest = int(np.abs(self.times - min(t, 1e300)).argmin())
        for body, row in zip(self.obstacles.rigid, self.numbers[nearest], strict=True):
            frames[body.row] = RigidMotion.of(body, row).frame
        return frames
