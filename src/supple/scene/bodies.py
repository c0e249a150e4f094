"""Scene bodies and vertex sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from supple.config.backend import PRECISIONS
from supple.meshes import Mesh
from supple.meshes.skinning import Embedding, Part
from supple.scene.errors import SceneError
from supple.scene.regions import Portion, Region, densities, portions_of, region_named
from supple.scene.value_checks import Vector, format_value
from supple.scene.viscosity import Viscosity
from supple.terms import Term, TetElasticity

Predicate = Callable[[np.ndarray], Any]


@dataclass(frozen=True, eq=False)
class Body:
    """Solid of a scene: mesh, material and density. Created by `Scene.add_solid`.

    The subclass `Cloth` is a surface body.

    Attributes:
        mesh: Mesh at rest.
        material: Material of the cells outside all regions.
        density: Mass density [kg/m³].
        name: Name in messages and output.
        first: Number of its first vertex in the scene.
        skin: Detailed surface that is shown and exported in place of the boundary.
        velocity: Initial velocity of the center of mass [m/s].
        angular_velocity: Initial angular velocity about the center of mass [rad/s].
        regions: Cells with other materials.
        viscosity: Viscosities and damping.
    """

    mesh: Mesh
    material: Any
    density: float
    name: str
    first: int
    skin: Embedding | None = None
    velocity: Vector = (0.0, 0.0, 0.0)
    angular_velocity: Vector = (0.0, 0.0, 0.0)
    regions: tuple[Region, ...] = field(default=(), kw_only=True)
    viscosity: tuple[Viscosity, ...] = field(default=(), kw_only=True)

    kind: ClassVar[str] = "solid"
    """Word for this kind of body in messages and scene files."""

    precisions: ClassVar[tuple[str, ...]] = PRECISIONS
    """Supported working precisions."""

    @property
    def masses(self) -> np.ndarray:
        """(n,) lumped masses of the vertices [kg]."""
        return self.mesh.masses(densities(self.regions, self.density, self.n_cells))

    @property
    def drag(self) -> float:
        """α [1/s] of the force -α m v on each vertex."""
        return sum(each.drag for each in self.viscosity)

    @property
    def rest_measures(self) -> np.ndarray:
        """(m,) volumes [m³] of tetrahedra, or areas [m²] of triangles, in the rest shape."""
        return self.mesh.measures

    @property
    def volume(self) -> float:
        """Volume of the material at rest [m³]."""
        return float(self.rest_measures.sum())

    @property
    def n_cells(self) -> int:
        """Number of tetrahedra or triangles."""
        return self.mesh.n_cells

    @cached_property
    def parts(self) -> tuple[Body | Portion, ...]:
        """Sources of elasticity terms: the body, or its portions if materials differ."""
        return portions_of(self) if self.regions or self.viscosity else (self,)

    def region(self, name: str) -> Portion:
        """Return a named region, for example for `scene.vary(body.region("muscle"), ...)`.

        Args:
            name: Name of the region.

        Returns:
            The region.

        Raises:
            SceneError: The body has no region with this name.
        """
        return region_named(self, name)

    @property
    def cells(self) -> np.ndarray:
        """Tetrahedra (m, 4) or triangles (m, 3) as scene vertices."""
        return np.asarray(self.mesh.cells) + np.int32(self.first)

    @property
    def group(self) -> Any:
        """Key of the elasticity term; bodies with equal keys share a term."""
        return type(self), type(self.material)

    @staticmethod
    def elasticity(bodies: Sequence[Any], rest: np.ndarray, material: Any) -> Term:
        """Build the elasticity term of bodies with equal `group`.

        Args:
            bodies: Bodies or portions of bodies.
            rest: (n, 3) rest positions of all vertices of the scene [m].
            material: Merged material of the bodies.

        Returns:
            The energy term.
        """
        return TetElasticity.from_mesh(rest, np.concatenate([body.cells for body in bodies]), material)

    def extra_terms(self, rest: np.ndarray) -> tuple[Term, ...]:
        """Return energy terms in addition to elasticity; solids have none.

        Args:
            rest: (n, 3) rest positions of all vertices of the scene [m].

        Returns:
            Energy terms.
        """
        return ()

    @property
    def points(self) -> np.ndarray:
        """(n, 3) rest positions [m]."""
        return self.mesh.points

    @property
    def vertices(self) -> slice:
        """Vertex slice in scene arrays: `result.positions[body.vertices]`."""
        return slice(self.first, self.first + len(self.points))

    @property
    def moving(self) -> bool:
        """True for bodies with initial velocity."""
        return any(self.velocity) or any(self.angular_velocity)

    @property
    def velocities(self) -> np.ndarray:
        """Initial vertex velocities v + ω × (X - c) about the center of mass c, (n, 3) [m/s]."""
        mass = self.masses
        center = mass @ self.points / mass.sum()
        return np.array(self.velocity) + np.cross(np.array(self.angular_velocity), self.points - center)

    @property
    def all(self) -> VertexSet:
        """Set of all vertices."""
        return VertexSet(self, np.arange(len(self.points)))

    def is_like(self, other: Part) -> bool:
        """Compare bodies by name, vertex numbers and mesh.

        Args:
            other: Body or region.

        Returns:
            True for the same body, including copies returned by other processes.
        """
        return self is other or (
            (self.name, self.vertices) == (other.name, other.vertices)
            and np.array_equal(self.mesh.points, other.mesh.points)
            and np.array_equal(self.mesh.cells, other.mesh.cells)
        )

    def where(self, selection: Predicate | np.ndarray | list[int]) -> VertexSet:
        """Select vertices by a predicate, a mask or vertex numbers.

        Args:
            selection: A function of the rest points X (n, 3) [m] that returns a mask, such as `lambda X: X[:,
                0] <= 0`; a mask (n,) bool; or vertex numbers, which count from 0 within this body and keep
                their order.

        Returns:
            The selected vertices.

        Raises:
            SceneError: The selection is empty, repeats vertices, or is invalid.
        """
        chosen = np.asarray(selection(self.points) if callable(selection) else selection)
        n = len(self.points)
        if chosen.dtype == bool:
            if chosen.shape != (n,):
                raise SceneError(
                    f"A selection on body {self.name!r} must give one True or False for each of its {n} "
                    f"vertices, shape ({n},); got shape {chosen.shape}."
                )
            chosen = np.flatnonzero(chosen)
        if chosen.size == 0:
            raise SceneError(
                f"The selection on body {self.name!r} is empty; the body spans {self._bounds()}."
            )
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise SceneError(
                f"A selection on body {self.name!r} must be a function of the points that returns a mask, "
                f"a mask of bools, or a list of vertex numbers; got {format_value(selection)}"
                + (f", which returned {format_value(chosen)}." if callable(selection) else ".")
            )
        wrong = chosen[(chosen < 0) | (chosen >= n)]
        if len(wrong):
            raise SceneError(
                f"Body {self.name!r} has vertices 0 to {n - 1}; the selection names "
                f"{format_value(wrong.tolist())}."
            )
        values, counts = np.unique(chosen, return_counts=True)
        if np.any(counts > 1):
            raise SceneError(
                f"A selection on body {self.name!r} may name each vertex once; "
                f"it repeats {format_value(values[counts > 1].tolist())}."
            )
        return VertexSet(self, chosen.astype(np.int64))

    def _bounds(self) -> str:
        spans = (f"{x} from {a:.6g} to {b:.6g}" for x, a, b in zip("xyz", *self.mesh.bounds, strict=True))
        return ", ".join(spans) + " m"

    def __repr__(self) -> str:
        return f"<Body {self.name!r}: {len(self.points)} vertices, {format_value(self.material)}>"


def cell_counts(bodies: Sequence[Body]) -> dict[str, int]:
    """Count the tetrahedra ("tets") and triangles ("triangles") of bodies."""
    return {
        f"{kind}s": sum(body.mesh.n_cells for body in bodies if body.mesh.cell == kind)
        for kind in ("tet", "triangle")
    }


@dataclass(frozen=True, eq=False)
class VertexSet:
    """Vertex subset of one body; `|` and `&` compute union and intersection.

    Attributes:
        body: The body.
        indices: (k,) vertex numbers, which count from 0 within the body.
    """

    body: Body
    indices: np.ndarray

    @property
    def points(self) -> np.ndarray:
        """(k, 3) rest positions [m]."""
        return self.body.points[self.indices]

    @property
    def vertices(self) -> np.ndarray:
        """(k,) scene vertices: `result.positions[top.vertices]`."""
        return self.body.first + self.indices

    def __len__(self) -> int:
        return len(self.indices)

    def __or__(self, other: VertexSet) -> VertexSet:
        return VertexSet(self.body, np.union1d(self.indices, self._same_body(other)))

    def __and__(self, other: VertexSet) -> VertexSet:
        return self.body.where(np.intersect1d(self.indices, self._same_body(other)))

    def _same_body(self, other: VertexSet) -> np.ndarray:
        if other.body is not self.body:
            raise SceneError(
                f"Only vertices of the same body can be combined, "
                f"got bodies {self.body.name!r} and {other.body.name!r}."
            )
        return other.indices

    def __repr__(self) -> str:
        return f"<VertexSet: {len(self)} vertices of {self.body.name!r}>"
