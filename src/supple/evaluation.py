"""What is known of a model at some positions: forces, energies, deformations and stresses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from supple.cell_figures import CellFigures
from supple.checks import closest, each, shown
from supple.holding import Holding, Part
from supple.meshes.measures import means_at_vertices
from supple.model import Model
from supple.reactions import Reaction, Touches, forces_between_bodies, reaction_of
from supple.words import counted

FIGURES: dict[str, Any] = {
    "energy": 0,
    "volume_ratio": 1,
    "von_mises": 2,
    "pressure": 3,
    "principal_stresses": slice(4, 7),
    "principal_stretches": slice(7, 10),
}
"""Where they are among the figures of an element."""


@dataclass(frozen=True, eq=False, repr=False)
class Deformations:
    """Elements of a material: vertices (m, k), rest_volume (m,) [m³], element_energy (m,) [J], deformation
    gradient F (m, 3, 3), first Piola-Kirchhoff stress P = ∂ψ/∂F (m, 3, 3) [Pa]; figures (m, 10): what follows
    from these, see the properties; linear (m,): whether their material is one for small deformations, which
    has one stress only; plastic_strain (m,): how much they have flowed, the equivalent plastic strain, NaN
    where their material cannot.

    Triangles have the F that keeps their thickness, so J is their area over that at rest, and with it a
    stress across their plane.
    """

    vertices: np.ndarray
    rest_volume: np.ndarray
    element_energy: np.ndarray
    deformation_gradient: np.ndarray
    piola: np.ndarray
    figures: np.ndarray
    linear: np.ndarray
    plastic_strain: np.ndarray

    @cached_property
    def energy_density(self) -> np.ndarray:
        """ψ (m,) [J/m³]: energy per volume at rest."""
        return self.element_energy / self.rest_volume

    @property
    def volume_ratio(self) -> np.ndarray:
        """J = det F (m,), negative where an element is inverted."""
        return self._figure("volume_ratio")

    @cached_property
    def cauchy(self) -> np.ndarray:
        """Cauchy stress σ = P Fᵀ/J (m, 3, 3) [Pa], symmetric; P itself for materials of small deformations.
        It is infinite or NaN where an element has no volume left."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            true = (
                self.piola @ self.deformation_gradient.transpose(0, 2, 1) / self.volume_ratio[:, None, None]
            )
        return np.where(self.linear[:, None, None], self.piola, true)

    @property
    def pressure(self) -> np.ndarray:
        """-tr(σ)/3 (m,) [Pa], positive in compression."""
        return self._figure("pressure")

    @property
    def von_mises(self) -> np.ndarray:
        """√(3/2 s:s) (m,) [Pa] with s = σ - tr(σ)/3 I."""
        return self._figure("von_mises")

    @property
    def principal_stresses(self) -> np.ndarray:
        """Eigenvalues of σ (m, 3) [Pa], the largest first, which is tension where it is positive."""
        return self._figure("principal_stresses")

    @property
    def principal_stretches(self) -> np.ndarray:
        """Singular values of F (m, 3), the largest first; the last is negative in inverted elements."""
        return self._figure("principal_stretches")

    def _figure(self, name: str) -> np.ndarray:
        return self.figures[:, FIGURES[name]]


@dataclass(frozen=True, eq=False, repr=False)
class Pulls:
    """Elements without a material, such as attachments and springs: vertices (m, k), element_energy (m,) [J],
    and their force (m, 3) [N] on the first of their vertices."""

    vertices: np.ndarray
    element_energy: np.ndarray
    force: np.ndarray


