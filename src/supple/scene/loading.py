"""What loads a scene can be given: forces, tractions, pressure and wind."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from supple.scene.bodies import Body, VertexSet
from supple.scene.cavities import ATMOSPHERE, Cavity, cavity
from supple.scene.checks import Vector, array, vector
from supple.scene.errors import SceneError
from supple.scene.loads import Inflation, Load, Wind, inflation, tractions, wind
from supple.scene.ramps import AnyRamp, check_ramp


class Loaded(ABC):
    """The part of a scene that takes loads."""

    bodies: list[Body]
    loads: list[Load]
    inflations: list[Inflation | Cavity]
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

    def add_traction(
        self, vertices: VertexSet | Body, traction: ArrayLike, ramp: AnyRamp | None = None
    ) -> None:
        """A traction (3,) [Pa] on all surface triangles whose three vertices are chosen; ramp as in
        `add_force`.

        A dead load: its direction and its total, traction × area at rest, do not change as the body deforms.
        """
        chosen = self._vertices(vertices)
        pascals = np.array(vector(traction, "traction [Pa]"))
        self.loads.append(Load(chosen, tractions(chosen, pascals), check_ramp(ramp)))

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
