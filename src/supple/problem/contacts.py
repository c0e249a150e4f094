"""Vertices and obstacles: what each vertex may touch, found again and again in the course of a solve.

Where a step begins, and every few sweeps, each vertex finds the shapes that are nearest to it and takes the
planes through its closest points on them [PBNG section 7.2]; one that is inside is put onto the surface.
Kernels see () where a model has no obstacles, and compile it to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.contact import Friction, Planes
from supple.contact.obstacles import Obstacles, between
from supple.contact.rigid import NO_PUSH, Push, RigidMotion, together
from supple.contact.rigid_contacts import corrections
from supple.contact.shapes import POSE, STEP
from supple.kernels import RECORD
from supple.model import Model, unpinned
from supple.problem.contact_records import Clamp, Detect, Forget, Remember, Sliding
from supple.problem.device import Device
from supple.problem.pierced import Piercing
from supple.problem.states import States
from supple.problem.touch_sums import TouchSums

SNAP = 8
"""Roundings of an edge: a vertex this close to its anchor is put there, lest rounding makes it creep."""

HURRY, MOST_WAYPOINTS = 0.4, 256
"""Parts of its thickness that an obstacle moves before vertices are put out of it again, and how often that
is done in a step at most."""

GIVES_WAY = 1e-7
"""Part of an edge: a rigid body that is to move by less is where it should be."""

STILL = 1e-6, 16
"""Part of an edge, or roundings of it: what moves less in a step, relative to an obstacle, does not slide."""


class Contacts:
    """What the vertices of a problem touch; planes are () where there is no obstacle."""

    def __init__(self, model: Model, dtype: np.dtype, device: Device, states: States) -> None:
        self.model, self.dtype, self.device, self.states = model, dtype, device, states
        self.obstacles = model.obstacles
        self.planes: Planes | tuple[()] = ()
        self.rigid: list[RigidMotion] = []
        self.moves = 0
        if self.obstacles is None:
            return
        self.shapes = self.obstacles.shapes(0.0)
        self.rigid = rigid_motions(self.obstacles)
        self.rest = np.zeros((model.vertices + 1, RECORD))
        self.rest[:-1, :3] = model.rest
        self._free = np.append(unpinned(model), 0).astype(dtype)
        eps, edge = float(np.finfo(dtype).eps), model.mean_edge
        self._snap = SNAP * eps * edge
        self._still = max(STILL[0], STILL[1] * eps) * edge
        self._back = self._time = 0.0
        self.times, self.moving = (0.0, 0.0), np.zeros(len(self.shapes.rows), bool)
        """When the present step of obstacles begins and ends [s]; which of the shapes (r,) move in it as
        prescribed, frame by frame."""
        self._way: list[np.ndarray] = []
        self._keeps_start = self.rough or any(getattr(f, "presses", False) for _, f in model.followers)
        self.before = self.shapes.rows[:, POSE : POSE + 12].copy()
        self.resize()

    def __bool__(self) -> bool:
        """Whether there is an obstacle."""
        return self.obstacles is not None

    def refuse(self, method: str, *others: str) -> None:
        """Refuse obstacles for a method that does not know how to treat them, with some that do."""
        if self.obstacles is not None:
            raise ValueError(
                f"{method} cannot keep bodies out of obstacles yet, and the scene has "
                f"{self.obstacles.names[0]!r}; {', '.join(others)} can"
            )

    def resize(self) -> None:
        """Room for as many copies of the state as there are."""
        if self.obstacles is None:
            return
        shape = self.obstacles.planes, len(self.states.u), RECORD

        def records() -> np.ndarray:
            return np.zeros(shape, self.dtype)

        rough = self.obstacles.rough
        self.start = np.zeros(shape[1:] if self._keeps_start else (1, RECORD), self.dtype)
        self.which = np.full((len(self.states.u), 3), -1, np.int32)
        friction = Friction(records(), records()) if rough else ()
        self.planes = Planes(records(), records(), records(), records(), friction)
        self.sums: TouchSums | None = None
        self.piercing: Piercing | None = None

    def clamp(self, *followers: np.ndarray) -> tuple[Clamp, ...]:
        """What `clamp_all` does, with further records that are to be as u is."""
        if not self.planes:
            return ()
        return (Clamp(self.states.u, self._free, self.planes, self._snap, followers),)

    @property
    def _slippery(self) -> bool:
        return bool(self._back) and self.rough and self.obstacles is not None and self.obstacles.slippery

    @property
    def rough(self) -> bool:
        """Whether an obstacle has friction."""
        return self.obstacles is not None and self.obstacles.rough

    def found(self, copy: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of a copy of the state: normals, feet [m] and the forces [N] that were evaluated last, (planes, n,
        3) each, and the numbers (planes, n) of the shapes, -1 for none."""
        n = self.model.vertices + 1
        own = slice(copy * n, (copy + 1) * n - 1)
        arrays = [getattr(self.planes, name) for name in ("normal", "foot", "reaction")]
        for array in (*arrays, self.which):
            self.device.pull(array)
        normals, feet, forces = (array[:, own, :3].astype(float) for array in arrays)
        return normals, feet, forces, self.which[own, : len(normals)].T

    def coefficients(self, copy: int) -> np.ndarray:
        """μ (planes, n) of what the vertices of a copy may touch, 0 for nothing."""
        assert isinstance(self.planes, Planes)
        n, friction = self.model.vertices + 1, self.planes.friction
        if not friction:
            return np.zeros((len(self.planes.normal), n - 1))
        self.device.pull(friction.coefficient)
        return friction.coefficient[:, copy * n : (copy + 1) * n - 1, 0].astype(float)

    def begin_step(self, time: float, dt: float = np.inf, damping: float = 0.0) -> None:
        """Know where vertices are before a step of dt [s] begins, and bring obstacles to where they are in
        the end [s] of it. In the step before, the part `damping` of velocities was lost."""
        if self.obstacles is None:
            return
        # forces of the step before would be known to a motion that was not interrupted
        self.device.on_records(Forget(self.which))
        if self._keeps_start:
            self.device.on_records(Remember(self.states.u, self.start))
        self._damping = damping
        now = self.obstacles.poses(time).copy()
        for motion in self.rigid:
            if np.isfinite(dt):
                motion.begin(dt)
                motion.settle(damping)
            now[motion.body.row] = motion.frame
        self.before = self.shapes.rows[:, POSE : POSE + 12].copy()
        self.obstacles.advance(self.shapes, now, time, dt)
        if np.isfinite(dt):
            self._correct([NO_PUSH] * len(self.rigid))
        if self.obstacles.values_at is not None:
            self.device.push(self.shapes.values)
        self._back = 1 / (1 - damping) if np.isfinite(dt) else 0.0
        end = time if np.isfinite(time) else max(self._time, self.model.duration)
        self.times, self.moving = (self._time, end), (self.before != now).any(axis=1)
        self.moving[[motion.body.row for motion in self.rigid]] = False
        self._way, self._time = self._waypoints(self._time, end), end

    def _waypoints(self, begin: float, end: float) -> list[np.ndarray]:
        """Frames (r, 12) of all shapes on their way from one time [s] to another, so near to each other that
        none leaves behind what it should push."""
        assert self.obstacles is not None
        steps = min(int(np.ceil(self.obstacles.hurry(self.shapes) / HURRY)), MOST_WAYPOINTS)
        way = [self.obstacles.poses(t).copy() for t in np.linspace(begin, end, max(steps, 1) + 1)[1:-1]]
        for frames in way:
            for motion in self.rigid:
                frames[motion.body.row] = motion.frame
        return way

    def arrive(self) -> None:
        """Bring obstacles to where they are in the end of a step that has begun, on their way, and find the
        planes there."""
        if self.obstacles is None:
            return
        end = self.shapes.rows[:, POSE : POSE + 12].copy()
        for frames in (*self._way, end):
            self.shapes.rows[:, POSE : POSE + 12] = frames
            self.device.push(self.shapes.rows)
            self._detect(self._free)
        self._way = []

    def stand_at(self, time: float) -> None:
        """Have obstacles where they are at a time [s], from which the next step moves them, and rigid bodies
        where the scene has them first."""
        if self.obstacles is None:
            return
        self.rigid, there = rigid_motions(self.obstacles), self.obstacles.shapes(time)
        self.shapes.rows[:], self._time = there.rows, time
        self.device.push(self.shapes.rows)
        if self.obstacles.values_at is not None:
            self.shapes.values[:] = there.values
            self.device.push(self.shapes.values)

    def begin_anew(self, times: Sequence[float]) -> None:
        """Begin equilibria at times [s], one for each copy of the state, which must be the same."""
        if self.obstacles is None:
            return
        if len(set(times)) > 1:
            raise ValueError(
                "obstacles are where they are at one time for all variations that are solved together; solve "
                "those of different times one after the other"
            )
        self.shapes.rows[:] = self.obstacles.shapes(0.0).rows
        self._time = 0.0
        self.begin_step(times[0])
        self.arrive()

    def give_way(self, stiffness: np.ndarray, others: Sequence[list[Push]]) -> bool:
        """Move rigid bodies to where what touches them lets them be, by the forces that were evaluated last
        and the stiffness (n,) [N/m] of every vertex; others: what else pushes each of them. False where they
        are there already."""
        x = self.model.rest + self.states.vectors(self.states.u)[0].astype(float)
        normals, _, forces, which = self.found(0)
        pushes = []
        for motion, further in zip(self.rigid, others, strict=True):
            p, v = np.nonzero((which == motion.body.row) & forces.any(axis=2))
            ways = np.broadcast_to(np.eye(3), (len(v), 3, 3)) if self.rough else normals[p, v][:, None]
            pushes.append(together(Push(x[v], -forces[p, v], ways, stiffness[v]), *further))
        farthest = self._correct(pushes)
        self.device.push(self.shapes.rows)
        if farthest <= GIVES_WAY * self.model.mean_edge:
            return False
        self.moves += 1
        self._detect(self._free)
        return True

    def _correct(self, pushes: list[Push]) -> float:
        """Move rigid bodies to where they are under what pushes them, out of each other and of obstacles;
        returns how far the farthest went [m]."""
        if not self.rigid:
            return 0.0
        farthest = 0.0
        for motion, step in zip(self.rigid, corrections(self.rigid, pushes, self.shapes), strict=True):
            farthest = max(farthest, motion.correct(step))
            motion.settle(self._damping)
            self.shapes.rows[motion.body.row, POSE : POSE + 12] = motion.frame
        self.shapes.rows[:, STEP : STEP + 12] = between(self.before, self.shapes.rows[:, POSE : POSE + 12])
        return farthest

    @property
    def moved_by_bodies(self) -> np.ndarray:
        """(k, 18) where rigid bodies are and how they move; to set it is to go on from there."""
        return np.array([motion.numbers for motion in self.rigid]).reshape(-1, 18)

    @moved_by_bodies.setter
    def moved_by_bodies(self, numbers: np.ndarray) -> None:
        self.rigid = [RigidMotion.of(m.body, row) for m, row in zip(self.rigid, numbers, strict=True)]
        for motion in self.rigid:
            self.shapes.rows[motion.body.row, POSE : POSE + 12] = motion.frame

    def find(self, time: float) -> None:
        """Find the planes at the present u, with obstacles where they are at a time [s]. Nothing is put out
        of them, and anchors are where vertices are."""
        assert self.obstacles is not None
        there = self.obstacles.shapes(time)
        self.shapes.rows[:], self.shapes.values[:] = there.rows, there.values
        self.device.push(self.shapes.rows)
        self.device.push(self.shapes.values)
        self._back = 0.0
        if self.obstacles.rough:
            self.device.on_records(Remember(self.states.u, self.start))
        self._detect(np.zeros_like(self._free))

    def detect(self) -> None:
        """Find the planes at the present u, which is put out of what it is inside of."""
        if self.obstacles is not None:
            self._detect(self._free)

    def _detect(self, free: np.ndarray) -> None:
        sliding = Sliding(self.states.anchor, self._back, self._still) if self._slippery else ()
        found = self.shapes, self.planes, self.which, self._snap, sliding
        self.device.on_records(Detect(self.states.u, self.rest, free, self.start, *found))


def rigid_motions(obstacles: Obstacles) -> list[RigidMotion]:
    """Of rigid bodies where the scene has them first."""
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
