"""Obstacle contact: contact planes of the vertices, updated during a solve.

At the beginning of a step, and every few sweeps, each vertex finds its nearest shapes. The contact planes
pass through the closest points on them [PBNG section 7.2]; a vertex inside an obstacle is projected onto its
surface. Models without obstacles pass () to the kernels, which removes the contact code at compile time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from supple.collision import Friction, Planes
from supple.collision.obstacles.obstacles import Obstacles, between
from supple.collision.obstacles.rigid_body import (
    NO_CONTACTS,
    BodyContacts,
    CondensedStiffness,
    ContactForces,
    Coupling,
    Response,
    RigidMotion,
    classify_contacts,
    concatenate_forces,
)
from supple.collision.obstacles.rigid_contacts import corrections
from supple.collision.obstacles.signed_distance import POSE, STEP, Shapes, distances_to
from supple.contact.state.face_penetration import FacePenetrationSearch
from supple.contact.state.obstacle_kernels import Clamp, ClearShapes, Detect, RecordStart, Sliding
from supple.contact.state.obstacle_report import ContactSums
from supple.contact.state.paths import VertexPaths, find_waypoints
from supple.kernels import RECORD
from supple.model.model import Model, unpinned_mask
from supple.problem.device import Device
from supple.problem.states import States
from supple.problem.vertex_kernels import Displace

STICK_ROUNDINGS = 8
"""Distance to the stick point, in roundings of an edge, below which a vertex is moved there.

