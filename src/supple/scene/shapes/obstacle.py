"""Obstacles: shapes that bodies cannot enter, at rest, moved like pins, or free with a mass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision import Obstacles, Shapes, distances_to
from supple.collision.obstacles import signed_distance
from supple.collision.obstacles.face_distance import thicknesses, widths
from supple.collision.obstacles.obstacles import Surface
from supple.collision.obstacles.rigid_body import RigidBody
from supple.contact.obstacle_faces import with_face_contact
from supple.meshes import TriMesh
from supple.model.model import Model
from supple.scene.contact_settings import coefficients, edges_of
from supple.scene.errors import SceneError
from supple.scene.pickling import picklable
from supple.scene.shapes.analytic_shapes import Box, Shape, Sphere
from supple.scene.shapes.surface_shapes import SurfaceSequence, SurfaceShape
from supple.scene.value_checks import Vector, check_name, format_value, number, vector
from supple.support.arguments import to_floats

if TYPE_CHECKING:
    from supple.scene.scene import Scene

AnyMotion = Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True, eq=False)
class Obstacle:
    """A shape that bodies cannot enter.

    Attributes:
        shape: Shape at rest.
        motion: Prescribed rigid motion, None for an obstacle at rest or with a mass.
        friction: Coulomb coefficient μ.
        name: Name of its force in reports.
        kinetic_friction: μ of sliding contacts; None: equal to `friction`.
        mass: Mass [kg] of an obstacle that is moved by contact forces, None for others.
        velocity: Initial velocity (3,) [m/s] of an obstacle with a mass.
        angular_velocity: Initial angular velocity (3,) [rad/s] of an obstacle with a mass.
    """

    shape: Shape
    motion: AnyMotion | None
    friction: float
    name: str
    kinetic_friction: float | None = None
    mass: float | None = None
    velocity: Vector = (0.0, 0.0, 0.0)
    angular_velocity: Vector = (0.0, 0.0, 0.0)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"motion": picklable(self.motion, f"obstacle {self.name!r}")}


class ObstacleMethods:
    """Base class of `Scene` with the method that adds obstacles."""

    obstacles: list[Obstacle]

    def add_obstacle(
        self,
        shape: Shape | TriMesh,
        motion: AnyMotion | None = None,
        *,
        friction: float = 0.0,
        kinetic_friction: float | None = None,
        mass: float | None = None,
        velocity: Vector = (0.0, 0.0, 0.0),
        angular_velocity: Vector = (0.0, 0.0, 0.0),
        name: str | None = None,
    ) -> Obstacle:
        """Add a shape that bodies cannot enter.

        An obstacle that moves farther than its thickness in a time step, or in one of the `steps` of an
        equilibrium, leaves behind the bodies that it should push.

        Args:
            shape: A `Plane`, `Box`, `Sphere`, `Capsule` or `Cylinder`, or a closed surface, such as
                `load_surface("mannequin.obj")`.
            motion: Prescribed motion such as `Translate(...)`, as for pins. It must be rigid. Default: at
                rest.
            friction: Coulomb coefficient μ, 0 for none. Sticking contacts hold indefinitely. Between two
                obstacles the larger coefficient applies.
            kinetic_friction: μ of vertices that slid in the previous time step. Default: `friction`.
                Equilibria use `friction` only.
            mass: Mass [kg] of a `Sphere` or `Box` that falls and is moved by the bodies and obstacles that it
                touches.
            velocity: Initial velocity (3,) [m/s] of an obstacle with a mass.
            angular_velocity: Initial angular velocity (3,) [rad/s] of an obstacle with a mass.
            name: Name of its forces in reports. Default: "obstacle0", "obstacle1", ...

        Returns:
            The obstacle.

        Raises:
            SceneError: An argument is invalid.
        """
        if isinstance(shape, TriMesh):
            shape = SurfaceShape(shape)
        if not isinstance(shape, Shape):
            raise SceneError(
                f"add_obstacle needs a shape, for example supple.Plane() or supple.Sphere(radius=0.5); "
                f"got {format_value(shape)}."
            )
        if motion is not None and not callable(motion):
            raise SceneError(
                f"A motion must be for example Translate((x, y, z)); got {format_value(motion)}."
            )
        mu, sliding = coefficients(friction, kinetic_friction, "of an obstacle")
        name = f"obstacle{len(self.obstacles)}" if name is None else check_name(name, "obstacle")
        if name in (obstacle.name for obstacle in self.obstacles):
            raise SceneError(f"There is already an obstacle named {name!r}; names must differ.")
        if isinstance(shape, SurfaceSequence) and mu > 0:
            raise SceneError("SurfaceSequence does not support friction; set friction=0.")
        weight = None if mass is None else _mass(mass, shape, motion)
        moving = (
            vector(velocity, "velocity [m/s] of an obstacle"),
            vector(angular_velocity, "angular_velocity [rad/s] of an obstacle"),
        )
        self.obstacles.append(Obstacle(shape, motion, mu, name, sliding, weight, *moving))
        return self.obstacles[-1]


def _mass(mass: Any, shape: Shape, motion: AnyMotion | None) -> float:
    if not isinstance(shape, Sphere | Box) or shape.hollow:
        raise SceneError(
            f"Only a Sphere or a Box that is not hollow can have a mass [kg]; got {format_value(shape)}."
        )
    if motion is not None:
        raise SceneError(
            "An obstacle with a mass moves by gravity and contact; it cannot have a prescribed motion."
        )
    return number(mass, "mass [kg] of an obstacle", above=0)


def _rigid(obstacle: Obstacle, row: int, gravity: Any) -> RigidBody:
    """Rigid-body data of an obstacle with a mass; moments: ball 2/5 m r², box m (b² + c²)/12."""
    mass, shape = float(obstacle.mass or 0.0), obstacle.shape
    if isinstance(shape, Sphere):
        inertia = np.full(3, 0.4 * mass * shape.radius**2)
    else:
        assert isinstance(shape, Box)
        square = np.square(shape.size)
        inertia = mass / 12 * (square.sum() - square)
    moving = np.array(obstacle.velocity, float), np.array(obstacle.angular_velocity, float)
    return RigidBody(row, mass, inertia, mass * np.array(gravity, float), *moving)


@dataclass(frozen=True, eq=False)
class Values:
    """Bounding-box trees of all meshes as a function of time t [s]."""

    shapes: tuple[Shape, ...]

    def __call__(self, t: float) -> np.ndarray:
        return np.concatenate([*(shape.values_at(t) for shape in self.shapes), np.zeros(1)])


@dataclass(frozen=True, eq=False)
class Surfaces:
    """Meshes by shape row as a function of time t [s].

    Attributes:
        shapes: Shapes of all obstacles.
        first_row: First row of each shape.
    """

    shapes: tuple[Shape, ...]
    first_row: tuple[int, ...]

    def __call__(self, t: float) -> dict[int, Surface]:
        meshes = ((row, shape.surface_at(t)) for row, shape in zip(self.first_row, self.shapes, strict=True))
        return {row: mesh for row, mesh in meshes if mesh is not None}


@dataclass(frozen=True, eq=False)
class Poses:
    """Frames (r, 12) of all shapes as a function of time t [s]: three axes, origin."""

    obstacles: tuple[Obstacle, ...]

    def __call__(self, t: float) -> np.ndarray:
        return np.concatenate([self._of(obstacle, t) for obstacle in self.obstacles])

    def _of(self, obstacle: Obstacle, t: float) -> np.ndarray:
        rows = obstacle.shape.rows
        pose = rows[:, signed_distance.POSE : signed_distance.POSE + 12]
        if obstacle.motion is None:
            return pose
        axes, origin = pose[:, :9].reshape(-1, 3, 3), pose[:, 9:]
        points = np.concatenate([origin[:, None], origin[:, None] + axes], axis=1).reshape(-1, 3)
        positions = to_floats(obstacle.motion(points, t)).reshape(-1, 4, 3)
        rotated = positions[:, 1:] - positions[:, :1]
        unit = np.einsum("kai,kbi->kab", rotated, rotated)
        if not np.abs(unit - np.eye(3)).max() < 1e-6:  # true for NaN as well
            when = "in the end" if t == np.inf else f"at t = {t:g} s"
            raise SceneError(
                f"The motion of obstacle {obstacle.name!r} must be rigid, translations and rotations "
                f"only; {when} it is not, or it is not finite.",
                at="obstacle",
            )
        return np.concatenate([rotated.reshape(-1, 9), positions[:, 0]], axis=1)


def obstacles_of(scene: Scene) -> Obstacles | None:
    """Build model obstacles; None if no obstacles exist."""
    if not scene.obstacles:
        return None
    rows, values, first = [], [], 0
    for k, obstacle in enumerate(scene.obstacles):
        of_shape = obstacle.shape.rows.copy()
        of_shape[:, signed_distance.OBSTACLE], of_shape[:, signed_distance.FRICTION] = k, obstacle.friction
        of_shape[:, signed_distance.KINETIC] = (
            obstacle.friction if obstacle.kinetic_friction is None else obstacle.kinetic_friction
        )
        of_shape[:, signed_distance.FIRST] = first
        rows.append(of_shape)
        values.append(obstacle.shape.values)
        first += len(values[-1])
    numbers = np.concatenate([*values, np.zeros(1)])
    names = tuple(obstacle.name for obstacle in scene.obstacles)
    shapes = tuple(obstacle.shape for obstacle in scene.obstacles)
    deforms = Values(shapes) if any(isinstance(shape, SurfaceSequence) for shape in shapes) else None
    first_row = tuple(int(row) for row in np.cumsum([0, *map(len, rows[:-1])]))
    rigid = tuple(
        _rigid(obstacle, row, scene.gravity)
        for obstacle, row in zip(scene.obstacles, first_row, strict=True)
        if obstacle.mass is not None
    )
    poses, surfaces = Poses(tuple(scene.obstacles)), Surfaces(shapes, first_row)
    return Obstacles(names, np.concatenate(rows), numbers, poses, deforms, rigid, surfaces)


def refuse_resting(scene: Scene) -> None:
    """Refuse obstacles with a mass in quasistatic scenes."""
    for obstacle in scene.obstacles:
        if obstacle.mass is not None:
            raise SceneError(
                f"Obstacle {obstacle.name!r} has a mass, so it moves in time: the scene must be "
                "dynamic (quasistatic = false, and simulate).",
                at="obstacle",
            )


MAX_INITIAL_DEPTH = 1e-6
"""Largest initial depth of a body in an obstacle, relative to the size of the body."""


def refuse_inside(scene: Scene, pinned: np.ndarray, end: float) -> None:
    """Refuse bodies that start inside an obstacle, and motions that deform it; pinned vertices may be inside.

    Args:
        scene: Scene to check.
        pinned: Pinned vertices of the scene.
        end: Last time of the scene [s]; infinite for an equilibrium, which needs motions that end.
    """
    obstacles = obstacles_of(scene)
    if obstacles is None:
        return
    obstacles.poses(end)  # raises an error for motions that deform
    shapes: Shapes = obstacles.shapes(0.0)
    for body in scene.bodies:
        depth, _, which = distances_to(shapes, body.points)
        constrained = pinned[(pinned >= body.vertices.start) & (pinned < body.vertices.stop)]
        depth[constrained - body.vertices.start] = np.inf
        worst = int(depth.argmin())
        if depth[worst] < -MAX_INITIAL_DEPTH * float(np.ptp(body.points, axis=0).max()):
            name = obstacles.names[obstacles.obstacle[which[worst]]]
            count = int((depth < 0).sum())
            raise SceneError(
                f"{body.name!r} begins inside obstacle {name!r}: {count} of its vertices, at most "
                f"{-depth[worst]:.3g} m deep, at vertex {worst}, {body.points[worst].tolist()}. Move "
                "one of them away.",
                at="obstacle",
            )


SMALL_OBSTACLE_EDGES = 1.5
"""Size in mean edges e of a surface below which an obstacle may pass between vertices.

