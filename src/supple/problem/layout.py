"""Packed element data of a problem: vertex and element batches, and updates of dynamic stencils."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from operator import is_not
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.model.model import Conditions, Model, with_term
from supple.ordering import (
    Colors,
    DynamicBatches,
    DynamicElements,
    ElementBatches,
    TiedGroups,
    VertexBatches,
    batch_colored_elements,
    batch_elements,
    batch_tied_groups,
    batch_vertices,
    color_count,
    is_dynamic,
    widest_color,
)
from supple.ordering.dynamic_batches import BatchUpdate
from supple.problem.device import Device, on_shared_data
from supple.problem.material_update import are_varied, have_same_layout, materials_of
from supple.support.text import pluralize
from supple.terms import Deform, Elements, Term, pack_materials, refresh_material

if TYPE_CHECKING:
    from supple.model.model import Model
    from supple.problem.problem import Problem
    from supple.terms import Term


class Layout:
    """Constant data of a problem, packed for kernels.

    Attributes:
        varied: True if each batch member has its own materials.
        vertices: Batches of free vertices.
        terms: Packed data of every term by vertex batches, color after color.
        batch_colors: Batches of each color.
        colors: Number of colors.
        widest: Number of batches of the largest color.
        materials: For each batch member, one material per elastic term; a single entry if shared.
        begun: Materials of the model at construction.
        dynamic_batches: Dynamic vertex batches, None if all stencils are static.
        version: Number of stencil updates.
        growths: Number of times the capacity for dynamic stencils was exceeded.
    """

    def __init__(self, model: Model, dtype: np.dtype, device: Device, varied: bool) -> None:
        self.model, self.dtype, self.device, self.varied = model, dtype, device, varied
        self._colored: dict[tuple[int, int, bool, bool], ElementBatches] = {}
        self.begun = materials_of(model)
        self.materials = [self.begun]
        self.version, self.growths = 0, -1
        self.lay_out()

    def lay_out(self, growth: int = 1) -> None:
        """Pack all terms; `growth` multiplies the estimated capacity for dynamic stencils."""
        model, device, terms = self.model, self.device, self.model.terms
        size = self.dtype, device.lanes, device.concurrent_batches
        self.dynamic_batches: DynamicBatches | None = None
        if any(is_dynamic(term) for term in terms):
            self.dynamic_batches = DynamicBatches(terms, model.free, *size, growth=growth)
            self.vertices = self.dynamic_batches.batches
            self.growths += 1
        else:
            self.vertices = batch_vertices(terms, model.free, *size)
        self._use_colors(self.dynamic_batches.colors if self.dynamic_batches else self.vertices.color_start)
        how = self.dtype, model.vertices, device.lanes
        self._dynamic_elements = {
            k: DynamicElements(term, *how) for k, term in enumerate(terms) if is_dynamic(term)
        }
        self._elements = [
            self._dynamic_elements[k].elements if k in self._dynamic_elements else batch_elements(term, *how)
            for k, term in enumerate(terms)
        ]
        self.terms, self._with_values = tuple(self.vertices.terms), list(self._elements)
        if self.varied or any(map(is_not, self.materials[0], materials_of(model))):
            self.set_materials(self.materials)

    def _use_colors(self, colors: Colors) -> None:
        """Set batches per color, color count and size of the largest color."""
        self.batch_colors = colors
        self.colors, self.widest = color_count(colors), widest_color(colors)

    def is_compatible(self, conditions: Sequence[Conditions]) -> bool:
        """True if the materials of the conditions fit the present layout."""
        if self.varied or not are_varied(conditions):
            return True
        return len(conditions) == 1 and have_same_layout(self.model, self._condition_materials(conditions)[0])

    def set_conditions(self, conditions: Sequence[Conditions]) -> bool:
        """Set materials of conditions; return False if already in use."""
        materials = self._condition_materials(conditions)
        in_use = not self.varied and materials[0] == self.materials[0]
        if not in_use:
            self.set_materials(materials)
        return not in_use

    def _condition_materials(self, conditions: Sequence[Conditions]) -> list[tuple]:
        return [c.materials or materials_of(self.model) for c in conditions]

    def set_materials(self, materials: list[tuple]) -> None:
        """Set the materials: for each batch member, one material per elastic term."""
        self.materials = materials
        if self.dynamic_batches:
            self.dynamic_batches.update_element_ids()
        self.terms = self._with_materials(self.vertices)
        self._with_values = [
            replace(elements, rows=self._with_material(k, elements.rows, elements.element))
            for k, elements in enumerate(self._elements)
        ]

    @property
    def elements(self) -> list[Elements]:
        """Elements of every term in batches; those of dynamic terms are packed on access."""
        if self._dynamic_elements:
            with on_shared_data(self.device):
                for k, changing in self._dynamic_elements.items():
                    changing.set_term(self.model.terms[k], self.device)
        return self._with_values

    def _with_materials(self, arranged: VertexBatches | TiedGroups) -> tuple:
        """Packed data of all terms with the materials in use."""
        rows = zip(arranged.terms, arranged.element, strict=True)
        return tuple(self._with_material(k, of_term, element) for k, (of_term, element) in enumerate(rows))

    def _with_material(self, k: int, rows: Any, element: np.ndarray) -> Any:
        """Packed data of the k-th term with the materials in use.

        Values per element are written into the existing arrays.

        Args:
            k: Index of the term.
            rows: Packed data of the term.
            element: (rows, lanes) stencil of each lane.
        """
        terms = self.model.terms
        if terms[k].material is None:
            return rows
        number = sum(term.material is not None for term in terms[:k])
        materials = [member[number] for member in self.materials]
        if self.varied:
            placed = pack_materials(materials, element, len(terms[k].vertices), self.dtype)
            return rows._replace(material=placed)
        with on_shared_data(self.device):
            return refresh_material(rows, materials[0], element, self.device.run)

    def deforms(self, u: np.ndarray) -> tuple[Deform, ...]:
        """Return the work that tabulates deformation gradients of embedded elements at displacements u."""
        if not any(term.node_interpolation is not None for term in self.model.terms):
            return ()
        every = zip(self.model.terms, self.elements, self.terms, strict=True)
        return tuple(
            Deform(e.own, e.rows, rows.table, u)
            for term, e, rows in every
            if term.node_interpolation is not None
        )

    def exchange(self, index: int, term: Term) -> None:
        """Replace a dynamic term; `pack_stencils` packs its stencils."""
        if self.varied:
            raise ValueError(
                f"{term.name} with a capacity must be the same for all batch members, and these have "
                "different materials; solve them one after the other"
            )
        self.model = with_term(self.model, index, term)
        self._colored = {key: batches for key, batches in self._colored.items() if key[0] != index}
        if (
            self.__dict__.get("_links") is not None
        ):  # None stays None: links do not depend on dynamic stencils
            del self.__dict__["_links"]

    def set_pressure(self, index: int, pressure: float) -> None:
        """Set the pressure [Pa] of all triangles of a term in every packed copy of its data."""
        for rows, _ in self._packed_data(index):
            rows.pressure[:] = pressure
            self.device.upload(rows.pressure)

    def set_force(self, index: int, force: np.ndarray) -> None:
        """Set the forces (m, 3) [N] of a term of point forces in every packed copy of its data."""
        padded = np.concatenate([force, np.zeros((1, 3))])  # of lanes without a stencil, element -1
        for rows, element in self._packed_data(index):
            rows.force[:] = np.moveaxis(padded[element], -1, 1)
            self.device.upload(rows.force)

    def _packed_data(self, index: int) -> list[tuple[Any, np.ndarray]]:
        """Packed copies of the data of a term, and the stencil (rows, lanes) of each of their lanes."""
        if self.dynamic_batches:
            self.dynamic_batches.update_element_ids()
        elements = self._with_values[index]
        arranged = [(self.terms[index], self.vertices.element[index]), (elements.rows, elements.element)]
        arranged += [(b.rows, b.element) for key, b in self._colored.items() if key[0] == index]
        links = self.__dict__.get("_links")
        if links is not None:
            arranged.append((links.terms[index], links.element[index]))
        return arranged

    def pack_stencils(self) -> BatchUpdate | None:
        """Pack the current stencils of the dynamic terms into the existing arrays.

        Returns:
            The changes; None if the capacity is exceeded, in which case nothing has changed, or if all
            stencils are static.
        """
        if self.dynamic_batches is None:
            return None
        done = self.dynamic_batches.set_terms(self.model.terms)
        if done is None:
            return None
        with on_shared_data(self.device):
            done.apply(self.device)
        self._use_colors(self.dynamic_batches.colors)
        self.version += 1
        return done

    def colored_elements(
        self, k: int, cluster_size: int, cells: bool = False, smallest_last: bool = False
    ) -> ElementBatches:
        """Elements of the k-th term in groups, see `element_groups`, color by color."""
        name = k, cluster_size, cells, smallest_last
        if name not in self._colored:
            term, n, lanes = self.model.terms[k], self.model.vertices, self.device.lanes
            self._colored[name] = batch_colored_elements(
                term, n, self.dtype, cluster_size, lanes, cells, smallest_last
            )
        batches = self._colored[name]
        return replace(batches, rows=self._with_material(k, batches.rows, batches.element))

    @cached_property
    def _links(self) -> TiedGroups | None:
        device = self.device
        return batch_tied_groups(
            self.model.terms, self.model.free, self.dtype, device.lanes, device.concurrent_batches
        )

    def links(self) -> TiedGroups | None:
        """Groups of vertices tied by weak constraints, packed with the materials in use."""
        return self._links and replace(self._links, terms=self._with_materials(self._links))


STENCIL_INDEPENDENT = (
    "projections of element-wise methods",
    "elements of term",
    "Anderson memory",
    "no tied groups",
)
"""Prefixes of prepared solver data that does not depend on stencils."""

BATCH_DEPENDENT = "rejected"
"""Prefix of prepared solver data that depends on vertex batches but not on stencils."""


def refresh(problem: Problem, index: int, term: Term) -> None:
    """Replace the stencils of a term; the capacity grows by factors of two."""
    model, old = problem.model, problem.model.terms[index]
    _check(model, old, term)
    before = capacity = old.capacity or 0
    while capacity < len(term.vertices):
        capacity = max(1, 2 * capacity)
    term = replace(term, capacity=capacity)  # type: ignore[type-var]
    problem.device.wait()  # pending kernels use the old stencils
    problem.model = with_term(model, index, term)
    problem.layout.exchange(index, term)
    if capacity > before:
        _grow_capacity(problem, 1)
    pack_stencils(problem)


def _check(model: Model, old: Term, term: Term) -> None:
    if not is_dynamic(old):
        raise ValueError(
            f"{old.name} cannot be replaced: their term was created without a capacity; create it with "
            "capacity="
        )
    corners, ids = old.vertices.shape[1], term.vertices
    if type(term) is not type(old) or ids.shape[1] != corners:
        raise ValueError(
            f"{old.name} of {pluralize(corners, 'vertex', 'vertices')} can only be replaced by stencils "
            f"of the same kind, got {term.name} of {ids.shape[1]}"
        )
    if ids.size and not (ids.min() >= 0 and ids.max() < model.vertices):
        raise ValueError(
            f"vertex ids of {term.name} must lie between 0 and {model.vertices - 1}, got {ids.min()} to "
            f"{ids.max()}"
        )


def pack_stencils(problem: Problem) -> None:
    """Pack the present stencils of the model, with a larger capacity if needed."""
    layout = problem.layout
    done = layout.pack_stencils()
    while done is None:
        _grow_capacity(problem, 2)
        done = layout.pack_stencils()
    problem.loads.update_lanes(done.slots)
    problem.diagnostics.invalidate_stiffness()
    problem.invalidate_except(*STENCIL_INDEPENDENT, BATCH_DEPENDENT)


def _grow_capacity(problem: Problem, times: int) -> None:
    """Rebuild all vertex batches with a multiple of the capacity."""
    layout, loads = problem.layout, problem.loads
    layout.lay_out(times * (layout.dynamic_batches.growth if layout.dynamic_batches else 1))
    loads.lay_out(layout.vertices, len(loads.rows.force))
    loads.set_constrained(problem.states.constrained_at)
    loads.set_contact_planes(problem.contacts.planes)
    loads.set_step_bounds(problem.trust_region.step_bounds)
    problem.diagnostics.invalidate()
    problem.invalidate_except(*STENCIL_INDEPENDENT)