Without it, vertices creep by rounding.
"""

MIN_CORRECTION = 1e-7
"""Correction below which a rigid body does not move, as a fraction of the mean edge."""

CONTACT_GAP = 1e-4
"""Gap at which a vertex touches a rigid body at the beginning of a step, as a fraction of the mean edge."""

MAX_STICKING_MOTION = 1e-6, 16
"""Relative motion per step below which a vertex does not slide: fraction of an edge, and roundings of it."""


class Contacts:
    """Obstacle contact of a problem.

    Attributes:
        obstacles: Obstacles of the model, or None.
        planes: Contact planes, () without obstacles.
        shapes: Shapes of the obstacles at their present poses.
        paths: Paths of the vertices between detections.
        rigid: Motions of the dynamic rigid bodies.
        moves: Number of corrections of obstacle poses within steps.
        condensed: Condensed stiffness of soft bodies.
        rigid_residual: Relative residual of the rigid bodies, None if unknown; see `rigid_relative_residual`.
    """

    def __init__(self, model: Model, dtype: np.dtype, device: Device, states: States) -> None:
        self.model, self.dtype, self.device, self.states = model, dtype, device, states
        self.obstacles = model.obstacles
        self.planes: Planes | tuple[()] = ()
        self.rigid: list[RigidMotion] = []
        self.moves = 0
        self.condensed = CondensedStiffness()
        self.rigid_residual: float | None = 0.0
        if self.obstacles is None:
            return
        self.shapes = self.obstacles.shapes(0.0)
        self.rigid = rigid_motions(self.obstacles)
        self.rest = np.zeros((model.vertices + 1, RECORD))
        self.rest[:-1, :3] = model.rest
        self._free = np.append(unpinned_mask(model), 0).astype(dtype)
        eps, edge = float(np.finfo(dtype).eps), model.mean_edge
        self._stick_distance = STICK_ROUNDINGS * eps * edge
        self._sticking_motion = max(MAX_STICKING_MOTION[0], MAX_STICKING_MOTION[1] * eps) * edge
        self._back = self._time = 0.0
        self.times, self.moving = (0.0, 0.0), np.zeros(len(self.shapes.rows), bool)
        """Start and end of the present motion of obstacles [s].

        `moving` (r,) is True for the shapes whose prescribed frames change in it.
        """
        self._waypoints: list[tuple[np.ndarray, float]] = []
        self._keeps_start = self.has_friction or any(f.resolves_faces for _, f in model.dynamic_terms)
        self.before = self.shapes.rows[:, POSE : POSE + 12].copy()
        self.paths = VertexPaths(self, dtype)
        self.resize()

    def __bool__(self) -> bool:
        """True if there is an obstacle."""
        return self.obstacles is not None

    def refuse(self, method: str, *others: str) -> None:
        """Raise an error for methods without obstacle support.

        Args:
            method: Name of the method.
            others: Names of methods that support obstacles.

        Raises:
            ValueError: There are obstacles.
        """
        if self.obstacles is not None:
            raise ValueError(
                f"{method} does not support obstacles, and the scene has {self.obstacles.names[0]!r}; use "
                f"{' or '.join(others)}"
            )

    def resize(self) -> None:
        """Allocate the contact planes for the present batch size."""
        if self.obstacles is None:
            return
        shape = self.obstacles.planes, len(self.states.u), RECORD

        def records() -> np.ndarray:
            return np.zeros(shape, self.dtype)

        has_friction = self.obstacles.has_friction
        self.start = np.zeros(shape[1:] if self._keeps_start else (1, RECORD), self.dtype)
        self.which = np.full((len(self.states.u), 3), -1, np.int32)
        friction = Friction(records(), records()) if has_friction else ()
        self.planes = Planes(records(), records(), records(), records(), friction)
        self.sums: ContactSums | None = None
        self.face_search: FacePenetrationSearch | None = None
        self.paths.resize()

    def clamp(self, *copies_of_u: np.ndarray) -> tuple[Clamp, ...]:
        """Operations for `clamp_all` that project u out of obstacles.

        Args:
            copies_of_u: Arrays that receive a copy of u.
        """
        if not self.planes:
            return ()
        return (Clamp(self.states.u, self._free, self.planes, self._stick_distance, copies_of_u),)

    @property
    def _depends_on_sliding(self) -> bool:
        return (
            bool(self._back)
            and self.has_friction
            and self.obstacles is not None
            and self.obstacles.has_kinetic_friction
        )

    @property
    def has_friction(self) -> bool:
        """True if an obstacle has friction."""
        return self.obstacles is not None and self.obstacles.has_friction

    def get_planes(self, member: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the contact planes of a batch member.

        Args:
            member: Batch member.

        Returns:
            Normals, closest points [m] and last evaluated reactions [N], each (planes, n, 3), and the shapes
            (planes, n), -1 for none.
        """
        n = self.model.vertices + 1
        own = slice(member * n, (member + 1) * n - 1)
        arrays = [getattr(self.planes, name) for name in ("normal", "closest_point", "reaction")]
        for array in (*arrays, self.which):
            self.device.download(array)
        normals, feet, forces = (array[:, own, :3].astype(float) for array in arrays)
        return normals, feet, forces, self.which[own, : len(normals)].T

    def coefficients(self, member: int) -> np.ndarray:
        """Friction coefficients μ (planes, n) of a batch member, 0 without contact plane."""
        assert isinstance(self.planes, Planes)
        n, friction = self.model.vertices + 1, self.planes.friction
        if not friction:
            return np.zeros((len(self.planes.normal), n - 1))
        self.device.download(friction.coefficient)
        return friction.coefficient[:, member * n : (member + 1) * n - 1, 0].astype(float)

    def begin_step(self, time: float, dt: float = np.inf, damping: float = 0.0) -> None:
        """Record start positions and move obstacles to their poses at step end.

        Args:
            time: End of the step [s].
            dt: Step size [s]; inf for quasistatics.
            damping: Fraction of the velocities lost in the previous step.
        """
        if self.obstacles is None:
            return
        # a restarted motion lacks the forces of the last step, and must give identical results
        self.device.apply_to_vectors(ClearShapes(self.which))
        if self._keeps_start:
            self.device.apply_to_vectors(RecordStart(self.states.u, self.start))
        self._damping = damping
        now = self.obstacles.poses(time).copy()
        in_contact = [_has_contact(self, motion) for motion in self.rigid] if np.isfinite(dt) else []
        for motion in self.rigid:
            if np.isfinite(dt):
                motion.begin(dt)
                motion.update_velocity(damping)
            now[motion.body.row] = motion.frame
        self.before = self.shapes.rows[:, POSE : POSE + 12].copy()
        self.paths.begin()
        self.obstacles.advance(self.shapes, now, time, dt)
        if np.isfinite(dt):
            weights = [[m.weight] if stays else [] for m, stays in zip(self.rigid, in_contact, strict=True)]
            self._correct([NO_CONTACTS] * len(self.rigid), weights)
            self.condensed = CondensedStiffness()
            self.rigid_residual = None if self.rigid else 0.0
        if self.obstacles.values_at is not None:
            self.device.upload(self.shapes.values)
        self._back = 1 / (1 - damping) if np.isfinite(dt) else 0.0
        end = time if np.isfinite(time) else max(self._time, self.model.duration)
        self.times, self.moving = (self._time, end), (self.before != now).any(axis=1)
        self.moving[[motion.body.row for motion in self.rigid]] = False
        self._waypoints, self._time = find_waypoints(self, self._time, end), end

    def arrive(self) -> None:
        """Move obstacles along their waypoints to the final poses, with contact detection at each.

        In a time step, vertices move along by their share of the motion.
        """
        if self.obstacles is None:
            return
        end = self.shapes.rows[:, POSE : POSE + 12].copy()
        move = self.paths.split_motion(len(self._waypoints), self._free) if self._back else ()
        for number, (frames, time) in enumerate((*self._waypoints, (end, self._time))):
            if number and move:
                self.device.apply_to_vectors(*move)
            self.shapes.rows[:, POSE : POSE + 12] = frames
            self.device.upload(self.shapes.rows)
            if self._waypoints and self.obstacles.values_at is not None:
                self.shapes.values[:] = self.obstacles.values_at(time)
                self.device.upload(self.shapes.values)
            self._detect(self._free)
        self._waypoints = []

    def set_time(self, time: float) -> None:
        """Set obstacles to their poses at a time [s], and rigid bodies to their initial poses."""
        if self.obstacles is None:
            return
        self.rigid, target = rigid_motions(self.obstacles), self.obstacles.shapes(time)
        self.shapes.rows[:], self._time = target.rows, time
        self.device.upload(self.shapes.rows)
        if self.obstacles.values_at is not None:
            self.shapes.values[:] = target.values
            self.device.upload(self.shapes.values)

    def begin_equilibria(self, times: Sequence[float]) -> None:
        """Set up equilibria.

        Args:
            times: Time [s] of each batch member; must be equal.

        Raises:
            ValueError: The times differ.
        """
        if self.obstacles is None:
            return
        if len(set(times)) > 1:
            raise ValueError(
                "obstacles have one position per batch, and the variations are at different times; solve "
                "variations of different times one after the other"
            )
        self.shapes.rows[:] = self.obstacles.shapes(0.0).rows
        self._time = 0.0
        self.paths.clear_passages()
        self.begin_step(times[0])
        self.arrive()

    def correct_rigid_bodies(
        self,
        stiffness: np.ndarray,
        others: Sequence[list[ContactForces]],
        condense: Callable[[Sequence[Coupling]], list[Response] | None] | None = None,
    ) -> bool:
        """Correct the positions of rigid bodies by the last evaluated forces.

        With the condensed stiffness of soft bodies, these move along.

        Args:
            stiffness: (n,) stiffness of every vertex [N/m].
            others: Further contact forces on each rigid body.
            condense: Function that computes the responses of soft bodies, or None.

        Returns:
            False if all corrections were negligible.
        """
        touching_vertices = [_find_touching(self, motion, stiffness) for motion in self.rigid]
        farthest = self._correct(touching_vertices, others, condense)
        self.device.upload(self.shapes.rows)
        if farthest <= MIN_CORRECTION * self.model.mean_edge:
            return False
        self.moves += 1
        self._detect(self._free)
        return True

    def _correct(
        self,
        touching_vertices: list[BodyContacts],
        others: Sequence[list[ContactForces]],
        condense: Callable[[Sequence[Coupling]], list[Response] | None] | None = None,
    ) -> float:
        """Move rigid bodies to equilibrium under their contact forces.

        Overlaps with each other and with obstacles are removed. Sliding vertices resist along the normal
        only. If a correction would reverse the slip of a vertex, or bring its friction force inside the cone,
        the vertex sticks and the correction is computed again.

        Args:
            touching_vertices: Vertices in contact with each rigid body.
            others: Further contact forces on each rigid body.
            condense: Function that computes the responses of soft bodies, or None.

        Returns:
            The largest displacement [m].
        """
        if not self.rigid:
            return 0.0
        while True:
            forces = [
                concatenate_forces(each.contact_forces, *extra)
                for each, extra in zip(touching_vertices, others, strict=True)
            ]
            responses = self.condensed.responses(self.rigid, touching_vertices, condense)
            if responses[0] is not None:
                soft = [
                    each.contact_forces._replace(stiffness=0 * each.contact_forces.stiffness)
                    for each in touching_vertices
                ]
                forces = [
                    concatenate_forces(force, *extra) for force, extra in zip(soft, others, strict=True)
                ]
            steps = corrections(self.rigid, forces, self.shapes, responses)
            caught = [
                each.newly_sticking(m.center, s)
                for each, m, s in zip(touching_vertices, self.rigid, steps, strict=True)
            ]
            if not any(stops.any() for stops in caught):
                break
            touching_vertices = [
                each.add_sticking(stops) for each, stops in zip(touching_vertices, caught, strict=True)
            ]
        farthest = worst = 0.0
        for motion, force, step, response in zip(self.rigid, forces, steps, responses, strict=True):
            worst = max(worst, motion.relative_residual(force, step, response))
            farthest = max(farthest, motion.correct(step))
            motion.update_velocity(self._damping)
            self.shapes.rows[motion.body.row, POSE : POSE + 12] = motion.frame
        self.rigid_residual = worst
        self.condensed.record(worst)
        self.shapes.rows[:, STEP : STEP + 12] = between(self.before, self.shapes.rows[:, POSE : POSE + 12])
        moves = [r.moves @ s for r, s in zip(responses, steps, strict=True) if r is not None]
        if moves:
            _displace(self, np.sum(moves, axis=0))
        return farthest

    @property
    def rigid_states(self) -> np.ndarray:
        """(k, 18) positions and velocities of the rigid bodies; the setter restores them."""
        return np.array([motion.numbers for motion in self.rigid]).reshape(-1, 18)

    @rigid_states.setter
    def rigid_states(self, numbers: np.ndarray) -> None:
        self.rigid = [RigidMotion.of(m.body, row) for m, row in zip(self.rigid, numbers, strict=True)]
        for motion in self.rigid:
            self.shapes.rows[motion.body.row, POSE : POSE + 12] = motion.frame

    def find(self, time: float) -> None:
        """Find the contact planes at the present u without a projection.

        The stick points are at the present positions.

        Args:
            time: Time of the obstacle poses [s].
        """
        assert self.obstacles is not None
        target = self.obstacles.shapes(time)
        self.shapes.rows[:], self.shapes.values[:] = target.rows, target.values
        self.device.upload(self.shapes.rows)
        self.device.upload(self.shapes.values)
        self._back = 0.0
        if self.obstacles.has_friction:
            self.device.apply_to_vectors(RecordStart(self.states.u, self.start))
        self.paths.begin()
        self._detect(np.zeros_like(self._free))

    def detect(self) -> None:
        """Find the contact planes at the present u, and project vertices out of obstacles."""
        if self.obstacles is not None:
            self._detect(self._free)

    def _detect(self, free: np.ndarray) -> None:
        sliding = (
            Sliding(self.states.anchor, self._back, self._sticking_motion) if self._depends_on_sliding else ()
        )
        arguments = self.shapes, self.planes, self.which, self._stick_distance, sliding
        detection = Detect(self.states.u, self.rest, free, self.start, *arguments)
        self.paths.detect(lambda paths: self.device.apply_to_vectors(detection._replace(paths=paths)))