An edge across a right-angled corner cuts off e/√8, half of the way to the middle of an obstacle that is √2 e
thick. The same limit applies to the width of obstacles that springs keep faces out of: vertices rest on a
wide plate, and additional springs would push them off.
"""


def with_small_obstacle_contact(scene: Scene, model: Model) -> Model:
    """Add face contact for obstacles that are small relative to surface edges.

    Models on a grid are unchanged, since a grid detects vertices only.
    """
    if model.obstacles is None or model.grid is not None:
        return model
    edges = np.array([float(edges_of(body).mean()) for body in scene.bodies])
    small = widths(model.obstacles.shapes(0.0)) < SMALL_OBSTACLE_EDGES * edges.max()
    if not small.any():
        return model
    return with_face_contact(model, small.astype(np.int32), float(edges.mean()))


def small_obstacles(scene: Scene) -> list[str]:
    """Describe obstacles that may pass through body faces, one sentence per pair."""
    obstacles = obstacles_of(scene)
    if obstacles is None:
        return []
    shapes, longest = obstacles.shapes(0.0), max(float(edges_of(body).mean()) for body in scene.bodies)
    thick, has_springs = thicknesses(shapes), widths(shapes) < SMALL_OBSTACLE_EDGES * longest
    return [
        f"obstacle {name!r} is {size:.2g} m thick, and {body.name!r} has edges of {edge:.2g} m: "
        f"{how}; with edges below {0.5 * size:.2g} m, vertices detect it"
        for body in scene.bodies
        for edge in [float(edges_of(body).mean())]
        for k, name in enumerate(obstacles.names)
        for own in [obstacles.obstacle == k]
        for size in [float(thick[own].min())]
        for how in [SPRINGS_ADVICE if has_springs[own].all() else RIM_ADVICE]
        if size < SMALL_OBSTACLE_EDGES * edge
    ]


SPRINGS_ADVICE = "faces are kept away by springs, which are compliant"
RIM_ADVICE = "its rim may pass between vertices, which the report states"
