"""Methods of a scene that add loads: forces, tractions, pressures, cavities and wind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.scene.bodies import Body, VertexSet
from supple.scene.errors import SceneError
from supple.scene.loads.cavities import ATMOSPHERE, Cavity, cavity
from supple.scene.loads.follower_tractions import FollowingTraction
from supple.scene.loads.forces import (
    Inflation,
    Load,
    Wind,
    body_forces,
    force_densities,
    inflation,
    surface_of,
    traction_on,
    tractions,
    wind,
)
from supple.scene.loads.ramps import AnyRamp, check_ramp
from supple.scene.regions import Portion
from supple.scene.value_checks import Vector, array, format_value


class LoadMethods(ABC):
    """Base class of `Scene` with the methods that add loads."""

    bodies: list[Body]
    loads: list[Load]
    inflations: list[Inflation | Cavity]
    follower_tractions: list[FollowingTraction]
    winds: list[Wind]

    @abstractmethod
    def _vertices(self, chosen: VertexSet | Body) -> VertexSet:
        """Return the selected vertices; refuse bodies of other scenes."""

    def add_force(self, vertices: VertexSet | Body, force: ArrayLike, ramp: AnyRamp | None = None) -> None:
        """Add a force on vertices.

        Args:
            vertices: Selected vertices, or a body.
            force: Force [N]: a total (3,), shared equally by the vertices, or (k, 3) per vertex.
            ramp: Fraction of the force over time, such as `Ramp(times=(0, 1), fractions=(0, 1))` or any
                function of the time [s]; constant by default. Equilibria use the final value.

        Raises:
            SceneError: An argument is invalid.
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

    def add_body_force(self, body: Body | Portion, force: Any, ramp: AnyRamp | None = None) -> None:
        """Add a force per rest volume (solids) or rest area (cloth).

        This is a dead load: like weight, it does not change as the body deforms.

        Args:
            body: A body or one of its regions.
            force: Force per volume [N/m³], or per area of cloth [N/m²]: one vector (3,), one per cell (m, 3),
                the name of a field of the mesh, or a function of the cell centroids (m, 3) at rest.
            ramp: Fraction of the force over time, as in `add_force`.

        Raises:
            SceneError: An argument is invalid.
        """
        if not isinstance(body, Body | Portion):
            raise SceneError(
                "A force per volume needs a body, or a region of one, body.region(name); got "
                f"{format_value(body)}. Use add_force for selected vertices."
            )
        chosen = self._vertices(body.body if isinstance(body, Portion) else body).body
        per_volume = force_densities(body, force)
        self.loads.append(Load(chosen.all, body_forces(chosen, per_volume), check_ramp(ramp), per_volume))

    def add_traction(
        self,
        vertices: VertexSet | Body,
        traction: ArrayLike,
        ramp: AnyRamp | None = None,
        *,
        following: bool = False,
    ) -> None:
        """Add a traction on surface triangles with three selected vertices.

        By default this is a dead load: its direction and its total, traction × rest area, do not change as
        the body deforms.

        Args:
            vertices: Selected vertices, or a body.
            traction: Traction [Pa]: a vector (3,), or a number along the outer normals at rest.
            ramp: Fraction of the traction over time, as in `add_force`.
            following: True for a follower load, such as wind or water pressure: it rotates with each triangle
                and acts on the current area. The surface may be open. Supported by the solvers hybrid, pbng
                and newton.

        Raises:
            SceneError: An argument is invalid.
        """
        chosen = self._vertices(vertices)
        acting = check_ramp(ramp)
        if not isinstance(following, bool):
            raise SceneError(f"following must be True or False, got {format_value(following)}.")
        triangles, pascals = surface_of(chosen), traction_on(chosen, traction)
        if following:
            self.follower_tractions.append(FollowingTraction(chosen.body, triangles, pascals, acting))
        else:
            self.loads.append(Load(chosen, tractions(chosen, pascals), acting))

    def add_pressure(self, vertices: VertexSet | Body, pressure: float, ramp: AnyRamp | None = None) -> None:
        """Add a pressure on surface triangles with three selected vertices.

        The pressure acts outwards along the current normals, like air inside the surface; its energy is -p V.
        The surface must be closed, such as a `sphere`, a `pillow` or a solid, or pinned along its edges. Seen
        from outside, the vertices of its triangles are counter-clockwise.

        Args:
            vertices: Selected vertices, or a body.
            pressure: Pressure [Pa].
            ramp: Fraction of the pressure over time, as in `add_force`.

        Raises:
            SceneError: An argument is invalid, or no surface triangle is selected.
        """
        self.inflations.append(inflation(self._vertices(vertices), pressure, ramp))

    def add_cavity(
        self,
        vertices: VertexSet | Body,
        pressure: float = 0.0,
        ramp: AnyRamp | None = None,
        *,
        sealed: bool = False,
        ambient: float = ATMOSPHERE,
        exponent: float = 1.0,
    ) -> None:
        """Add a closed chamber whose walls are the surface triangles with three selected vertices.

        Gas inside pushes the walls apart along their current normals.

        Args:
            vertices: Selected vertices, or a body.
            pressure: Pressure above `ambient` [Pa].
            ramp: Fraction of the pressure over time, as in `add_force`; it pumps sealed gas in.
            sealed: True if no gas leaves the chamber: (p + ambient) V^exponent keeps its value for this
                pressure and the rest volume.
            ambient: Pressure outside [Pa].
            exponent: 1 for slow changes, 1.4 for fast changes of air.

        Raises:
            SceneError: An argument is invalid, or the walls are not closed.
        """
        self.inflations.append(cavity(self._vertices(vertices), pressure, ramp, sealed, ambient, exponent))

    def add_wind(
        self,
        velocity: Vector,
        *bodies: Body,
        drag: float = 1.0,
        lift: float = 0.5,
        density: float = 1.2,
        ramp: AnyRamp | None = None,
    ) -> None:
        """Add wind: air with uniform velocity acting on body surfaces.

        The force on each triangle is f = ½ ρ A ((C_D - C_L)(w · n) w + C_L |w|² n), with the wind w relative
        to the triangle and its normal n on the lee side. It is evaluated at the start of each step and
        constant until its end. For dynamic scenes only.

        Args:
            velocity: Velocity of the air (3,) [m/s].
            bodies: Bodies in the wind; by default all bodies of the scene so far.
            drag: C_D.
            lift: C_L.
            density: Density ρ of the air [kg/m³].
            ramp: Fraction of the velocity over time, as in `add_force`.

        Raises:
            SceneError: An argument is invalid, or the scene has no bodies.
        """
        chosen = [self._vertices(body).body for body in bodies] or self.bodies
        self.winds.append(wind(chosen, velocity, drag, lift, density, ramp))
