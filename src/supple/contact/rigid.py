"""Rigid bodies with a mass among the obstacles: what pushes bodies is pushed by them.

A step of backward Euler takes the centre x and the rotation θ of the step to where

    m (x - x̂)/Δt² = F    and    I (θ - θ̂)/Δt² = τ,

with x̂ = x₀ + Δt v + Δt² f/m and the force F and torque τ of what touches it there. The free rotation θ̂
keeps the angular momentum L = I ω in world axes by the implicit midpoint rule, I(½ θ̂) θ̂ = Δt L, and the spin
at the end is I(θ)⁻¹ (L + Δt τ): without contact L is constant to rounding, and the energy stays between
|L|²/2 I_max and |L|²/2 I_min whatever the step. One correction is Δ = (M/Δt² + Σ Jᵀ k J)⁻¹ times what is
missing, with the stiffness k of each vertex that touches: the step that Gauss-Seidel makes of one more
unknown. A solve ends only where the law holds to its tolerance, so that momentum has changed by what bodies
did.
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


ROTATION_ITERATIONS, ROTATION_TOLERANCE = 50, 1e-15
"""Limits of the fixed-point iteration for the free rotation of a step."""

NO_PUSH = Push(np.empty((0, 3)), np.empty((0, 3)), np.empty((0, 3, 3)), np.empty(0))


class Hold(NamedTuple):
    """How a rigid body holds vertices (k,): their stiffnesses (k,) [N/m], the projections (k, 3, 3) on the
    directions in which it holds them, and how they follow a correction of it, (k, 3, 6)."""

    vertices: np.ndarray
    stiffness: np.ndarray
    projections: np.ndarray
    directions: np.ndarray


class Response(NamedTuple):
    """What a rigid body feels of soft bodies: their stiffness (6, 6), and how all vertices follow a
    correction of it, (n, 3, 6)."""

    stiffness: np.ndarray
    moves: np.ndarray


def rigid_directions(arms: np.ndarray) -> np.ndarray:
    """(k, 3, 6) displacements of points at arms (k, 3) [m] from the center, per shift and turn of a body."""
    J = np.zeros((len(arms), 3, 6))
    J[:, :, :3] = np.eye(3)
    J[:, :, 3:] = np.cross(np.eye(3), arms[:, None]).transpose(0, 2, 1)
    return J


class Touching(NamedTuple):
    """Vertices that touch a rigid body, (k, ...) each: their push, normals, slips [m] across the normals
    from where friction holds them, their limits μ λ [N], whether they stick, and their numbers."""

    push: Push
    normals: np.ndarray
    slips: np.ndarray
    limits: np.ndarray
    sticks: np.ndarray
    vertices: np.ndarray

    def hold(self, center: np.ndarray) -> Hold:
        """The directions in which a body at a center (3,) [m] moves them."""
        push = self.push
        projections = np.einsum("kdi,kdj->kij", push.ways, push.ways)
        return Hold(self.vertices, push.stiffness, projections, rigid_directions(push.points - center))

    def caught(self, center: np.ndarray, step: np.ndarray) -> np.ndarray:
        """(k,) which vertices that slide would stick after a correction s (6,) of the body: their slip would
        be turned round, or short enough for friction to hold them."""
        moved = step[:3] + np.cross(step[3:], self.push.points - center)
        slips = self.slips - _across(self.normals, moved)
        turned = np.einsum("ki,ki->k", slips, self.slips) < 0
        held = self.push.stiffness * np.linalg.norm(slips, axis=1) < self.limits
        return ~self.sticks & (self.limits > 0) & (turned | held)

    def stick_too(self, vertices: np.ndarray) -> Touching:
        """With more of them sticking, (k,)."""
        sticks = self.sticks | vertices
        return self._replace(sticks=sticks, push=self.push._replace(ways=_ways(self.normals, sticks)))


UNTOUCHED = Touching(
    NO_PUSH, np.empty((0, 3)), np.empty((0, 3)), np.empty(0), np.empty(0, bool), np.empty(0, int)
)

CONE_TOLERANCE = 1e-6
"""Part of μ λ: a friction force this close to its limit slides."""


def touching(
    points: np.ndarray,
    forces: np.ndarray,
    normals: np.ndarray,
    offsets: np.ndarray,
    friction: np.ndarray,
    stiffness: np.ndarray,
    vertices: np.ndarray,
) -> Touching:
    """Vertices with numbers (k,) at points (k, 3) [m], with contact forces (k, 3) [N] on them, offsets (k, 3)
    [m] from their anchors, coefficients of friction (k,) and stiffnesses (k,) [N/m]."""
    limits = friction * np.einsum("ki,ki->k", normals, forces)
    rub = np.linalg.norm(_across(normals, forces), axis=1)
    sticks = (limits > 0) & (rub < (1 - CONE_TOLERANCE) * limits)
    push = Push(points, -forces, _ways(normals, sticks), stiffness)
    return Touching(push, normals, _across(normals, offsets), limits, sticks, vertices)


def _across(normals: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The parts of vectors (k, 3) across normals (k, 3)."""
    return vectors - np.einsum("ki,ki->k", normals, vectors)[:, None] * normals


