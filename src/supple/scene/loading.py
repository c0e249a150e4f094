"""What loads a scene can be given: forces, tractions, pressure and wind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.scene.bodies import Body, VertexSet
from supple.scene.cavities import ATMOSPHERE, Cavity, cavity
from supple.scene.checks import Vector, array, shown
from supple.scene.errors import SceneError
from supple.scene.loads import (
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
from supple.scene.ramps import AnyRamp, check_ramp
from supple.scene.regions import Portion
from supple.scene.turning import FollowingTraction


class Loaded(ABC):
    """The part of a scene that takes loads."""

    bodies: list[Body]
    loads: list[Load]
    inflations: list[Inflation | Cavity]
    turning: list[FollowingTraction]
    winds: list[Wind]

    @abstractmethod
    def _vertices(self, chosen: VertexSet | Body) -> VertexSet:
        """Those that are chosen, of a body of this scene."""

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

    def add_body_force(self, body: Body | Portion, force: Any, ramp: AnyRamp | None = None) -> None:
        """A force per volume at rest [N/m³], of cloth per area [N/m²], on a body or one of its regions: (3,),
        one for each of its cells (m, 3), the name of a field of its mesh, or a function of the centres (m, 3)
        of cells at rest; ramp as in `add_force`. It stays as the body deforms, as weight does."""
        if not isinstance(body, Body | Portion):
            raise SceneError(
                f"A force per volume acts on a whole body or a region of one, body.region(name); got "
                f"{shown(body)}. On some of its vertices add_force acts."
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
        """A traction [Pa] on all surface triangles whose three vertices are chosen: (3,), or a number for one
        along their outer normals at rest; ramp as in `add_force`.

        A dead load: its direction and its total, traction × area at rest, do not change as the body deforms.
        following: it turns with every triangle and acts on the area that this has, as wind and water do; the
        surface may be open, and descent, pbng and newton can treat it.
        """
        chosen = self._vertices(vertices)
        acting = check_ramp(ramp)
        if not isinstance(following, bool):
            raise SceneError(f"following must be True or False, got {shown(following)}.")
        triangles, pascals = surface_of(chosen), traction_on(chosen, traction)
        if following:
            self.turning.append(FollowingTraction(chosen.body, triangles, pascals, acting))
        else:
            self.loads.append(Load(chosen, tractions(chosen, pascals), acting))

    def add_pressure(self, vertices: VertexSet | Body, pressure: float, ramp: AnyRamp | None = None) -> None:
        """A pressure [Pa] that pushes outwards on all surface triangles whose three vertices are chosen,
        wherever they turn, as air inside does: the energy -p V; ramp as in `add_force`.

        The surface must be closed, such as that of a `sphere`, a `pillow` or a solid, or pinned along its
        edges; what is outside is told by the order of vertices, counter-clockwise seen from there.
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
        """A closed chamber: its walls are all surface triangles whose three vertices are chosen, and air
        inside pushes them apart, whichever way they turn.

        pressure [Pa] above that outside; ramp as in `add_force`. sealed: what there is of gas stays inside,
        so that (p + ambient) V^exponent keeps the value that it has with this pressure and the volume at
        rest: exponent 1 for slow changes, 1.4 for quick ones of air; the ramp pumps it in. ambient: the
        pressure outside [Pa].
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
        """Air that moves with a velocity (3,) [m/s] and pulls at the surfaces of bodies, all of those that
        there are unless given: f = ½ ρ A ((C_D - C_L)(w · n) w + C_L |w|² n) on each triangle, where w is the
        wind relative to it and n its normal on the lee side. drag, lift: C_D and C_L; density: ρ of the air
        [kg/m³]. For dynamic scenes: it is taken where a step begins and stays until its end.
        """
        chosen = [self._vertices(body).body for body in bodies] or self.bodies
        self.winds.append(wind(chosen, velocity, drag, lift, density, ramp))