@dataclass(frozen=True, eq=False)
class Fields:
    """Quantities for files by name: those of vertices (n, ...), and those of cells (m, ...)."""

    vertices: dict[str, np.ndarray] = field(default_factory=dict)
    cells: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, np.ndarray]:
        return self.vertices | self.cells


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Deformations, CellFigures):
    """Forces, energies, deformations and stresses of a model at positions (n, 3) [m]; made by `evaluate`.

    Arrays with one row for each element are those of all cells, tetrahedra of solids and triangles of cloth,
    body after body; where there are both, the fourth vertex of a triangle is -1. `terms` has them for each
    kind of element, `Deformations` or `Pulls`, in the order that the model has. internal_force (n, 3)
    [N] of all elements, and of contact between bodies, on every vertex; external_force (n, 3) [N],
    gravity and loads.
    """

    model: Model = field(kw_only=True)
    positions: np.ndarray = field(kw_only=True)
    internal_force: np.ndarray = field(kw_only=True)
    external_force: np.ndarray = field(kw_only=True)
    terms: tuple[Deformations | Pulls, ...] = field(kw_only=True)
    _inertial: np.ndarray | None = field(kw_only=True)
    _touches: Touches | None = field(kw_only=True)

    @property
    def inertial_force(self) -> np.ndarray:
        """-m a (n, 3) [N] of the step of time that led here; zero without one."""
        if self._inertial is None:
            raise ValueError(
                "forces of inertia, and with them net forces and reactions, are not known for frames of "
                "several substeps that were read from files: they do not say where the last substep began; "
                "nor for the first frame of another integrator than backward_euler"
            )
        return self._inertial

    @property
    def touches(self) -> Touches:
        """Where vertices touch obstacles."""
        if self._touches is None:
            assert self.inertial_force is not None  # which says why nothing is known
        return self._touches or Touches.none()

    @cached_property
    def contact_force(self) -> np.ndarray:
        """(n, 3) [N] of obstacles, and of bodies in weak contact or with a barrier, on every vertex. Bodies
        do the opposite to each other, and `internal_force` has that, too."""
        return self.touches.total(self.model.vertices) + forces_between_bodies(self.model, self.positions)

    @cached_property
    def obstacle_reactions(self) -> dict[str, Reaction]:
        """What every obstacle does to all bodies, by its name; bodies do the opposite to it."""
        found = {}
        for k, name in enumerate(self.touches.names):
            mine = self.touches.obstacle == k
            found[name] = reaction_of(self.positions, self.touches.vertices[mine], self.touches.force[mine])
        return found

    @property
    def net_force(self) -> np.ndarray:
        """internal + external + inertial forces and those of obstacles (n, 3) [N], without what pins do: zero
        where all balances.
        Without inertia and obstacles it is minus the derivative of `energy` by the positions."""
        of_obstacles = self.touches.total(self.model.vertices)
        return self.internal_force + self.external_force + self.inertial_force + of_obstacles

    @property
    def reaction_force(self) -> np.ndarray:
        """(n, 3) [N] what pins do to every vertex, minus the net force; zero where a vertex is free."""
        forces, pinned = np.zeros_like(self.positions), self.model.pinned
        forces[pinned] = -self.model.along(self.net_force[pinned])
        return forces

    @cached_property
    def reactions(self) -> dict[str, Reaction]:
        """The reaction of every pin by its name. What several pins hold counts for the one that holds it
        wholly, else for the first of them."""
        supports = self.model.supports or (("pins", self.model.pinned, None),)
        parts = [Part(vertices, self.model.rest[vertices], held) for _, vertices, held in supports]
        holding = Holding(parts)
        shares = holding.shares(self.reaction_force[holding.vertices])
        found = {}
        for (name, vertices, _), forces in zip(supports, shares, strict=True):
            found[name] = reaction_of(self.positions, vertices, forces)
        return found

    @cached_property
    def stored_energy(self) -> float:
        """Of all elements [J]."""
        return self._energy_of(loads=False)

    def _energy_of(self, loads: bool) -> float:
        """Of terms that are loads, such as pressure, or of all others [J]."""
        pairs = zip(self.model.terms, self.terms, strict=True)
        return float(sum(values.element_energy.sum() for term, values in pairs if term.loads is loads))

    @cached_property
    def load_energy(self) -> float:
        """Potential of gravity and loads, -Σ f · (x - X) [J], zero at rest, and of pressure, -p V."""
        dead = -float((self.external_force * (self.positions - self.model.rest)).sum())
        return dead + self._energy_of(loads=True)

    @property
    def energy(self) -> float:
        """Stored, and that of gravity and loads [J]. Reports count the loads on free vertices only."""
        return self.stored_energy + self.load_energy

    @cached_property
    def body_energies(self) -> dict[str, float]:
        """What is stored in each body [J], by its name; attachments belong to none."""
        stored = np.zeros(self.model.vertices)
        for term, values in zip(self.model.terms, self.terms, strict=True):
            if not term.ties and not term.loads:
                stored += np.bincount(values.vertices[:, 0], values.element_energy, self.model.vertices)
        return {body.name: float(stored[body.vertices].sum()) for body in self.model.bodies}

    def at_vertices(self, values: np.ndarray) -> np.ndarray:
        """(n, ...) means of values (m, ...) over the cells around each vertex, by volume; NaN without any."""
        return means_at_vertices(values, self.vertices, self.rest_volume, self.model.vertices)

    def fields(self, names: Iterable[str]) -> Fields:
        """Quantities for files by their names, see `QUANTITIES`."""
        chosen = {name: getattr(self, name) for name in names}
        of_vertices = {name: values for name, values in chosen.items() if name in OF_VERTICES}
        return Fields(of_vertices, {name: chosen[name] for name in chosen if name not in of_vertices})

    def __repr__(self) -> str:
        counts = f"{self.model.vertices:,} vertices, {counted(len(self.vertices), 'cell')}"
        return f"<Evaluation: {counts}, energy {self.energy:.6g} J>"