def _ways(normals: np.ndarray, sticks: np.ndarray) -> np.ndarray:
    """(k, 3, 3) directions in which vertices resist: all where they stick, the normal where they slide."""
    along = np.zeros((len(normals), 3, 3))
    along[:, 0] = normals
    return np.where(sticks[:, None, None], np.eye(3), along)


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
        if not np.isfinite(self.numbers).all():
            raise ValueError(
                "position, velocity or spin of a rigid body is infinite or NaN: go back to an earlier state; "
                "smaller steps or forces may help"
            )
        self._dt, self._start, self._from = dt, self.centre.copy(), self.axes.copy()
        self._inertia = self.axes.T @ np.diag(b.inertia) @ self.axes
        self._momentum = self._inertia @ self.spin
        self._aim = self.centre + dt * self.velocity + dt * dt * b.force / b.mass
        self._turn_aim = self._free_rotation(dt)
        self._put(self._aim.copy(), self._turn_aim.copy())

    def _free_rotation(self, dt: float) -> np.ndarray:
        """θ̂ (3,) [rad] of a step without torque: I(½ θ̂) θ̂ = Δt L, by fixed-point iteration."""
        turn = dt * self.spin
        for _ in range(ROTATION_ITERATIONS):
            half = Rotation.from_rotvec(0.5 * turn).as_matrix()
            change = dt * half @ np.linalg.solve(self._inertia, half.T @ self._momentum) - turn
            turn = turn + change
            if np.linalg.norm(change) <= ROTATION_TOLERANCE * np.linalg.norm(turn):
                break
        return turn

    def _put(self, centre: np.ndarray, turn: np.ndarray) -> None:
        self.centre, self._turn = centre, turn
        self.axes = self._from @ Rotation.from_rotvec(turn).as_matrix().T

    def settle(self, damping: float) -> None:
        """Velocities of where it is now."""
        self.velocity = (1 - damping) * (self.centre - self._start) / self._dt
        turned = Rotation.from_rotvec(self._turn).as_matrix()
        momentum = self._momentum + self._inertia @ (self._turn - self._turn_aim) / self._dt
        self.spin = (1 - damping) * turned @ np.linalg.solve(self._inertia, turned.T @ momentum)

    def system(self, push: Push, response: Response | None = None) -> tuple[np.ndarray, np.ndarray]:
        """H (6, 6) and r (6,) of the correction H s = r that leads to where the law of motion holds under
        what pushes it; response: of soft bodies, beside the stiffnesses of what pushes."""
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
        return (H if response is None else H + response.stiffness), missing

    def imbalance(self, push: Push, step: np.ndarray, response: Response | None = None) -> float:
        """What the law of motion lacks before a correction s (6,), |H s|, torques over the radius of
        gyration, relative to the magnitudes of what pushes the body and its weight."""
        H, _ = self.system(push, response)
        lacking = (H @ step) / np.repeat([1.0, self.reach], 3)
        scale = np.linalg.norm(push.forces, axis=1).sum() + np.linalg.norm(self.body.force)
        return float(np.linalg.norm(lacking) / scale) if scale > 0 else 0.0

    def correct(self, step: np.ndarray) -> float:
        """Shift [m] and turn [rad] by s (6,); returns how far that is [m]."""
        self._put(self.centre + step[:3], self._turn + step[3:])
        return float(np.linalg.norm(step[:3]) + self.reach * np.linalg.norm(step[3:]))

    @property
    def weight(self) -> Push:
        """A push at the center that bears the weight: a guess at what holds a body that is touched, which
        then starts a step where it coasts to, and not below."""
        return Push(self.centre[None], -self.body.force[None], np.zeros((1, 3, 3)), np.zeros(1))

    @property
    def reach(self) -> float:
        """The radius of gyration [m]."""
        return float(np.sqrt(max(self.body.inertia) / self.body.mass))

    def moved(self, point: np.ndarray) -> np.ndarray:
        """(3,) [m] by how much the step has moved what of the body is at a point (3,) now."""
        return point - (self._start + self._from.T @ (self.axes @ (point - self.centre)))

    def shift_of(self, point: np.ndarray) -> np.ndarray:
        """(3,) [m] by how much the step has moved what of the body was at a point (3,) when it began."""
        return self.centre + (point - self.start) @ self._from.T @ self.axes - point

    @property
    def start(self) -> np.ndarray:
        """The centre (3,) [m] where the step began."""
        return self._start

    @property
    def began(self) -> np.ndarray:
        """(12,) as in a row of shapes, where the step began."""
        return np.concatenate([self._from.ravel(), self._start])

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
