"""Rigid-body dynamics of obstacles with mass, in two-way contact with soft bodies.

A backward Euler step solves for the center x and the rotation θ of the step,

    m (x - x̂)/Δt² = F    and    I (θ - θ̂)/Δt² = τ,

with x̂ = x₀ + Δt v + Δt² f/m and the contact force F and torque τ at the new state. The free rotation θ̂
conserves the angular momentum L = I ω in world axes by the implicit midpoint rule, I(½ θ̂) θ̂ = Δt L. The
final spin is I(θ)⁻¹ (L + Δt τ). Without contact, L is constant to rounding error, and the energy stays
between |L|²/2 I_max and |L|²/2 I_min for any time step. One correction is Δ = (M/Δt² + Σ Jᵀ k J)⁻¹ times the
residual, with the stiffness k of each vertex in contact: a Gauss-Seidel update of one more unknown. A solve
converges only if the equations of motion hold within their tolerance, so the change of momentum equals the
impulse of the soft bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

if TYPE_CHECKING:
    from supple.collision.obstacles.obstacles import Obstacles


class RigidBody(NamedTuple):
    """Parameters and initial state of a rigid body.

    Attributes:
        row: Row of its shape.
        mass: Mass [kg].
        inertia: (3,) principal moments in the body frame [kg m²].
        force: (3,) weight [N].
        velocity: (3,) initial velocity [m/s].
        spin: (3,) initial angular velocity [rad/s].
    """

    row: int
    mass: float
    inertia: np.ndarray
    force: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray


class ContactForces(NamedTuple):
    """Contact forces of vertices on a rigid body.

    Attributes:
        points: (k, 3) contact points [m].
        forces: (k, 3) forces on the body [N].
        directions: (k, d, 3) directions of resistance.
        stiffness: (k,) stiffnesses [N/m].
    """

    points: np.ndarray
    forces: np.ndarray
    directions: np.ndarray
    stiffness: np.ndarray


def concatenate_forces(*contact_forces: ContactForces) -> ContactForces:
    """Concatenate contact forces."""
    return ContactForces(*map(np.concatenate, zip(*contact_forces, strict=True)))


ROTATION_ITERATIONS, ROTATION_TOLERANCE = 50, 1e-15
"""Limits of the fixed-point iteration for the free rotation of a step."""

NO_FORCES = ContactForces(np.empty((0, 3)), np.empty((0, 3)), np.empty((0, 3, 3)), np.empty(0))
"""Empty contact forces."""


class Coupling(NamedTuple):
    """Coupling of vertices to a rigid body.

    Attributes:
        vertices: (k,) vertices in contact.
        stiffness: (k,) stiffnesses [N/m].
        projections: (k, 3, 3) projections onto the constrained directions.
        directions: (k, 3, 6) displacements per correction of the body.
    """

    vertices: np.ndarray
    stiffness: np.ndarray
    projections: np.ndarray
    directions: np.ndarray


class Response(NamedTuple):
    """Condensed response of soft bodies to a rigid body.

    Attributes:
        stiffness: (6, 6) stiffness on the rigid body.
        moves: (n, 3, 6) displacements of all vertices per correction of the body.
    """

    stiffness: np.ndarray
    moves: np.ndarray


def rigid_directions(arms: np.ndarray) -> np.ndarray:
    """(k, 3, 6) displacements at arms (k, 3) [m] from the center, per translation and rotation of a body."""
    J = np.zeros((len(arms), 3, 6))
    J[:, :, :3] = np.eye(3)
    J[:, :, 3:] = np.cross(np.eye(3), arms[:, None]).transpose(0, 2, 1)
    return J


class BodyContacts(NamedTuple):
    """Vertices in contact with a rigid body.

    Attributes:
        contact_forces: Contact forces.
        normals: (k, 3) contact normals.
        slips: (k, 3) tangential offsets from the stick points [m].
        limits: (k,) friction limits μ λ [N].
        sticks: (k,) True for sticking contacts.
        vertices: (k,) vertices.
    """

    contact_forces: ContactForces
    normals: np.ndarray
    slips: np.ndarray
    limits: np.ndarray
    sticks: np.ndarray
    vertices: np.ndarray

    def coupling(self, center: np.ndarray) -> Coupling:
        """Return the coupling of the contact vertices to the motions of the body about `center` (3,) [m]."""
        contact_forces = self.contact_forces
        projections = np.einsum("kdi,kdj->kij", contact_forces.directions, contact_forces.directions)
        return Coupling(
            self.vertices,
            contact_forces.stiffness,
            projections,
            rigid_directions(contact_forces.points - center),
        )

    def newly_sticking(self, center: np.ndarray, step: np.ndarray) -> np.ndarray:
        """(k,) True for sliding vertices that would stick after a correction s (6,) of the body.

        A vertex sticks if its slip reverses direction, or becomes short enough for static friction.
        """
        displacement = step[:3] + np.cross(step[3:], self.contact_forces.points - center)
        slips = self.slips - _across(self.normals, displacement)
        is_reversed = np.einsum("ki,ki->k", slips, self.slips) < 0
        is_static = self.contact_forces.stiffness * np.linalg.norm(slips, axis=1) < self.limits
        return ~self.sticks & (self.limits > 0) & (is_reversed | is_static)

    def add_sticking(self, vertices: np.ndarray) -> BodyContacts:
        """Return a copy with further sticking vertices (k,)."""
        sticks = self.sticks | vertices
        return self._replace(
            sticks=sticks,
            contact_forces=self.contact_forces._replace(
                directions=_resisting_directions(self.normals, sticks)
            ),
        )


NO_CONTACTS = BodyContacts(
    NO_FORCES, np.empty((0, 3)), np.empty((0, 3)), np.empty(0), np.empty(0, bool), np.empty(0, int)
)
"""Empty set of contacts."""

CONE_TOLERANCE = 1e-6
"""Distance to the friction limit, relative to μ λ, within which a contact slides."""


def classify_contacts(
    points: np.ndarray,
    forces: np.ndarray,
    normals: np.ndarray,
    offsets: np.ndarray,
    friction: np.ndarray,
    stiffness: np.ndarray,
    vertices: np.ndarray,
) -> BodyContacts:
    """Classify contacts of vertices with a rigid body as sticking or sliding.

    Args:
        points: (k, 3) contact points [m].
        forces: (k, 3) contact forces on the vertices [N].
        normals: (k, 3) contact normals.
        offsets: (k, 3) offsets from the anchors [m].
        friction: (k,) friction coefficients.
        stiffness: (k,) stiffnesses [N/m].
        vertices: (k,) vertices.
    """
    limits = friction * np.einsum("ki,ki->k", normals, forces)
    tangential = np.linalg.norm(_across(normals, forces), axis=1)
    sticks = (limits > 0) & (tangential < (1 - CONE_TOLERANCE) * limits)
    contact_forces = ContactForces(points, -forces, _resisting_directions(normals, sticks), stiffness)
    return BodyContacts(contact_forces, normals, _across(normals, offsets), limits, sticks, vertices)


def _across(normals: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Components of vectors (k, 3) perpendicular to normals (k, 3)."""
    return vectors - np.einsum("ki,ki->k", normals, vectors)[:, None] * normals


