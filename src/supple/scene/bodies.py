"""Bodies of a scene and sets of their vertices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from supple.compute import PRECISIONS
from supple.embedding import Embedding, Part
from supple.meshes import Mesh
from supple.scene.checks import Vector, shown
from supple.scene.errors import SceneError
from supple.scene.regions import Portion, Region, densities, portions_of, region_named
from supple.scene.viscosity import Viscosity
from supple.terms import Term, TetElasticity

Predicate = Callable[[np.ndarray], Any]


@dataclass(frozen=True, eq=False)
class Body:
    """A solid in a scene: a mesh of a material with a density [kg/m³]. Made by `Scene.add_solid`; `Cloth`
    is another kind of body.

    first: the number of its first vertex among those of the whole scene. skin: a detailed surface that is
    shown and exported in place of the boundary. velocity [m/s] of its centre of mass and angular_velocity
    [rad/s] about it at the start. regions: cells that are of other materials; viscosity: what resists its
    rate of strain.
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
    """What it is called in sentences and scene files."""

    precisions: ClassVar[tuple[str, ...]] = PRECISIONS
    """In which it can be computed."""

    @property
    def masses(self) -> np.ndarray:
        """(n,) lumped masses of its vertices [kg]."""
        return self.mesh.masses(densities(self.regions, self.density, self.n_cells))

    @property
    def drag(self) -> float:
        """α [1/s] of the force -α m v on each of its vertices."""
        return sum(each.drag for each in self.viscosity)

    @property
    def rest_measures(self) -> np.ndarray:
        """(m,) volumes [m³] of its tetrahedra, or areas [m²] of its triangles, where nothing is stretched."""
        return self.mesh.measures

    @property
    def volume(self) -> float:
        """Of its material at rest [m³]."""
        return float(self.rest_measures.sum())

    @property
    def n_cells(self) -> int:
        return self.mesh.n_cells

    @cached_property
    def parts(self) -> tuple[Body | Portion, ...]:
        """What elasticity terms are made of: itself, or its portions where it has several materials."""
        return portions_of(self) if self.regions or self.viscosity else (self,)

    def region(self, name: str) -> Portion:
        """One of its regions, of which parameters may vary: `scene.vary(body.region("muscle"), ...)`."""
        return region_named(self, name)

    @property
    def cells(self) -> np.ndarray:
        """Its tetrahedra (m, 4) or triangles (m, 3), of vertices numbered through the whole scene."""
        return np.asarray(self.mesh.cells) + np.int32(self.first)

    @property
    def group(self) -> Any:
        """Bodies for which this is the same make one elasticity term."""
        return type(self), type(self.material)

    @staticmethod
    def elasticity(bodies: Sequence[Any], rest: np.ndarray, material: Any) -> Term:
        """The term of bodies of one kind, whose vertices are at rest (n, 3) [m] among those of the scene."""
        return TetElasticity.from_mesh(rest, np.concatenate([body.cells for body in bodies]), material)

    def further_terms(self, rest: np.ndarray) -> tuple[Term, ...]:
        """Energies that it has beside that."""
        return ()

    @property
    def points(self) -> np.ndarray:
        """(n, 3) rest positions [m]."""
        return self.mesh.points

    @property
    def vertices(self) -> slice:
        """Its vertices among those of the whole scene: `result.positions[body.vertices]`."""
        return slice(self.first, self.first + len(self.points))

    @property
    def moving(self) -> bool:
        """Whether it has a velocity at the start."""
        return any(self.velocity) or any(self.angular_velocity)

    @property
    def velocities(self) -> np.ndarray:
        """v + ω × (X - c) of every vertex at the start, c the centre of mass; (n, 3) [m/s]."""
        mass = self.masses
        centre = mass @ self.points / mass.sum()
        return np.array(self.velocity) + np.cross(np.array(self.angular_velocity), self.points - centre)

    @property
    def all(self) -> VertexSet:
        return VertexSet(self, np.arange(len(self.points)))

    def is_like(self, other: Part) -> bool:
        """Whether it is the same body, or a copy of it that another process has sent back."""
        return self is other or (
            (self.name, self.vertices) == (other.name, other.vertices)
            and np.array_equal(self.mesh.points, other.mesh.points)
            and np.array_equal(self.mesh.cells, other.mesh.cells)
        )

    def where(self, selection: Predicate | np.ndarray | list[int]) -> VertexSet:
        """The vertices selected by a predicate, a mask or vertex numbers.

        A predicate gets the rest points X (n, 3) [m] and returns a mask: `where(lambda X: X[:, 0] <= 0)`.
        A mask is (n,) bool; vertex numbers count from 0 within this body and keep their order.
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
                f"a mask of bools, or a list of vertex numbers; got {shown(selection)}"
                + (f", which returned {shown(chosen)}." if callable(selection) else ".")
            )
        wrong = chosen[(chosen < 0) | (chosen >= n)]
        if len(wrong):
            raise SceneError(
                f"Body {self.name!r} has vertices 0 to {n - 1}; the selection names {shown(wrong.tolist())}."
            )
        values, counts = np.unique(chosen, return_counts=True)
        if np.any(counts > 1):
            raise SceneError(
                f"A selection on body {self.name!r} may name each vertex once; "
                f"it repeats {shown(values[counts > 1].tolist())}."
            )
        return VertexSet(self, chosen.astype(np.int64))

    def _bounds(self) -> str:
        spans = (f"{x} from {a:.6g} to {b:.6g}" for x, a, b in zip("xyz", *self.mesh.bounds, strict=True))
        return ", ".join(spans) + " m"

    def __repr__(self) -> str:
        return f"<Body {self.name!r}: {len(self.points)} vertices, {shown(self.material)}>"


def cell_counts(bodies: Sequence[Body]) -> dict[str, int]:
    """How many tets and triangles bodies have."""
    return {
        f"{kind}s": sum(body.mesh.n_cells for body in bodies if body.mesh.cell == kind)
        for kind in ("tet", "triangle")
    }


@dataclass(frozen=True, eq=False)
class VertexSet:
    """Some vertices of one body; `|` and `&` unite and intersect sets of the same body.

    indices (k,) count from 0 within the body.
    """

    body: Body
    indices: np.ndarray

    @property
    def points(self) -> np.ndarray:
        """(k, 3) rest positions [m]."""
        return self.body.points[self.indices]

    @property
    def vertices(self) -> np.ndarray:
        """(k,) numbers among the vertices of the whole scene: `result.positions[top.vertices]`."""
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
