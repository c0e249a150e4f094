"""What is constant of a problem, laid out for kernels: the visits of vertices by colour, and the elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from operator import is_not
from typing import Any

import numpy as np

from supple.model import Conditions, Model, with_term
from supple.ordering import (
    ChangingBatches,
    ChangingElements,
    Colours,
    ElementBatches,
    Links,
    VertexBatches,
    batch_coloured_elements,
    batch_elements,
    batch_links,
    batch_vertices,
    changes,
    colour_count,
    widest_colour,
)
from supple.ordering.changing import Changes
from supple.problem.device import Device, for_all_copies
from supple.problem.materials import are_alike, are_varied, materials_of
from supple.terms import Deform, Elements, Term, refreshed, several


class Layout:
    """terms: rows of every term by batches of free vertices, colour after colour; batch_colours: which
    batches each has; vertices: the batches themselves.
    varied: copies of the state have materials of their own. Where stencils come and go, version tells how
    often they did, and growths, how often there was not enough room for them."""

    def __init__(self, model: Model, dtype: np.dtype, device: Device, varied: bool) -> None:
        self.model, self.dtype, self.device, self.varied = model, dtype, device, varied
        self._coloured: dict[tuple[int, int, bool, bool], ElementBatches] = {}
        self.begun = materials_of(model)
        self.materials = [self.begun]
        self.version, self.growths = 0, -1
        self.lay_out()

    def lay_out(self, growth: int = 1) -> None:
        """Batches, and so much more room for stencils that come and go than what is thought to be enough."""
        model, device, terms = self.model, self.device, self.model.terms
        size = self.dtype, device.lanes, device.at_once
        self.room: ChangingBatches | None = None
        if any(changes(term) for term in terms):
            self.room = ChangingBatches(terms, model.free, *size, growth=growth)
            self.vertices = self.room.batches
            self.growths += 1
        else:
            self.vertices = batch_vertices(terms, model.free, *size)
        self._use_colours(self.room.colours if self.room else self.vertices.colour_start)
        how = self.dtype, model.vertices, device.lanes
        self._changing = {k: ChangingElements(term, *how) for k, term in enumerate(terms) if changes(term)}
        self._elements = [
            self._changing[k].elements if k in self._changing else batch_elements(term, *how)
            for k, term in enumerate(terms)
        ]
        self.terms, self._with_values = tuple(self.vertices.terms), list(self._elements)
        if self.varied or any(map(is_not, self.materials[0], materials_of(model))):
            self.use(self.materials)

    def _use_colours(self, colours: Colours) -> None:
        """colours: how many there are; widest: batches of the one that has the most."""
        self.batch_colours = colours
        self.colours, self.widest = colour_count(colours), widest_colour(colours)

    def suits(self, conditions: Sequence[Conditions]) -> bool:
        """Whether the materials of conditions can be used without a new layout."""
        if self.varied or not are_varied(conditions):
            return True
        return len(conditions) == 1 and are_alike(self.model, self._wanted(conditions)[0])

    def take(self, conditions: Sequence[Conditions]) -> bool:
        """Use the materials of conditions; False where they are those in use."""
        wanted = self._wanted(conditions)
        known = not self.varied and wanted[0] == self.materials[0]
        if not known:
            self.use(wanted)
        return not known

    def _wanted(self, conditions: Sequence[Conditions]) -> list[tuple]:
        return [c.materials or materials_of(self.model) for c in conditions]

    def use(self, materials: list[tuple]) -> None:
        """Use one material of each elastic term for each copy."""
        self.materials = materials
        if self.room:
            self.room.arrange_elements()
        self.terms = self._with_materials(self.vertices)
        self._with_values = [
            replace(elements, rows=self._with_material(k, elements.rows, elements.element))
            for k, elements in enumerate(self._elements)
        ]

    @property
    def elements(self) -> list[Elements]:
        """The elements of every term in batches; those of terms that change are written when asked for."""
        if self._changing:
            with for_all_copies(self.device):
                for k, changing in self._changing.items():
                    changing.take(self.model.terms[k], self.device)
        return self._with_values

    def _with_materials(self, arranged: VertexBatches | Links) -> tuple:
        """Rows of all terms with the materials in use."""
        rows = zip(arranged.terms, arranged.element, strict=True)
        return tuple(self._with_material(k, of_term, element) for k, (of_term, element) in enumerate(rows))

    def _with_material(self, k: int, rows: Any, element: np.ndarray) -> Any:
        """Rows of the k-th term with the materials in use; element (rows, lanes): which stencil is where.
        What differs by element is written into the arrays that are there."""
        terms = self.model.terms
        if terms[k].material is None:
            return rows
        number = sum(term.material is not None for term in terms[:k])
        materials = [of_copy[number] for of_copy in self.materials]
        if self.varied:
            placed = several(materials, element, len(terms[k].vertices), self.dtype)
            return rows._replace(material=placed)
        with for_all_copies(self.device):
            return refreshed(rows, materials[0], element, self.device.run)

    def deforms(self, u: np.ndarray) -> tuple[Deform, ...]:
        """What has to be done before vertices at displacements u visit terms that look deformations up."""
        if not any(term.carriage is not None for term in self.model.terms):
            return ()
        every = zip(self.model.terms, self.elements, self.terms, strict=True)
        return tuple(
            Deform(e.own, e.rows, rows.table, u) for term, e, rows in every if term.carriage is not None
        )

    def exchange(self, index: int, term: Term) -> None:
        """Another term in place of one whose stencils come and go; `take_stencils` lays it out."""
        if self.varied:
            raise ValueError(
                f"{term.name} that come and go must be the same for all, and here copies of the state have "
                "materials of their own; solve them one after the other"
            )
        self.model = with_term(self.model, index, term)
        self._coloured = {key: found for key, found in self._coloured.items() if key[0] != index}
        if self.__dict__.get("_links") is not None:  # who is linked does not depend on stencils that change
            del self.__dict__["_links"]

    def set_pressure(self, index: int, pressure: float) -> None:
        """Set the pressure [Pa] of all triangles of a term in every arrangement of its rows."""
        for rows, _ in self._arranged(index):
            rows.pressure[:] = pressure
            self.device.push(rows.pressure)

    def set_force(self, index: int, force: np.ndarray) -> None:
        """Set the forces (m, 3) [N] of a term that pulls at vertices in every arrangement of its rows."""
        padded = np.concatenate([force, np.zeros((1, 3))])  # of lanes without a stencil, element -1
        for rows, element in self._arranged(index):
            rows.force[:] = np.moveaxis(padded[element], -1, 1)
            self.device.push(rows.force)

    def _arranged(self, index: int) -> list[tuple[Any, np.ndarray]]:
        """Rows of a term in every arrangement, and the stencil (rows, lanes) of each of their lanes."""
        if self.room:
            self.room.arrange_elements()
        elements = self._with_values[index]
        arranged = [(self.terms[index], self.vertices.element[index]), (elements.rows, elements.element)]
        arranged += [(b.rows, b.element) for key, b in self._coloured.items() if key[0] == index]
        links = self.__dict__.get("_links")
        if links is not None:
            arranged.append((links.terms[index], links.element[index]))
        return arranged

    def take_stencils(self) -> Changes | None:
        """Go over to the stencils that the terms have now, in the arrays that have room for them: None where
        it is not enough, and then nothing has changed."""
        if self.room is None:
            return None
        done = self.room.take(self.model.terms)
        if done is None:
            return None
        with for_all_copies(self.device):
            done.carry_out(self.device)
        self._use_colours(self.room.colours)
        self.version += 1
        return done

    def coloured_elements(
        self, k: int, cluster_size: int, cells: bool = False, smallest_last: bool = False
    ) -> ElementBatches:
        """The elements of the k-th term in groups, see `element_groups`, colour by colour."""
        name = k, cluster_size, cells, smallest_last
        if name not in self._coloured:
            term, n, lanes = self.model.terms[k], self.model.vertices, self.device.lanes
            self._coloured[name] = batch_coloured_elements(
                term, n, self.dtype, cluster_size, lanes, cells, smallest_last
            )
        batches = self._coloured[name]
        return replace(batches, rows=self._with_material(k, batches.rows, batches.element))

    @cached_property
    def _links(self) -> Links | None:
        device = self.device
        return batch_links(self.model.terms, self.model.free, self.dtype, device.lanes, device.at_once)

    def links(self) -> Links | None:
        """The vertices that weak constraints tie together."""
        return self._links and replace(self._links, terms=self._with_materials(self._links))
