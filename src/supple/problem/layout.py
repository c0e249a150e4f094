"""What is constant of a problem, laid out for kernels: the visits of vertices by colour, and the elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from supple.model import Conditions, Model
from supple.ordering import (
    ElementBatches,
    Links,
    VertexBatches,
    batch_coloured_elements,
    batch_elements,
    batch_links,
    batch_vertices,
)
from supple.problem.device import Device
from supple.problem.materials import are_alike, are_varied, materials_of
from supple.terms import refreshed, several


class Layout:
    """terms: rows of every term by batches of free vertices, colour after colour; colour_start (colours + 1,)
    the first batch of each; elements: the elements of every term in batches; vertices: the batches
    themselves. varied: copies of the state have materials of their own."""

    def __init__(self, model: Model, dtype: np.dtype, device: Device, varied: bool) -> None:
        self.model, self.dtype, self.device, self.varied = model, dtype, device, varied
        self.vertices = batch_vertices(model.terms, model.free, dtype, device.lanes, device.at_once)
        self._elements = [batch_elements(term, dtype, model.vertices, device.lanes) for term in model.terms]
        self._coloured: dict[tuple[int, int], ElementBatches] = {}
        self.colour_start = self.vertices.colour_start
        self.use([materials_of(model)])

    @property
    def colours(self) -> int:
        return len(self.colour_start) - 1

    @cached_property
    def widest(self) -> int:
        """Batches of the colour that has the most."""
        return int(np.diff(self.colour_start).max(initial=0))

    def suits(self, conditions: Sequence[Conditions]) -> bool:
        """Whether the materials of conditions can be used without a new layout."""
        if self.varied or not are_varied(conditions):
            return True
        return len(conditions) == 1 and are_alike(self.model, self._wanted(conditions)[0])

    def take(self, conditions: Sequence[Conditions]) -> bool:
        """Use the materials of conditions; False where they are those in use."""
        wanted = self._wanted(conditions)
        known = not self.varied and wanted[0] == self._materials[0]
        if not known:
            self.use(wanted)
        return not known

    def _wanted(self, conditions: Sequence[Conditions]) -> list[tuple]:
        return [c.materials or materials_of(self.model) for c in conditions]

    def use(self, materials: list[tuple]) -> None:
        """Use one material of each elastic term for each copy."""
        self._materials = materials
        self.terms = self._with_materials(self.vertices)
        self.elements = [
            replace(elements, rows=self._with_material(k, elements.rows, elements.element))
            for k, elements in enumerate(self._elements)
        ]

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
        materials = [of_copy[number] for of_copy in self._materials]
        if self.varied:
            placed = several(materials, element, len(terms[k].vertices), self.dtype)
            return rows._replace(material=placed)
        rows, written = refreshed(rows, materials[0], element)
        for array in written:
            self.device.push(array)
        return rows

    def coloured_elements(self, k: int, cluster_size: int) -> ElementBatches:
        """The elements of the k-th term in clusters, colour by colour."""
        if (k, cluster_size) not in self._coloured:
            term, n, lanes = self.model.terms[k], self.model.vertices, self.device.lanes
            self._coloured[k, cluster_size] = batch_coloured_elements(
                term, n, self.dtype, cluster_size, lanes
            )
        batches = self._coloured[k, cluster_size]
        return replace(batches, rows=self._with_material(k, batches.rows, batches.element))

    @cached_property
    def _links(self) -> Links | None:
        device = self.device
        return batch_links(self.model.terms, self.model.free, self.dtype, device.lanes, device.at_once)

    def links(self) -> Links | None:
        """The vertices that weak constraints tie together."""
        return self._links and replace(self._links, terms=self._with_materials(self._links))
