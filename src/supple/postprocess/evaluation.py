"""Evaluation results: forces, energies, deformations and stresses of a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from supple.meshes.measures import means_at_vertices
from supple.model.dirichlet import DirichletConditions, PinConstraint
from supple.model.model import Model
from supple.postprocess.cell_quantities import CellQuantities
from supple.problem.reactions import ObstacleContacts, Reaction, forces_between_bodies, reaction_of
from supple.support.arguments import format_value, iterate_argument, suggest_name
from supple.support.text import pluralize

SCALAR_COLUMNS: dict[str, Any] = {
    "energy": 0,
    "volume_ratio": 1,
    "von_mises": 2,
    "pressure": 3,
    "principal_stresses": slice(4, 7),
    "principal_stretches": slice(7, 10),
}
"""Columns of the scalar quantities of an element, by name."""


@dataclass(frozen=True, eq=False, repr=False)
class Deformations:
    """Energy, deformation and stress of elements with a material.

    Triangles have the F that keeps their thickness. Their J is thus the area ratio, and their stress includes
    a component normal to their plane.

    Attributes:
        vertices: (m, k) vertices of the elements.
        rest_volume: (m,) rest volume [m³].
        element_energy: (m,) energy [J].
        deformation_gradient: (m, 3, 3) deformation gradient F.
        piola: (m, 3, 3) first Piola-Kirchhoff stress P = ∂ψ/∂F [Pa].
        scalars: (m, 10) derived quantities, see the properties.
        linear: (m,) True for small-strain materials, which have a single stress measure.
        plastic_strain: (m,) equivalent plastic strain; NaN for materials without plastic flow.
    """

    vertices: np.ndarray
    rest_volume: np.ndarray
    element_energy: np.ndarray
    deformation_gradient: np.ndarray
    piola: np.ndarray
    scalars: np.ndarray
    linear: np.ndarray
    plastic_strain: np.ndarray

    @cached_property
    def energy_density(self) -> np.ndarray:
        """(m,) strain energy density ψ per rest volume [J/m³]."""
        return self.element_energy / self.rest_volume

    @property
    def volume_ratio(self) -> np.ndarray:
        """(m,) J = det F, negative for inverted elements."""
        return self._scalar("volume_ratio")

    @cached_property
    def cauchy(self) -> np.ndarray:
        """(m, 3, 3) symmetric Cauchy stress σ = P Fᵀ/J [Pa]; P itself for small-strain materials.

        It is infinite or NaN for elements of zero volume.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            true = (
                self.piola @ self.deformation_gradient.transpose(0, 2, 1) / self.volume_ratio[:, None, None]
            )
        return np.where(self.linear[:, None, None], self.piola, true)

    @property
    def pressure(self) -> np.ndarray:
        """(m,) pressure -tr(σ)/3 [Pa], positive in compression."""
        return self._scalar("pressure")

    @property
    def von_mises(self) -> np.ndarray:
        """(m,) von Mises stress √(3/2 s:s) [Pa] with s = σ - tr(σ)/3 I."""
        return self._scalar("von_mises")

    @property
    def principal_stresses(self) -> np.ndarray:
        """(m, 3) eigenvalues of σ [Pa] in descending order, positive in tension."""
        return self._scalar("principal_stresses")

    @property
    def principal_stretches(self) -> np.ndarray:
        """(m, 3) singular values of F in descending order; the last is negative for inverted elements."""
        return self._scalar("principal_stretches")

    def _scalar(self, name: str) -> np.ndarray:
        return self.scalars[:, SCALAR_COLUMNS[name]]


@dataclass(frozen=True, eq=False, repr=False)
class SpringForces:
    """Energy and force of elements without material, such as attachments and springs.

    Attributes:
        vertices: (m, k) vertices of the elements.
        element_energy: (m,) energy [J].
        force: (m, 3) force on the first vertex of each element [N].
    """

    vertices: np.ndarray
    element_energy: np.ndarray
    force: np.ndarray


