"""Loads: forces on vertices, pressures inside surfaces, and wind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supple.meshes import Mesh
from supple.meshes.edges import Edges
from supple.meshes.measures import area_vectors
from supple.model.dynamic_term import DynamicTerm
from supple.scene.bodies import Body, VertexSet
from supple.scene.errors import SceneError
from supple.scene.loads.ramps import AnyRamp, Fraction, check_ramp, fraction_at
from supple.scene.pickling import picklable
from supple.scene.regions import Portion
from supple.scene.value_checks import Vector, array, comma_list, number, vector
from supple.terms import Pressure, Term


@dataclass(frozen=True, eq=False)
class Load:
    """Forces on vertices.

    Attributes:
        on: Loaded vertices.
        force: (k, 3) forces [N].
        ramp: Fraction of the forces over time, None for constant forces.
        per_volume: (m, 3) force density in each cell of the body [N/m³], for forces that depend on the
            volume.
    """

    on: VertexSet
    force: np.ndarray
    ramp: AnyRamp | None = None
    per_volume: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"ramp": picklable(self.ramp, f"a load on {self.on.body.name!r}", "ramp")}


def surface_of(chosen: VertexSet) -> np.ndarray:
    """Return surface triangles (k, 3) with three selected vertices."""
    surface = chosen.body.mesh.surface
    triangles = surface[np.isin(surface, chosen.indices).all(axis=1)]
    if len(triangles) == 0:
        raise SceneError(
            f"No surface triangle of {chosen.body.name!r} has its three vertices among the "
            f"{len(chosen)} selected ones; select all vertices of a piece of the surface."
        )
    return triangles


def traction_on(chosen: VertexSet, given: Any) -> np.ndarray:
    """Return tractions (t, 3) [Pa] on the triangles of the selected vertices.

    Args:
        chosen: Selected vertices.
        given: A vector (3,), or a number along the normals of the triangles.
    """
    normals = area_vectors(chosen.body.points, surface_of(chosen))
    if np.ndim(given) == 0:
        pascals = number(given, "traction [Pa]")
        return pascals * normals / np.linalg.norm(normals, axis=1, keepdims=True)
    return np.tile(vector(given, "traction [Pa]"), (len(normals), 1))


def tractions(chosen: VertexSet, pascals: np.ndarray) -> np.ndarray:
    """Return forces (k, 3) [N] on the selected vertices for tractions (t, 3) [Pa] on their rest triangles."""
    mesh: Mesh = chosen.body.mesh
    triangles = surface_of(chosen)
    third = np.linalg.norm(area_vectors(mesh.points, triangles), axis=1, keepdims=True) / 3 * pascals
    total = np.zeros((mesh.n_vertices, 3))
    for corner in triangles.T:
        np.add.at(total, corner, third)
    return total[chosen.indices]


def force_densities(part: Body | Portion, given: Any) -> np.ndarray:
    """Return rest force densities (m, 3) of all body cells, 0 outside a region.

    Args:
        part: A body or one of its regions with k cells.
        given: Force per volume [N/m³], or per area of cloth [N/m²]: a vector (3,), vectors (k, 3), the name
            of a field of the mesh, or a function of the cell centroids (k, 3) [m].

    Raises:
        SceneError: The values have another shape.
    """
    body, cells = (part.body, part.numbers) if isinstance(part, Portion) else (part, np.arange(part.n_cells))
    mesh: Mesh = body.mesh
    if isinstance(given, str):
        given = mesh.field(given)[cells]
    elif callable(given):
        given = given(mesh.points[mesh.cells[cells]].mean(axis=1))
    density = array(given, "force per volume [N/m³]")
    if density.shape == (body.n_cells, 3):
        density = density[cells]
    if density.shape not in ((3,), (len(cells), 3)):
        raise SceneError(
            f"A force per volume of {part.name!r} must be one vector (3,), or one for each of its "
            f"{len(cells)} cells, ({len(cells)}, 3); got shape {density.shape}."
        )
    every = np.zeros((body.n_cells, 3))
    every[cells] = density
    return every


def body_forces(body: Body, per_volume: np.ndarray) -> np.ndarray:
    """Convert cell force densities (m, 3) [N/m³] to vertex forces (n, 3) [N] of a body."""
    corners = body.mesh.cells
    share = body.rest_measures[:, None] * per_volume / corners.shape[1]
    total = np.zeros((body.mesh.n_vertices, 3))
    for corner in corners.T:
        np.add.at(total, corner, share)
    return total


def volume_forces(loads: Sequence[Load]) -> tuple[tuple[str, Fraction, np.ndarray], ...]:
    """List loads per volume for `Model.volume_forces`."""
    return tuple(
        (load.on.body.name, Fraction(load.ramp), load.per_volume)
        for load in loads
        if load.per_volume is not None
    )


@dataclass(frozen=True, eq=False)
class Inflation:
    """A pressure that acts outwards on surface triangles, with the energy -p V.

    Attributes:
        body: Loaded body.
        triangles: (k, 3) triangles of the body.
        pressure: Pressure [Pa].
        ramp: Fraction of the pressure over time, None for a constant pressure.
    """

    body: Body
    triangles: np.ndarray
    pressure: float
    ramp: AnyRamp | None = None

    def term(self, positions: np.ndarray) -> Pressure:
        """Build the energy term of the pressure.

        Args:
            positions: (n, 3) positions of all vertices of the scene at zero displacement [m].

        Returns:
            The energy term.
        """
        count = len(self.triangles)
        return Pressure(
            (self.triangles + self.body.first).astype(np.int32),
            np.full(count, self.pressure),
            positions,
            self.body.points[np.unique(self.triangles)].mean(axis=0),
            None if self.ramp is None else count,
        )

    def dynamic_term(self, index: int) -> tuple[int, PressureUpdate] | None:
        """Return the update rule of the term if the pressure varies.

        Args:
            index: Index of the load's term in the model.

        Returns:
            The index and the update rule; None for a constant pressure.
        """
        return None if self.ramp is None else (index, PressureUpdate(index, self.pressure, self.ramp))

    def refuse_open(self, pinned: np.ndarray) -> None:
        """Refuse free vertices on open edges: pressure energy requires closed surfaces or pinned edges.

        Args:
            pinned: Ids of the pinned vertices of the scene.

        Raises:
            SceneError: A vertex of an open edge is free.
        """
        edges = Edges(self.triangles)
        free = np.setdiff1d(edges.ends[edges.counts == 1] + self.body.first, pinned)
        if len(free):
            raise SceneError(
                f"The pressure on {self.body.name!r} needs a closed surface, or one whose edges are "
                f"pinned: {len(free)} vertices of its open edges are free, for example vertex "
                f"{free[0] - self.body.first}. Close it, pin them, or use add_traction(..., "
                "pressure, following=True), whose surface may be open.",
                at="pressure",
            )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"ramp": picklable(self.ramp, f"the pressure on {self.body.name!r}", "ramp")}


@dataclass(frozen=True, eq=False)
class PressureUpdate(DynamicTerm):
    """Updates a pressure from a ramp at the start of each step."""

    index: int
    pressure: float
    ramp: AnyRamp

    def update(self, problem: Any, time: float) -> Term | None:
        term = problem.model.terms[self.index]
        now = self.pressure * fraction_at(self.ramp, time)
        return (
            None if (term.pressure == now).all() else replace(term, pressure=np.full_like(term.pressure, now))
        )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"ramp": picklable(self.ramp, "a pressure", "ramp")}


@dataclass(frozen=True, eq=False)
class Wind:
    """Wind: air with uniform velocity acting on body surfaces [GPBD section 5.4].

    The force on each triangle is f = ½ ρ A ((C_D - C_L)(w · n) w + C_L |w|² n), a third on each of its
    vertices, with the wind w relative to the triangle and its normal n on the lee side. It has no energy:
    forces are evaluated at the start of each step and constant until its end.

    Attributes:
        bodies: Bodies in the wind.
        velocity: Velocity of the air (3,) [m/s].
        drag: C_D.
        lift: C_L.
        density: Density ρ of the air [kg/m³].
        ramp: Fraction of the velocity over time.
    """

    bodies: tuple[Body, ...]
    velocity: Vector
    drag: float
    lift: float
    density: float
    ramp: AnyRamp | None = None

    def forces(self, x: np.ndarray, v: np.ndarray, time: float) -> np.ndarray:
        """Return wind forces (n, 3) [N] on all vertices of a scene.

        Args:
            x: (n, 3) positions [m].
            v: (n, 3) velocities [m/s].
            time: Time [s], for the ramp.

        Returns:
            (n, 3) forces [N].
        """
        total = np.zeros_like(x)
        wind = fraction_at(self.ramp, time) * np.array(self.velocity)
        for body in self.bodies:
            triangles = body.mesh.surface + body.first
            w = wind - v[triangles].mean(axis=1)
            n = area_vectors(x, triangles)
            area = np.linalg.norm(n, axis=1, keepdims=True)
            n = n / np.maximum(area, 1e-300)
            along = np.einsum("ti,ti->t", w, n)[:, None]
            n, along = np.where(along < 0, -n, n), np.abs(along)
            wind_pressure = (self.drag - self.lift) * along * w + self.lift * (w * w).sum(
                axis=1, keepdims=True
            ) * n
            third = 0.5 * self.density * area * wind_pressure / 3
            for corner in triangles.T:
                np.add.at(total, corner, third)
        return total

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"ramp": picklable(self.ramp, "the wind", "ramp")}


def inflation(chosen: VertexSet, pressure: Any, ramp: Any) -> Inflation:
    """Build the pressure that `Scene.add_pressure` adds."""
    pascals = number(pressure, "pressure [Pa]")
    return Inflation(chosen.body, surface_of(chosen), pascals, check_ramp(ramp))


def wind(bodies: Any, velocity: Any, drag: Any, lift: Any, density: Any, ramp: Any) -> Wind:
    """Build the wind that `Scene.add_wind` adds."""
    if not bodies:
        raise SceneError("The scene has no bodies for the wind to act on; add them first.")
    return Wind(
        tuple(bodies),
        vector(velocity, "velocity [m/s] of the wind"),
        number(drag, "drag of the wind", at_least=0),
        number(lift, "lift of the wind", at_least=0),
        number(density, "density [kg/m³] of the air", above=0),
        check_ramp(ramp),
    )


def refuse_still(winds: list[Wind]) -> None:
    """Refuse wind in quasistatic scenes, since wind forces depend on velocity and have no energy."""
    if winds:
        names = comma_list(body.name for body in winds[0].bodies)
        raise SceneError(
            f"Wind on {names} is not supported in equilibria; make the scene dynamic with "
            "quasistatic=False, and simulate it, with damping, until it is at rest.",
            at="wind[0]",
        )
