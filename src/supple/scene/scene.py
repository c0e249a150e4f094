"""The scene: bodies, pins, loads, attachments, springs and the clock. What a user describes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes import TetMesh, TriMesh
from supple.scene import adding
from supple.scene.attachments import Attachment
from supple.scene.bodies import Body, VertexSet
from supple.scene.cables import Tendon
from supple.scene.cavities import Cavity
from supple.scene.checks import Vector, chosen, count, listed, number, part, shown, sound_name, vector
from supple.scene.cloth import Cloth
from supple.scene.contact import Contact, Method, contact_of
from supple.scene.directions import held_directions
from supple.scene.errors import SceneError
from supple.scene.loading import Loaded
from supple.scene.loads import Inflation, Load, Wind
from supple.scene.obstacles import Obstacle, WithObstacles
from supple.scene.pickling import picklable
from supple.scene.pins import AnyMotion, Pin
from supple.scene.ramps import AnyRamp, check_ramp
from supple.scene.regions import Portion, Region
from supple.scene.springs import SpringSet
from supple.scene.terms import TermMaker
from supple.scene.ties import WithTies
from supple.scene.turning import FollowingTraction
from supple.scene.varying import Varied, varied
from supple.scene.viscosity import Viscosity


@dataclass(eq=False)
class Scene(Loaded, WithObstacles, WithTies):
    """Solids and cloth with what holds, moves and loads them. SI units.

    gravity (3,) [m/s²]; quasistatic: equilibria without inertia, else a motion; dt [s] between frames;
    frames: how many of them a simulation has, frame i at time i dt; substeps: steps of the integrator
    from frame to frame; damping: the part of every velocity that is lost in each of these steps, from 0 to
    below 1: v = (1 - damping) Δx/Δt with Δt = dt/substeps; gravity_ramp: how gravity varies in time;
    integrator: the rule of these steps, "backward_euler", or of second order "bdf2" and "trapezoidal";
    initial_guess: where solvers start in a step, "adaptive", "inertial" (x + Δt v + Δt² g) or "coast"
    (x + Δt v);
    contact: how bodies see each other and themselves, "none", "weak", "barrier", "grid" or a `Contact` with
    its options.
    """

    gravity: Vector = (0.0, -9.81, 0.0)
    quasistatic: bool = True
    dt: float = 1 / 30
    frames: int = 1
    substeps: int = 1
    damping: float = 0.0
    gravity_ramp: AnyRamp | None = None
    contact: Contact | Method = "none"
    integrator: Literal["backward_euler", "bdf2", "trapezoidal"] = "backward_euler"
    initial_guess: Literal["adaptive", "inertial", "coast"] = "adaptive"
    bodies: list[Body] = field(default_factory=list, init=False)
    pins: list[Pin] = field(default_factory=list, init=False)
    loads: list[Load] = field(default_factory=list, init=False)
    attachments: list[Attachment] = field(default_factory=list, init=False)
    obstacles: list[Obstacle] = field(default_factory=list, init=False)
    springs: list[SpringSet] = field(default_factory=list, init=False)
    cables: list[Tendon] = field(default_factory=list, init=False)
    varied: list[Varied] = field(default_factory=list, init=False)
    inflations: list[Inflation | Cavity] = field(default_factory=list, init=False)
    turning: list[FollowingTraction] = field(default_factory=list, init=False)
    winds: list[Wind] = field(default_factory=list, init=False)
    further: list[TermMaker] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse values that make no sense; again before a solve, as they may have been changed since."""
        self.gravity = vector(self.gravity, "gravity [m/s²]")
        self.dt = number(self.dt, "dt [s]", above=0)
        if not isinstance(self.quasistatic, bool):
            raise SceneError(f"quasistatic must be True or False, got {shown(self.quasistatic)}.")
        self.frames = count(self.frames, "frames")
        self.substeps = count(self.substeps, "substeps")
        self.damping = part(self.damping, "damping")
        self.gravity_ramp = check_ramp(self.gravity_ramp)
        self.contact = contact_of(self.contact)
        chosen(self.integrator, "integrator", ("backward_euler", "bdf2", "trapezoidal"))
        chosen(self.initial_guess, "initial_guess", ("adaptive", "inertial", "coast"))

    def __getstate__(self) -> dict[str, Any]:
        further = [picklable(make, "a term of one's own", "function") for make in self.further]
        ramp = picklable(self.gravity_ramp, "gravity", "ramp")
        return self.__dict__ | {"gravity_ramp": ramp, "further": further}

    def add_solid(
        self,
        mesh: TetMesh,
        material: Any,
        density: float = 1000.0,
        name: str | None = None,
        render: TriMesh | None = None,
        *,
        velocity: Vector = (0.0, 0.0, 0.0),
        angular_velocity: Vector = (0.0, 0.0, 0.0),
        regions: Sequence[Region] = (),
        viscosity: Viscosity | Sequence[Viscosity] = (),
    ) -> Body:
        """A body of a material, e.g. `Corotated(young=1e5, poisson=0.3)`, with a density [kg/m³].

        Names are for messages and output; without one it is "solid0", "solid1", ... render: a detailed
        surface, such as `load_surface("armadillo.obj")`, that follows the mesh in pictures and exports.
        A dynamic scene starts with the velocity [m/s] of its centre of mass and the angular_velocity [rad/s]
        about it, right-handed about the direction of that vector. regions: tetrahedra that are of other
        materials, such as `Region("bone", {"region": 3}, StVK(...))`. viscosity: what resists its rate of
        strain as steps of time pass, `KelvinVoigt(...)`, `Maxwell(...)`, `Rayleigh(...)` or a list of them.
        """
        made = adding.solid(
            self.bodies,
            mesh,
            material,
            density,
            name,
            render,
            velocity,
            angular_velocity,
            regions=regions,
            viscosity=viscosity,
        )
        self.bodies.append(made)
        return self.bodies[-1]

    def add_cloth(
        self,
        mesh: TriMesh,
        membrane: Any,
        bending: Any = None,
        *,
        density: float | None = None,
        thickness: float = 1e-3,
        name: str | None = None,
        rest: Any = None,
        render: TriMesh | None = None,
        velocity: Vector = (0.0, 0.0, 0.0),
        angular_velocity: Vector = (0.0, 0.0, 0.0),
        regions: Sequence[Region] = (),
    ) -> Cloth:
        """Cloth: a surface such as `sheet(...)` of a membrane material, e.g. `StVK(young=1e5, poisson=0.3)`,
        with a density [kg/m²], 0.2 unless given, and a thickness [m], by which the material's energy is
        multiplied; or of a fabric, e.g. `supple.load_fabric(...)`, which has a density and resists bending by
        itself, and whose threads lie along x and y of the rest shape.

        The mesh says where it starts. rest: where nothing is stretched, unless that is there too: another
        `TriMesh` of the same triangles, "uv" for the mesh's uv in metres, or coordinates [m] (n, 2) or (n, 3)
        of the vertices, such as a flat pattern, or (m, 3, 2) or (m, 3, 3) of the corners of its triangles.
        name, render and velocities as for solids. regions: triangles that are of other membranes, such as
        `Region("seam", lambda X: X[:, 0] < 0.01, StVK(...))`; thickness and bending are those of the cloth.
        """
        motion = velocity, angular_velocity
        made = adding.cloth(
            self.bodies, mesh, membrane, bending, density, thickness, name, rest, render, *motion,
            regions=regions,
        )  # fmt: skip
        self.bodies.append(made)
        return made

    def pin(
        self,
        vertices: VertexSet | Body,
        motion: AnyMotion | None = None,
        *,
        axes: str | Sequence[str] | None = None,
        along: ArrayLike | None = None,
        normal: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        """Prescribe where vertices are: at rest, or moved by a motion such as `Rotate(...) + Translate(...)`.

        Any function (X (k, 3), t) -> (k, 3) is a motion. axes: hold these coordinates only, as "x" or "yz" or
        ("y", "z"); normal: hold them in this direction only, (3,) or one per vertex, as a roller or a plane
        of symmetry does; along: let them slide along this direction only, as a rail does. Of a motion counts
        what it has in the held directions n, n·x = n·motion(X, t), and these do not turn with it. A vertex
        may be in several pins, which hold together what each of them holds; where two hold it in the same
        direction, their motions must agree there. The name is that of its reaction, see `evaluate`; without
        one it is "pin0", "pin1", ...
        """
        chosen = self._vertices(vertices)
        if motion is not None and not callable(motion):
            raise SceneError(f"A motion must be for example Translate((x, y, z)); got {shown(motion)}.")
        directions = held_directions(axes, along, normal, len(chosen))
        for pin in self.pins:
            wholly = directions is None and pin.directions is None
            if wholly and pin.on.body is chosen.body and pin.motion != motion:
                twice = np.intersect1d(pin.on.indices, chosen.indices)
                if len(twice):
                    raise SceneError(
                        f"{len(twice)} vertices of {chosen.body.name!r} are already pinned with another "
                        f"motion, for example vertex {twice[0]} at {chosen.body.points[twice[0]].tolist()}; "
                        "select them only once."
                    )
        name = f"pin{len(self.pins)}" if name is None else sound_name(name, "pin")
        if name in (pin.name for pin in self.pins):
            raise SceneError(f"There is already a pin named {name!r}; names must differ.")
        self.pins.append(Pin(chosen, motion, directions, name))

    def vary(self, body: Body | Portion, parameter: str, ramp: AnyRamp) -> None:
        """Let a parameter of the material of a body, or of a `body.region`, vary in time: a ramp says
        what part it has of the value that the material has, e.g. `Ramp(times=(0, 1), fractions=(0.5, 1))`.

        Any number that a material declares may vary, for the body or for each element; directions and tensors
        stay. An equilibrium has what it is in the end.
        """
        if not isinstance(body, Portion):
            body = self._vertices(body).body
        self._vertices(body.body if isinstance(body, Portion) else body)
        if any(each.body.name == body.name and each.parameter == parameter for each in self.varied):
            raise SceneError(f"{parameter} of {body.name!r} varies already; one ramp says how.")
        self.varied.append(varied(body, parameter, ramp))

    def __repr__(self) -> str:
        vertices = self.bodies[-1].vertices.stop if self.bodies else 0
        kind = "quasistatic" if self.quasistatic else "dynamic"
        names = listed(body.name for body in self.bodies[:3]) or "none"
        more = f" and {len(self.bodies) - 3} more" if len(self.bodies) > 3 else ""
        return (
            f"<Scene: {kind}, bodies {names}{more}, "
            f"{vertices:,} vertices, {sum(len(pin.on) for pin in self.pins):,} pinned>"
        )

    def _vertices(self, chosen: VertexSet | Body) -> VertexSet:
        if isinstance(chosen, Body):
            chosen = chosen.all
        if not isinstance(chosen, VertexSet):
            raise SceneError(
                f"Vertices must be a body or a selection such as body.where(lambda X: X[:, 0] <= 0); "
                f"got {shown(chosen)}."
            )
        if not any(chosen.body is body for body in self.bodies):
            names = listed(body.name for body in self.bodies)
            raise SceneError(
                f"Body {chosen.body.name!r} belongs to another scene; this one has {names or 'none'}."
            )
        return chosen


def scene_of(given: Any) -> Scene:
    """The scene that is given, itself or in what `load_scene` returns."""
    scene = getattr(given, "scene", given)
    if isinstance(scene, Scene):
        return scene
    hint = (
        " read the file first, with supple.load_scene(...);" if isinstance(given, str | os.PathLike) else ""
    )
    raise TypeError(
        f"a scene is needed, a supple.Scene() with its bodies or what supple.load_scene(...) returns;{hint} "
        f"got {shown(given)}"
    )