def rigid_motions(obstacles: Obstacles) -> list[RigidMotion]:
    """Rigid bodies at their initial poses and velocities."""
    return [
        RigidMotion(
            body,
            obstacles.rows[body.row, POSE + 9 : POSE + 12].copy(),
            obstacles.rows[body.row, POSE : POSE + 9].reshape(3, 3).copy(),
            body.velocity.copy(),
            body.spin.copy(),
        )
        for body in obstacles.rigid
    ]


def rigid_relative_residual(contacts: Contacts) -> float:
    """Relative residual of the rigid bodies in their equation of motion, for the last evaluated forces.

    This is |m (x - x̂)/Δt² - F|, with torques divided by the radius of gyration, relative to the sum of all
    force magnitudes and the weight; the maximum over the bodies. It is infinite if a vertex is within an edge
    of a body and no forces have been evaluated yet.
    """
    if contacts.rigid_residual is None:
        normals, feet, _, which = contacts.get_planes(0)
        u = contacts.states.vectors(contacts.states.u)[0].astype(float)
        gaps = np.einsum("pvi,pvi->pv", normals, u - feet)
        near = np.isin(which, [m.body.row for m in contacts.rigid]) & (gaps < contacts.model.mean_edge)
        contacts.rigid_residual = np.inf if near.any() else 0.0
    return contacts.rigid_residual


