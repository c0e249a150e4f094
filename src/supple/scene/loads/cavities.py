"""Body chambers with prescribed gas pressure or a sealed amount of gas."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supple.meshes.edges import Edges
from supple.meshes.measures import areas
from supple.model.dynamic_term import DynamicTerm
from supple.scene.bodies import Body, VertexSet
from supple.scene.errors import SceneError
from supple.scene.loads.forces import PressureUpdate, surface_of
from supple.scene.loads.ramps import AnyRamp, check_ramp, fraction_at
from supple.scene.pickling import picklable
from supple.scene.value_checks import format_value, number
from supple.terms import Pressure, SealedGas, Term, volume_within

MIN_RELATIVE_VOLUME = 1e-9
"""Volume below which a chamber counts as empty, relative to the ball with the same surface area."""

ATMOSPHERE = 101325.0
"""Standard atmospheric pressure [Pa]."""


@dataclass(frozen=True, eq=False)
class Cavity:
    """Chamber with gas pressure on its walls.

    Attributes:
        body: Body with the chamber.
        triangles: (k, 3) walls, with normals out of the chamber.
        pressure: Pressure above `ambient` [Pa].
        ramp: Fraction of the pressure over time; for sealed gas, of its pressure at the rest volume.
        sealed: True if (p + p₀) V^γ is conserved.
        ambient: Pressure outside, p₀ [Pa].
        exponent: γ.
    """

    body: Body
    triangles: np.ndarray
    pressure: float
    ramp: AnyRamp | None
    sealed: bool
    ambient: float
    exponent: float

    @property
    def volume(self) -> float:
        """Volume at rest [m³]."""
        return volume_within(self.body.points, self.triangles)

    def term(self, positions: np.ndarray) -> Pressure:
        """Build the energy term of the gas pressure.

        Args:
            positions: (n, 3) positions of all vertices of the scene at zero displacement [m].

        Returns:
            The energy term.
        """
        triangles = (self.triangles + self.body.first).astype(np.int32)
        pressure = np.full(len(triangles), self.pressure)
        middle = self.body.points[np.unique(self.triangles)].mean(axis=0)
        if not self.sealed:
            return Pressure(
                triangles, pressure, positions, middle, None if self.ramp is None else len(triangles)
            )
        amount = self.ambient + self.pressure, self.volume, self.ambient, self.exponent
        return SealedGas(triangles, pressure, positions, middle, None, *amount)

    def dynamic_term(self, index: int) -> tuple[int, Any] | None:
        """Return the update rule of the term if the pressure varies.

        Args:
            index: Index of the load's term in the model.

        Returns:
            The index and the update rule; None for a constant pressure.
        """
        if self.sealed:
            return index, GasUpdate(index, self)
        return None if self.ramp is None else (index, PressureUpdate(index, self.pressure, self.ramp))

    def refuse_open(self, pinned: np.ndarray) -> None:
        """Accept all walls, since `cavity` refuses open walls already.

        Args:
            pinned: Ids of the pinned vertices of the scene.
        """

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"ramp": picklable(self.ramp, f"a cavity of {self.body.name!r}", "ramp")}


@dataclass(frozen=True, eq=False)
class GasUpdate(DynamicTerm):
    """Updates the amount of chamber gas from a ramp at the start of each step."""

    index: int
    cavity: Cavity

    def update(self, problem: Any, time: float) -> Term | None:
        cavity, gas = self.cavity, problem.model.terms[self.index]
        absolute = cavity.ambient + cavity.pressure * fraction_at(cavity.ramp, time)
        gas = replace(gas, absolute=max(absolute, 0.0))
        return gas.at_volume(gas.volume_at(problem.positions))


def cavity(chosen: VertexSet, pressure: Any, ramp: Any, sealed: Any, ambient: Any, exponent: Any) -> Cavity:
    """Build the cavity that `Scene.add_cavity` adds."""
    triangles, name = surface_of(chosen), chosen.body.name
    if not isinstance(sealed, bool):
        raise SceneError(f"sealed must be True or False, got {format_value(sealed)}.")
    edges = Edges(triangles)
    open_edges = edges.ends[edges.counts == 1]
    if len(open_edges):
        raise SceneError(
            f"The walls of a cavity of {name!r} must be closed, and {len(open_edges)} edges are "
            f"open, for example between vertices {open_edges[0][0]} and {open_edges[0][1]}; select "
            "all vertices of the chamber's walls, and none of the outer surface."
        )
    if volume_within(chosen.body.points, triangles) < 0:
        triangles = triangles[:, ::-1]
    elif chosen.body.mesh.cells.shape[1] == 4:
        raise SceneError(
            f"The selection of {name!r} encloses the body itself, not a chamber in it; select only "
            "the vertices of the chamber's walls. add_pressure and add_traction act on outer "
            "surfaces."
        )
    outside = number(ambient, "ambient [Pa]", at_least=0)
    pascals = number(pressure, "pressure [Pa] of a cavity")
    if sealed and not outside + pascals > 0:
        raise SceneError(
            f"Gas in a cavity of {name!r} has an absolute pressure of {outside + pascals:g} Pa, ambient and "
            "pressure together; it must be positive."
        )
    if sealed and chosen.body.kind == "cloth":
        _refuse_flat(chosen.body, triangles)
    return Cavity(
        chosen.body,
        triangles,
        pascals,
        check_ramp(ramp),
        sealed,
        outside,
        number(exponent, "exponent of a gas", above=0),
    )


def _refuse_flat(body: Body, triangles: np.ndarray) -> None:
    """Refuse sealed gas in flat chambers, since pressure without volume defines no amount of gas."""
    volume = abs(volume_within(body.points, triangles))
    ball = float(areas(body.points, triangles).sum()) ** 1.5 / (6 * math.sqrt(math.pi))
    if volume <= MIN_RELATIVE_VOLUME * ball:
        raise SceneError(
            f"The chamber of {body.name!r} has a volume of {volume:.3g} m³ at rest, so the amount of "
            "gas cannot be computed. Start with walls apart, or use a constant pressure "
            "(sealed=False)."
        )