QUANTITIES = {
    "energy_density": "strain energy per volume at rest [J/m³]",
    "volume_ratio": "volume over that at rest, J; of cloth the area's",
    "deformation_gradient": "F, 3×3",
    "piola": "first Piola-Kirchhoff stress P, 3×3 [Pa]",
    "cauchy": "Cauchy stress, 3×3 [Pa]",
    "von_mises": "von Mises stress [Pa]",
    "pressure": "-tr(σ)/3 [Pa]",
    "principal_stresses": "eigenvalues of the Cauchy stress, the largest first [Pa]",
    "principal_stretches": "singular values of F, the largest first",
    "plastic_strain": "equivalent plastic strain, NaN where a material cannot flow",
    "fibres": "direction of fibres as they run now, NaN where a material has none",
    "fibre_stretch": "how far fibres are stretched",
    "bending_angle": "largest angle of a triangle of cloth to a neighbour [degrees]",
    "weft_strain": "strain of cloth along u, where it has uv",
    "warp_strain": "strain of cloth along v",
    "area_ratio": "area of a triangle of cloth over that at rest",
    "internal_force": "of all elements and of contact between bodies on each vertex [N]",
    "external_force": "gravity and loads on each vertex [N]",
    "contact_force": "what obstacles and other bodies do to each vertex [N]",
    "net_force": "what forces on each vertex add up to, without pins [N]",
    "reaction_force": "what pins do to each vertex [N]",
}
"""What files can have of an evaluation, by name."""

OF_VERTICES = {name for name in QUANTITIES if name.endswith("_force")}
"""Those with a row for each vertex; all others have one for each cell."""


def quantities_named(names: str | Iterable[str] | None) -> list[str]:
    """Names of `QUANTITIES`, which may be separated by commas; each is there once, None are none."""
    if names is None:
        return []
    words = names.split(",") if isinstance(names, str) else list(each(names, "fields are names"))
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f"fields are names such as 'von_mises,cauchy'; got {shown(names)}")
    found = list(dict.fromkeys(word.strip().lower() for word in words if word.strip()))
    for name in found:
        if name not in QUANTITIES:
            raise ValueError(f"there is no field {name!r} for files; {closest(name, QUANTITIES)}")
    return found