def _resisting_directions(normals: np.ndarray, sticks: np.ndarray) -> np.ndarray:
    """(k, 3, 3) directions of resistance: all for sticking contacts, the normal for sliding contacts."""
    along = np.zeros((len(normals), 3, 3))
    along[:, 0] = normals
    return np.where(sticks[:, None, None], np.eye(3), along)


@dataclass
class RigidMotion:
    """State of a rigid body during a time step.

    Attributes:
        body: Parameters.
        center: (3,) center of mass [m].
        axes: (3, 3) axes, as in a row of `Shapes`.
        velocity: (3,) velocity at the end of the step [m/s].
        spin: (3,) angular velocity at the end of the step [rad/s].
    """

    body: RigidBody
    center: np.ndarray
    axes: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray

    def begin(self, dt: float) -> None:
        """Start a step of dt [s] from the inertial prediction."""
        b = self.body
        if not np.isfinite(self.numbers).all():
            raise ValueError(
                "position, velocity or spin of a rigid body is infinite or NaN; return to an earlier "
                "state, and use smaller steps or forces"
            )
        self._dt, self._start, self._start_axes = dt, self.center.copy(), self.axes.copy()
        self._inertia = self.axes.T @ np.diag(b.inertia) @ self.axes
        self._momentum = self._inertia @ self.spin
        self._predicted_center = self.center + dt * self.velocity + dt * dt * b.force / b.mass
        self._predicted_rotation = self._free_rotation(dt)
        self._set_pose(self._predicted_center.copy(), self._predicted_rotation.copy())

    def _free_rotation(self, dt: float) -> np.ndarray:
        """θ̂ (3,) of a torque-free step [rad]: I(½ θ̂) θ̂ = Δt L, by fixed-point iteration."""
        rotation = dt * self.spin
        for _ in range(ROTATION_ITERATIONS):
            half = Rotation.from_rotvec(0.5 * rotation).as_matrix()
            change = dt * half @ np.linalg.solve(self._inertia, half.T @ self._momentum) - rotation
            rotation = rotation + change
            if np.linalg.norm(change) <= ROTATION_TOLERANCE * np.linalg.norm(rotation):
                break
        return rotation

    def _set_pose(self, center: np.ndarray, rotation: np.ndarray) -> None:
        self.center, self._rotation = center, rotation
        self.axes = self._start_axes @ Rotation.from_rotvec(rotation).as_matrix().T

    def update_velocity(self, damping: float) -> None:
        """Update velocity and spin from the current pose, reduced by the fraction `damping`."""
        self.velocity = (1 - damping) * (self.center - self._start) / self._dt
        rotation = Rotation.from_rotvec(self._rotation).as_matrix()
        momentum = self._momentum + self._inertia @ (self._rotation - self._predicted_rotation) / self._dt
        self.spin = (1 - damping) * rotation @ np.linalg.solve(self._inertia, rotation.T @ momentum)

    def system(
        self, contact_forces: ContactForces, response: Response | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Newton system of the equations of motion.

        Args:
            contact_forces: Contact forces.
            response: Condensed response of soft bodies, added to the stiffnesses of the contact forces.

        Returns:
            H (6, 6) and residual r (6,) of the correction H s = r.
        """
        b, square = self.body, self._dt**2
        arms = contact_forces.points - self.center
        force, torque = contact_forces.forces.sum(axis=0), np.cross(arms, contact_forces.forces).sum(axis=0)
        residual = np.concatenate(
            [
                force - b.mass / square * (self.center - self._predicted_center),
                torque - self._inertia @ (self._rotation - self._predicted_rotation) / square,
            ]
        )
        J = np.concatenate(
            [contact_forces.directions, np.cross(arms[:, None], contact_forces.directions)], axis=2
        )
        H = np.einsum("k,kdi,kdj->ij", contact_forces.stiffness, J, J)
        H[:3, :3] += b.mass / square * np.eye(3)
        H[3:, 3:] += self._inertia / square
        return (H if response is None else H + response.stiffness), residual

    def relative_residual(
        self, contact_forces: ContactForces, step: np.ndarray, response: Response | None = None
    ) -> float:
        """Relative residual of the equations of motion before a correction s (6,).

        |H s|, torques divided by the radius of gyration, relative to the sum of the magnitudes of all contact
        forces and the weight.
        """
        H, _ = self.system(contact_forces, response)
        imbalance = (H @ step) / np.repeat([1.0, self.reach], 3)
        scale = np.linalg.norm(contact_forces.forces, axis=1).sum() + np.linalg.norm(self.body.force)
        return float(np.linalg.norm(imbalance) / scale) if scale > 0 else 0.0

    def correct(self, step: np.ndarray) -> float:
        """Translate and rotate by s (6,) [m, rad]; returns the length of the motion [m]."""
        self._set_pose(self.center + step[:3], self._rotation + step[3:])
        return float(np.linalg.norm(step[:3]) + self.reach * np.linalg.norm(step[3:]))

    @property
    def weight(self) -> ContactForces:
        """Contact force at the center that balances the weight.

        This is the initial guess for a body in contact, which then starts a step at the inertial prediction
        without gravity.
        """
        return ContactForces(self.center[None], -self.body.force[None], np.zeros((1, 3, 3)), np.zeros(1))

    @property
    def reach(self) -> float:
        """Radius of gyration [m]."""
        return float(np.sqrt(max(self.body.inertia) / self.body.mass))

    def displacement_to(self, point: np.ndarray) -> np.ndarray:
        """(3,) displacement during the step of the material point now at a point (3,) [m]."""
        return point - (self._start + self._start_axes.T @ (self.axes @ (point - self.center)))

    def displacement_from(self, point: np.ndarray) -> np.ndarray:
        """(3,) displacement during the step of the material point initially at a point (3,) [m]."""
        return self.center + (point - self.start) @ self._start_axes.T @ self.axes - point

    @property
    def start(self) -> np.ndarray:
        """(3,) center at the start of the step [m]."""
        return self._start

    @property
    def start_frame(self) -> np.ndarray:
        """(12,) frame at the start of the step, as in a row of shapes."""
        return np.concatenate([self._start_axes.ravel(), self._start])

    @property
    def numbers(self) -> np.ndarray:
        """(18,) center, axes, velocity and spin, for a `State`."""
        return np.concatenate([self.center, self.axes.ravel(), self.velocity, self.spin])

    @staticmethod
    def of(body: RigidBody, numbers: np.ndarray) -> RigidMotion:
        """Restore the motion of a body from its `numbers` (18,)."""
        center, axes, velocity, spin = np.split(np.array(numbers, float), [3, 12, 15])
        return RigidMotion(body, center, axes.reshape(3, 3), velocity, spin)

    @property
    def frame(self) -> np.ndarray:
        """(12,) frame, as in a row of shapes."""
        return np.concatenate([self.axes.ravel(), self.center])


@dataclass(frozen=True, eq=False)
class RecordedPoses:
    """Frames of all shapes over time, with rigid bodies from saved states at the nearest time.

    Attributes:
        obstacles: Obstacles of the model.
        times: (f,) times of the states [s].
        numbers: (f, k, 18) states of the rigid bodies.
    """

    obstacles: Obstacles
    times: np.ndarray
    numbers: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        """Frames (r, 12) of all shapes at a time t [s]."""
        frames = self.obstacles.poses(t).copy()
        nearest = int(np.abs(self.times - min(t, 1e300)).argmin())
        for body, row in zip(self.obstacles.rigid, self.numbers[nearest], strict=True):
            frames[body.row] = RigidMotion.of(body, row).frame
        return frames


MAX_RESIDUAL_RISES = 3
"""Number of corrections per step that may increase the relative residual of rigid bodies above twice its
minimum.

Beyond it, the stiffness of the touching vertices, which is larger, replaces the condensed stiffness.
"""


class CondensedStiffness:
    """Responses of soft bodies in one step, recomputed only if the touching or sticking vertices change."""

    def __init__(self) -> None:
        self._key: tuple | None = None
        self._responses: Sequence[Response | None] = []
        self._least, self._rises = float("inf"), 0

    def record(self, relative_residual: float) -> None:
        """Record the relative residual of the rigid bodies before a correction."""
        self._rises += relative_residual > 2.0 * self._least
        self._least = min(self._least, relative_residual)

    def disable(self) -> None:
        """Disable the condensed stiffness for the rest of the step."""
        self._rises = MAX_RESIDUAL_RISES + 1

    def responses(
        self,
        motions: Sequence[RigidMotion],
        touching_vertices: Sequence[BodyContacts],
        condense: Callable[[Sequence[Coupling]], list[Response] | None] | None,
    ) -> Sequence[Response | None]:
        """Compute the response of soft bodies to each rigid body.

        Args:
            motions: The rigid bodies.
            touching_vertices: Vertices in contact with each of them.
            condense: Function that computes responses; None for no condensation.

        Returns:
            One response per rigid body; all None if there is nothing to condense.
        """
        none = [None] * len(motions)
        if (
            condense is None
            or self._rises > MAX_RESIDUAL_RISES
            or not any(len(t.vertices) for t in touching_vertices)
        ):
            return none
        key = tuple((each.vertices.tobytes(), each.sticks.tobytes()) for each in touching_vertices)
        if key != self._key:
            holds = [
                each.coupling(motion.center) for each, motion in zip(touching_vertices, motions, strict=True)
            ]
            self._key, self._responses = key, condense(holds) or none
        return self._responses