@dataclass(frozen=True, eq=False)
class Fields:
    """Output quantities by name.

    Attributes:
        vertices: Vertex quantities (n, ...).
        cells: Cell quantities (m, ...).
    """

    vertices: dict[str, np.ndarray] = field(default_factory=dict)
    cells: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, np.ndarray]:
        """Vertex and cell quantities in one dictionary."""
        return self.vertices | self.cells


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Deformations, CellQuantities):
    """Forces, energies, deformations and stresses of a model at given positions; created by `evaluate`.

    Element arrays cover all cells, tetrahedra of solids and triangles of cloth, body after body. If a scene
    has both, the fourth vertex of a triangle is -1.

    Attributes:
        model: Model.
        positions: (n, 3) positions [m].
        internal_force: (n, 3) force of all elements and of contact between bodies on each vertex [N].
        external_force: (n, 3) gravity and loads on each vertex [N].
        terms: `Deformations` or `SpringForces` of each energy term, in the order of the model.
        vertices: (m, k) vertices of the cells.
        rest_volume: (m,) rest volume [m³].
        element_energy: (m,) energy [J].
        deformation_gradient: (m, 3, 3) deformation gradient F.
        piola: (m, 3, 3) first Piola-Kirchhoff stress P = ∂ψ/∂F [Pa].
        scalars: (m, 10) derived quantities, see the properties.
        linear: (m,) True for small-strain materials, which have a single stress measure.
        plastic_strain: (m,) equivalent plastic strain; NaN for materials without plastic flow.
    """

    model: Model = field(kw_only=True)
    positions: np.ndarray = field(kw_only=True)
    internal_force: np.ndarray = field(kw_only=True)
    external_force: np.ndarray = field(kw_only=True)
    terms: tuple[Deformations | SpringForces, ...] = field(kw_only=True)
    _inertial: np.ndarray | None = field(kw_only=True)
    _obstacle_contacts: ObstacleContacts | None = field(kw_only=True)

    @property
    def inertial_force(self) -> np.ndarray:
        """(n, 3) inertial force -m a [N] of the time step that led here; zero without one.

        Raises:
            ValueError: The start of the step is unknown.
        """
        if self._inertial is None:
            raise ValueError(
                "inertial forces, and with them net forces and reactions, are not available for "
                "this frame: saved frames do not contain the start of the last of several substeps, "
                "nor the initial history of integrators other than backward_euler. Evaluate the "
                "frame during `simulate`, or save with substeps=1"
            )
        return self._inertial

    @property
    def obstacle_contacts(self) -> ObstacleContacts:
        """Contacts of vertices with obstacles."""
        if self._obstacle_contacts is None:
            assert self.inertial_force is not None  # raises an error that explains the reason
        return self._obstacle_contacts or ObstacleContacts.none()

    @cached_property
    def contact_force(self) -> np.ndarray:
        """(n, 3) force of obstacles, and of bodies in penalty or barrier contact, on each vertex [N].

        Forces between bodies are opposite and equal; `internal_force` includes them as well.
        """
        return self.obstacle_contacts.total(self.model.vertices) + forces_between_bodies(
            self.model, self.positions
        )

    @cached_property
    def obstacle_reactions(self) -> dict[str, Reaction]:
        """Total force of each obstacle on all bodies, by obstacle name; obstacles receive the opposite."""
        by_name = {}
        for k, name in enumerate(self.obstacle_contacts.names):
            selected = self.obstacle_contacts.obstacle == k
            by_name[name] = reaction_of(
                self.positions,
                self.obstacle_contacts.vertices[selected],
                self.obstacle_contacts.force[selected],
            )
        return by_name

    @property
    def net_force(self) -> np.ndarray:
        """(n, 3) sum of internal, external, inertial and obstacle forces [N], without pins.

        It is zero in equilibrium. Without inertia and obstacles it is minus the derivative of `energy` with
        respect to the positions.
        """
        of_obstacles = self.obstacle_contacts.total(self.model.vertices)
        return self.internal_force + self.external_force + self.inertial_force + of_obstacles

    @property
    def reaction_force(self) -> np.ndarray:
        """(n, 3) force of pins on each vertex [N], minus the net force; zero for free vertices."""
        forces, pinned = np.zeros_like(self.positions), self.model.pinned
        forces[pinned] = -self.model.along(self.net_force[pinned])
        return forces

    @cached_property
    def reactions(self) -> dict[str, Reaction]:
        """Pin reactions by name.

        A vertex held by several pins counts for the one that fixes it completely, otherwise for the first.
        """
        supports = self.model.supports or (("pins", self.model.pinned, None),)
        parts = [
            PinConstraint(vertices, self.model.rest[vertices], directions)
            for _, vertices, directions in supports
        ]
        holding = DirichletConditions(parts)
        shares = holding.distribute_reactions(self.reaction_force[holding.vertices])
        by_name = {}
        for (name, vertices, _), forces in zip(supports, shares, strict=True):
            by_name[name] = reaction_of(self.positions, vertices, forces)
        return by_name

    @cached_property
    def stored_energy(self) -> float:
        """Stored energy of all elements [J]."""
        return self._energy_of(loads=False)

    def _energy_of(self, loads: bool) -> float:
        """Total energy of load terms, such as pressure, or of all other terms [J]."""
        pairs = zip(self.model.terms, self.terms, strict=True)
        return float(sum(values.element_energy.sum() for term, values in pairs if term.loads is loads))

    @cached_property
    def load_energy(self) -> float:
        """Potential energy of loads [J].

        It is -Σ f · (x - X) for gravity and forces, zero at rest, and -p V for pressure.
        """
        dead = -float((self.external_force * (self.positions - self.model.rest)).sum())
        return dead + self._energy_of(loads=True)

    @property
    def energy(self) -> float:
        """Stored energy and load potential [J]. Reports include the loads on free vertices only."""
        return self.stored_energy + self.load_energy

    @cached_property
    def body_energies(self) -> dict[str, float]:
        """Stored energy of each body [J], by its name; attachments belong to no body."""
        stored = np.zeros(self.model.vertices)
        for term, values in zip(self.model.terms, self.terms, strict=True):
            if not term.ties and not term.loads:
                stored += np.bincount(values.vertices[:, 0], values.element_energy, self.model.vertices)
        return {body.name: float(stored[body.vertices].sum()) for body in self.model.bodies}

    def at_vertices(self, values: np.ndarray) -> np.ndarray:
        """Average cell values around each vertex, weighted by rest volume.

        Args:
            values: (m, ...) cell values.

        Returns:
            (n, ...) means; NaN for vertices without cells.
        """
        return means_at_vertices(values, self.vertices, self.rest_volume, self.model.vertices)

    def fields(self, names: Iterable[str]) -> Fields:
        """Return output quantities by their names.

        Args:
            names: Names in `QUANTITIES`.

        Returns:
            Vertex and cell quantities.
        """
        chosen = {name: getattr(self, name) for name in names}
        of_vertices = {name: values for name, values in chosen.items() if name in VERTEX_QUANTITIES}
        return Fields(of_vertices, {name: chosen[name] for name in chosen if name not in of_vertices})

    def __repr__(self) -> str:
        counts = f"{self.model.vertices:,} vertices, {pluralize(len(self.vertices), 'cell')}"
        return f"<Evaluation: {counts}, energy {self.energy:.6g} J>"


