"""The scene: bodies, pins, loads, obstacles, connectors, and time stepping."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes import TetMesh, TriMesh
from supple.scene import body_validation as adding
from supple.scene.bodies import Body, VertexSet
from supple.scene.cloth import Cloth
from supple.scene.constraints.attachments import Attachment
from supple.scene.constraints.cables import Tendon
from supple.scene.constraints.connector_methods import ConnectorMethods, TermMaker
from supple.scene.constraints.pins import AnyMotion, Pin, constrained_directions
from supple.scene.constraints.springs import SpringSet
from supple.scene.contact_settings import Contact, Method, contact_of
from supple.scene.errors import SceneError
from supple.scene.loads.cavities import Cavity
from supple.scene.loads.follower_tractions import FollowingTraction
from supple.scene.loads.forces import Inflation, Load, Wind
from supple.scene.loads.load_methods import LoadMethods
from supple.scene.loads.ramps import AnyRamp, check_ramp
from supple.scene.loads.time_varying import VaryingParameter, vary_parameter
from supple.scene.pickling import picklable
from supple.scene.regions import Portion, Region
from supple.scene.shapes.obstacle import Obstacle, ObstacleMethods
from supple.scene.value_checks import (
    Vector,
    check_name,
    chosen,
    comma_list,
    count,
    format_value,
    number,
    part,
    vector,
)
from supple.scene.viscosity import Viscosity
from supple.support.keywords import suggest_keywords


@suggest_keywords
@dataclass(eq=False)
class Scene(LoadMethods, ObstacleMethods, ConnectorMethods):
    """Solids and cloth with pins, loads, obstacles and connectors. SI units.

    Args:
        gravity: Acceleration (3,) [m/s²].
        quasistatic: True for equilibria without inertia, False for a motion.
        dt: Time between frames [s].
        frames: Number of frames of a simulation; frame i is at time i dt.
        substeps: Integration steps per frame, of size Δt = dt/substeps.
        damping: Fraction of every velocity that is lost in each of these steps, in [0, 1): v = (1 - damping)
            Δx/Δt.
        gravity_ramp: Fraction of gravity over time.
        contact: Contact between and within bodies: "none", "weak", "barrier", "grid", or a `Contact` with
            options.
        integrator: "backward_euler", or second-order "bdf2" or "trapezoidal".
        initial_guess: Initial guess of solvers in a step: "adaptive", "inertial" (x + Δt v + Δt² g) or
            "coast" (x + Δt v).

    Raises:
        SceneError: A value is invalid.
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
    varying_parameters: list[VaryingParameter] = field(default_factory=list, init=False)
    inflations: list[Inflation | Cavity] = field(default_factory=list, init=False)
    follower_tractions: list[FollowingTraction] = field(default_factory=list, init=False)
    winds: list[Wind] = field(default_factory=list, init=False)
    user_terms: list[TermMaker] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Validate all settings; solves repeat this validation because settings may change.

        Raises:
            SceneError: A setting is invalid.
        """
        self.gravity = vector(self.gravity, "gravity [m/s²]")
        self.dt = number(self.dt, "dt [s]", above=0)
        if not isinstance(self.quasistatic, bool):
            raise SceneError(f"quasistatic must be True or False, got {format_value(self.quasistatic)}.")
        self.frames = count(self.frames, "frames")
        self.substeps = count(self.substeps, "substeps")
        self.damping = part(self.damping, "damping")
        self.gravity_ramp = check_ramp(self.gravity_ramp)
        self.contact = contact_of(self.contact)
        chosen(self.integrator, "integrator", ("backward_euler", "bdf2", "trapezoidal"))
        chosen(self.initial_guess, "initial_guess", ("adaptive", "inertial", "coast"))

    def __getstate__(self) -> dict[str, Any]:
        user_terms = [picklable(make, "a custom term", "function") for make in self.user_terms]
        ramp = picklable(self.gravity_ramp, "gravity", "ramp")
        return self.__dict__ | {"gravity_ramp": ramp, "user_terms": user_terms}

    def add_solid(
        self,
        mesh: TetMesh,
        material: Any,
        density: float | None = None,
        name: str | None = None,
        render: TriMesh | None = None,
        *,
        velocity: Vector = (0.0, 0.0, 0.0),
        angular_velocity: Vector = (0.0, 0.0, 0.0),
        regions: Sequence[Region] = (),
        viscosity: Viscosity | Sequence[Viscosity] = (),
    ) -> Body:
        """Add a solid.

        Args:
            mesh: Tetrahedral mesh at rest.
            material: Material such as `Corotated(young=1e5, poisson=0.3)`, or a preset such as
                `supple.materials.preset("ecoflex_0030")`.
            density: Mass density [kg/m³]. Default: that of the preset, 1000 for other materials.
            name: Name in messages and output. Default: "solid0", "solid1", ...
            render: Detailed surface, such as `load_surface("armadillo.obj")`, that follows the mesh in
                pictures and exports.
            velocity: Initial velocity of the center of mass [m/s], for dynamic scenes.
            angular_velocity: Initial angular velocity about the center of mass [rad/s], right-handed about
                the direction of this vector.
            regions: Tetrahedra with other materials, such as `Region("bone", {"region": 3}, StVK(...))`.
            viscosity: `KelvinVoigt(...)`, `Maxwell(...)`, `Rayleigh(...)` or a list of them, which resist the
                rate of strain in dynamic scenes.

        Returns:
            The body.

        Raises:
            SceneError: An argument is invalid.
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
        """Add cloth: surface mesh with membrane material or fabric.

        Args:
            mesh: Initial surface, such as `sheet(...)`.
            membrane: Membrane material, such as `StVK(young=1e5, poisson=0.3)`, or a preset; or a fabric,
                such as `supple.load_fabric(...)`, which includes density and bending. The threads of a fabric
                lie along x and y of the rest shape.
            bending: Bending model, None for no resistance to bending.
            density: Mass density [kg/m²]. Default: 0.2, or the density of the fabric.
            thickness: Thickness [m], a factor of the material's energy.
            name: Name in messages and output. Default: "cloth0", "cloth1", ...
            rest: Rest shape, if it differs from `mesh`: another `TriMesh` with the same triangles; "uv" for
                the uv coordinates of the mesh in meters; or coordinates [m], (n, 2) or (n, 3) of the
                vertices, such as a flat pattern, or (m, 3, 2) or (m, 3, 3) of the triangle corners.
            render: Detailed surface in pictures and exports, as for solids.
            velocity: Initial velocity of the center of mass [m/s], for dynamic scenes.
            angular_velocity: Initial angular velocity about the center of mass [rad/s].
            regions: Triangles with other membranes, such as `Region("seam", lambda X: X[:, 0] < 0.01,
                StVK(...))`; thickness and bending are those of the cloth.

        Returns:
            The cloth.

        Raises:
            SceneError: Arguments are invalid; the message lists all of them.
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
        """Prescribe vertex positions (Dirichlet condition), optionally along selected directions only.

        A vertex may be in several pins, whose constraints combine. If two pins constrain a vertex along the
        same direction, their motions must agree in that direction.

        Args:
            vertices: Selected vertices, or a body.
            motion: Prescribed motion such as `Rotate(...) + Translate(...)`, or any function (X (k, 3), t) ->
                (k, 3). Default: the vertices stay at rest.
            axes: The only constrained coordinates, as "x" or "yz" or ("y", "z"). The constraint is n·x =
                n·motion(X, t) for each constrained direction n, which does not rotate with the motion.
            along: The only free direction, (3,) or one per vertex, as for a rail.
            normal: The only constrained direction, (3,) or one per vertex, as for a roller or a symmetry
                plane.
            name: Name of the reaction force, see `evaluate`. Default: "pin0", "pin1", ...

        Raises:
            SceneError: An argument is invalid, or vertices are already pinned with another motion.
        """
        chosen = self._vertices(vertices)
        if motion is not None and not callable(motion):
            raise SceneError(
                f"A motion must be for example Translate((x, y, z)); got {format_value(motion)}."
            )
        directions = constrained_directions(axes, along, normal, len(chosen))
        for pin in self.pins:
            wholly = directions is None and pin.directions is None
            if wholly and pin.on.body is chosen.body and pin.motion != motion:
                twice = np.intersect1d(pin.on.indices, chosen.indices)
                if len(twice):
                    raise SceneError(
                        f"{len(twice)} vertices of {chosen.body.name!r} are already pinned with "
                        f"another motion, for example vertex {twice[0]} at "
                        f"{chosen.body.points[twice[0]].tolist()}; select them only once."
                    )
        name = f"pin{len(self.pins)}" if name is None else check_name(name, "pin")
        if name in (pin.name for pin in self.pins):
            raise SceneError(f"There is already a pin named {name!r}; names must differ.")
        self.pins.append(Pin(chosen, motion, directions, name))

    def vary(self, body: Body | Portion, parameter: str, ramp: AnyRamp) -> None:
        """Vary a material parameter in time.

        Equilibria use the final value.

        Args:
            body: A body, or a region of it, `body.region(...)`.
            parameter: A scalar that the material declares, uniform or per element; directions and tensors
                cannot vary.
            ramp: Factor of the material's value over time, such as `Ramp(times=(0, 1), fractions=(0.5, 1))`.

        Raises:
            SceneError: The parameter cannot vary, varies already, or leaves its bounds.
        """
        if not isinstance(body, Portion):
            body = self._vertices(body).body
        self._vertices(body.body if isinstance(body, Portion) else body)
        if any(
            each.body.name == body.name and each.parameter == parameter for each in self.varying_parameters
        ):
            raise SceneError(f"{parameter} of {body.name!r} already has a ramp; give only one.")
        self.varying_parameters.append(vary_parameter(body, parameter, ramp))

    def __repr__(self) -> str:
        vertices = self.bodies[-1].vertices.stop if self.bodies else 0
        kind = "quasistatic" if self.quasistatic else "dynamic"
        names = comma_list(body.name for body in self.bodies[:3]) or "none"
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
                f"got {format_value(chosen)}."
            )
        if not any(chosen.body is body for body in self.bodies):
            names = comma_list(body.name for body in self.bodies)
            raise SceneError(
                f"Body {chosen.body.name!r} belongs to another scene; this one has {names or 'none'}."
            )
        return chosen


def scene_of(given: Any) -> Scene:
    """Return a scene, unwrapping results of `load_scene`."""
    scene = getattr(given, "scene", given)
    if isinstance(scene, Scene):
        return scene
    hint = (
        " read the file first, with supple.load_scene(...);" if isinstance(given, str | os.PathLike) else ""
    )
    raise TypeError(
        "this call needs a scene: a supple.Scene() with bodies, or the result of "
        f"supple.load_scene(...);{hint} got {format_value(given)}"
    )
