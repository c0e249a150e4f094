"""The scene: bodies, pins, loads, attachments, springs and the clock. What a user describes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes import TetMesh, TriMesh
from supple.scene import adding, loads
from supple.scene.attachments import Attachment, attachment
from supple.scene.bodies import Body, VertexSet
from supple.scene.checks import Vector, array, count, listed, number, part, shown, sound_name, vector
from supple.scene.cloth import Cloth
from supple.scene.contact import Contact, Method, contact_of
from supple.scene.directions import held_directions
from supple.scene.errors import SceneError
from supple.scene.loads import Inflation, Load, Wind
from supple.scene.obstacles import Obstacle, WithObstacles
from supple.scene.pickling import picklable
from supple.scene.pins import AnyMotion, Pin
from supple.scene.ramps import AnyRamp, check_ramp
from supple.scene.springs import SpringSet, spring_set
from supple.scene.varying import Varied, varied


@dataclass(eq=False)
class Scene(WithObstacles):
    """Solids and cloth with what holds, moves and loads them. SI units.

    gravity (3,) [m/s²]; quasistatic: equilibria without inertia, else backward Euler; dt [s] between frames;
    frames: how many of them a simulation has, frame i at time i dt; substeps: backward Euler steps that lead
    from frame to frame; damping: the part of every velocity that is lost in each of these steps, from 0 to
    below 1: v = (1 - damping) Δx/Δt with Δt = dt/substeps; gravity_ramp: how gravity varies in time;
    contact: how bodies see each other and themselves, "none", "weak" or a `Contact` with its options.
    """

    gravity: Vector = (0.0, -9.81, 0.0)
    quasistatic: bool = True
    dt: float = 1 / 30
    frames: int = 1
    substeps: int = 1
    damping: float = 0.0
    gravity_ramp: AnyRamp | None = None
    contact: Contact | Method = "none"
    bodies: list[Body] = field(default_factory=list, init=False)
    pins: list[Pin] = field(default_factory=list, init=False)
    loads: list[Load] = field(default_factory=list, init=False)
    attachments: list[Attachment] = field(default_factory=list, init=False)
    obstacles: list[Obstacle] = field(default_factory=list, init=False)
    springs: list[SpringSet] = field(default_factory=list, init=False)
    varied: list[Varied] = field(default_factory=list, init=False)
    inflations: list[Inflation] = field(default_factory=list, init=False)
    winds: list[Wind] = field(default_factory=list, init=False)

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

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"gravity_ramp": picklable(self.gravity_ramp, "gravity", "ramp")}

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
    ) -> Body:
        """A body of a material, e.g. `Corotated(young=1e5, poisson=0.3)`, with a density [kg/m³].

        Names are for messages and output; without one it is "solid0", "solid1", ... render: a detailed
        surface, such as `load_surface("armadillo.obj")`, that follows the mesh in pictures and exports.
        A dynamic scene starts with the velocity [m/s] of its centre of mass and the angular_velocity [rad/s]
        about it, right-handed about the direction of that vector.
        """
        motion = velocity, angular_velocity
        self.bodies.append(adding.solid(self.bodies, mesh, material, density, name, render, *motion))
        return self.bodies[-1]

    def add_cloth(
        self,
        mesh: TriMesh,
        membrane: Any,
        bending: Any = None,
        *,
        density: float = 0.2,
        thickness: float = 1e-3,
        name: str | None = None,
        rest: Any = None,
        render: TriMesh | None = None,
        velocity: Vector = (0.0, 0.0, 0.0),
        angular_velocity: Vector = (0.0, 0.0, 0.0),
    ) -> Cloth:
        """Cloth: a surface such as `sheet(...)` of a membrane material, e.g. `StVK(young=1e5, poisson=0.3)`,
        with a density [kg/m²] and a thickness [m], by which the material's energy is multiplied.

        The mesh says where it starts. rest: where nothing is stretched, unless that is there too: another
        `TriMesh` of the same triangles, "uv" for the mesh's uv in metres, or coordinates [m] (n, 2) or (n, 3)
        of the vertices, such as a flat pattern, or (m, 3, 2) or (m, 3, 3) of the corners of its triangles.
        name, render and velocities as for solids.
        """
        motion = velocity, angular_velocity
        made = adding.cloth(
            self.bodies, mesh, membrane, bending, density, thickness, name, rest, render, *motion
        )
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

    def add_force(self, vertices: VertexSet | Body, force: ArrayLike, ramp: AnyRamp | None = None) -> None:
        """A force [N]: (3,) is the total, shared equally by the vertices; (k, 3) one for each.

        ramp: what part of it acts at a time, `Ramp(times=(0, 1), fractions=(0, 1))` or any function of the
        time [s]; all of it, always, unless given. An equilibrium has what acts in the end.
        """
        chosen = self._vertices(vertices)
        newtons = array(force, "force [N]").copy()
        if newtons.shape == (3,):
            newtons = np.tile(newtons / len(chosen), (len(chosen), 1))
        if newtons.shape != (len(chosen), 3):
            raise SceneError(
                f"force must be a total (3,) or one for each of the {len(chosen)} vertices, "
                f"({len(chosen)}, 3); got shape {newtons.shape}."
            )
        self.loads.append(Load(chosen, newtons, check_ramp(ramp)))

    def add_traction(
        self, vertices: VertexSet | Body, traction: ArrayLike, ramp: AnyRamp | None = None
    ) -> None:
        """A traction (3,) [Pa] on all surface triangles whose three vertices are chosen; ramp as in
        `add_force`.

        A dead load: its direction and its total, traction × area at rest, do not change as the body deforms.
        """
        chosen = self._vertices(vertices)
        pascals = np.array(vector(traction, "traction [Pa]"))
        self.loads.append(Load(chosen, loads.tractions(chosen, pascals), check_ramp(ramp)))

    def add_pressure(self, vertices: VertexSet | Body, pressure: float, ramp: AnyRamp | None = None) -> None:
        """A pressure [Pa] that pushes outwards on all surface triangles whose three vertices are chosen,
        wherever they turn, as air inside does: the energy -p V; ramp as in `add_force`.

        The surface must be closed, such as that of a `sphere`, a `pillow` or a solid, or pinned along its
        edges; what is outside is told by the order of vertices, counter-clockwise seen from there.
        """
        self.inflations.append(loads.inflation(self._vertices(vertices), pressure, ramp))

    def add_wind(
        self,
        velocity: Vector,
        *bodies: Body,
        drag: float = 1.0,
        lift: float = 0.5,
        density: float = 1.2,
        ramp: AnyRamp | None = None,
    ) -> None:
        """Air that moves with a velocity (3,) [m/s] and pulls at the surfaces of bodies, all of those that
        there are unless given: f = ½ ρ A ((C_D - C_L)(w · n) w + C_L |w|² n) on each triangle, where w is the
        wind relative to it and n its normal on the lee side. drag, lift: C_D and C_L; density: ρ of the air
        [kg/m³]. For dynamic scenes: it is taken where a step begins and stays until its end.
        """
        chosen = [self._vertices(body).body for body in bodies] or self.bodies
        self.winds.append(loads.wind(chosen, velocity, drag, lift, density, ramp))

    def attach(
        self,
        a: VertexSet | Body,
        b: VertexSet | Body | ArrayLike | None = None,
        *,
        stiffness: float,
        normal: ArrayLike | None = None,
        tangent_stiffness: float | None = None,
        keep_offset: bool = False,
        within: float | None = None,
    ) -> None:
        """Bind vertices a with weak constraints, energy ½ Cᵀ K C each with C = x_a - x_b [PBNG section 4.1].

        b: as many vertices, paired in order; or a body, of which each vertex of a takes the closest point at
        rest; or fixed points (3,) or (k, 3) [m]; or None, the points where a is at rest.
        stiffness k [N/m] gives K = k I; with a normal n, (3,) or one per vertex, K = k n nᵀ + k_τ (I - n nᵀ)
        where k_τ is tangent_stiffness [N/m], 0 unless given. keep_offset keeps gaps at rest open, else C = 0
        closes them. within [m]: for seams, only vertices of a that have their closest point, or the nearest
        of the vertices b in place of the one in order, no farther away at rest.
        """
        if isinstance(b, VertexSet | Body):
            self._vertices(b)
        self.attachments.append(
            attachment(self._vertices(a), b, stiffness, normal, tangent_stiffness, keep_offset, within)
        )

    def add_springs(
        self,
        a: VertexSet | Body,
        b: VertexSet | Body | ArrayLike,
        *,
        stiffness: ArrayLike,
        rest_length: ArrayLike | None = None,
    ) -> None:
        """Springs from vertices a to b, energy ½ k (l - L)² each, l their length.

        b: as many vertices, paired in order, or fixed points (3,) or (k, 3) [m]. stiffness k [N/m] and
        rest_length L [m] are numbers, or one for each; springs without a rest_length are as long as they are
        at rest.
        """
        if isinstance(b, VertexSet | Body):
            b = self._vertices(b)
        self.springs.append(spring_set(self._vertices(a), b, stiffness, rest_length))

    def vary(self, body: Body, parameter: str, ramp: AnyRamp) -> None:
        """Let a parameter of a body's material vary in time: a ramp says what part it has of the value that
        the material has, `scene.vary(muscle, "activation", Ramp(times=(0, 1), fractions=(0, 1)))`.

        Any number that a material declares may vary, for the body or for each element; directions and tensors
        stay. An equilibrium has what it is in the end.
        """
        body = self._vertices(body).body
        if any(each.body is body and each.parameter == parameter for each in self.varied):
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