QUANTITIES = {
    "energy_density": "strain energy per volume at rest [J/m³]",
    "volume_ratio": "volume ratio J, for cloth the area ratio",
    "deformation_gradient": "F, 3×3",
    "piola": "first Piola-Kirchhoff stress P, 3×3 [Pa]",
    "cauchy": "Cauchy stress, 3×3 [Pa]",
    "von_mises": "von Mises stress [Pa]",
    "pressure": "-tr(σ)/3 [Pa]",
    "principal_stresses": "eigenvalues of the Cauchy stress in descending order [Pa]",
    "principal_stretches": "singular values of F in descending order",
    "plastic_strain": "equivalent plastic strain, NaN for materials without plasticity",
    "fibers": "current direction of fibers, NaN for materials without fibers",
    "fiber_stretch": "stretch of fibers",
    "bending_angle": "largest angle of a triangle of cloth to a neighbor [degrees]",
    "weft_strain": "strain of cloth along u, where it has uv",
    "warp_strain": "strain of cloth along v",
    "area_ratio": "area ratio of a triangle of cloth",
    "internal_force": "elastic force on each vertex, with contact between bodies [N]",
    "external_force": "gravity and loads on each vertex [N]",
    "contact_force": "contact force of obstacles and other bodies on each vertex [N]",
    "net_force": "net force on each vertex, without pins [N]",
    "reaction_force": "reaction force of pins on each vertex [N]",
}
"""Descriptions of the quantities that output files can contain, by name."""

VERTEX_QUANTITIES = {name for name in QUANTITIES if name.endswith("_force")}
"""Names of vertex quantities; all others are cell quantities."""


def parse_quantities(names: str | Iterable[str] | None) -> list[str]:
    """Parse names of `QUANTITIES`, separated by commas or in a list, without duplicates."""
    if names is None:
        return []
    words = names.split(",") if isinstance(names, str) else list(iterate_argument(names, "fields are names"))
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f"fields must be names such as 'von_mises,cauchy'; got {format_value(names)}")
    chosen = list(dict.fromkeys(word.strip().lower() for word in words if word.strip()))
    for name in chosen:
        if name not in QUANTITIES:
            raise ValueError(f"there is no field {name!r} for files; {suggest_name(name, QUANTITIES)}")
    return chosen