def measure_rigid(contacts: Contacts, stiffness: np.ndarray, others: Sequence[list[ContactForces]]) -> None:
    """Update the residual of the rigid bodies from the last evaluated forces.

    Args:
        contacts: Obstacle contact.
        stiffness: (n,) stiffness of every vertex [N/m].
        others: Further contact forces on each rigid body.
    """
    touching_vertices = [_find_touching(contacts, motion, stiffness) for motion in contacts.rigid]
    forces = [
        concatenate_forces(each.contact_forces, *extra)
        for each, extra in zip(touching_vertices, others, strict=True)
    ]
    steps = corrections(contacts.rigid, forces, contacts.shapes, [None] * len(forces))
    each = zip(contacts.rigid, forces, steps, strict=True)
    contacts.rigid_residual = max(motion.relative_residual(force, step) for motion, force, step in each)


def _displace(contacts: Contacts, moves: np.ndarray) -> None:
    """Displace vertices by moves (n, 3) [m], except along constrained directions."""
    records = np.zeros((len(moves) + 1, RECORD), contacts.dtype)
    records[:-1, :3] = moves
    states = contacts.states
    contacts.device.apply_to_vectors(Displace(states.u, records, 0), states.dirichlet_operation)


def _has_contact(contacts: Contacts, motion: RigidMotion) -> bool:
    """True if a vertex touches a rigid body at the beginning of a step."""
    x = contacts.model.rest + contacts.states.vectors(contacts.states.u)[0].astype(float)
    row = contacts.shapes.rows[motion.body.row : motion.body.row + 1]
    gaps = distances_to(Shapes(row, contacts.shapes.values), x)[0]
    return bool((gaps < CONTACT_GAP * contacts.model.mean_edge).any())


def _find_touching(contacts: Contacts, motion: RigidMotion, stiffness: np.ndarray) -> BodyContacts:
    """Vertices in contact with a rigid body, given the stiffness (n,) [N/m] of all vertices."""
    x = contacts.model.rest + contacts.states.vectors(contacts.states.u)[0].astype(float)
    normals, _, forces, which = contacts.get_planes(0)
    p, v = np.nonzero((which == motion.body.row) & forces.any(axis=2))
    slips = np.zeros((len(v), 3))
    assert isinstance(contacts.planes, Planes)
    if contacts.planes.friction:
        contacts.device.download(contacts.planes.friction.anchor)
        slips = x[v] - contacts.model.rest[v] - contacts.planes.friction.anchor[p, v, :3].astype(float)
    mu = contacts.coefficients(0)[p, v]
    return classify_contacts(x[v], forces[p, v], normals[p, v], slips, mu, stiffness[v], v)
