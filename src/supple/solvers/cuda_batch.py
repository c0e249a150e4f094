"""Many equilibria of one model on a CUDA device: copies of the state that share everything constant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from supple.kernels import RECORD
from supple.model import Conditions, Model
from supple.ordering import Links, batch_links
from supple.solvers import sums
from supple.solvers.cuda_problem import CudaProblem
from supple.solvers.solver import Solver


class CudaBatch(CudaProblem):
    """The potentials of several equilibria of a model, each under its own conditions.

    u and net are (copies (n + 1), 4), copy after copy; forces and, where they differ, material parameters
    have a block for each copy. Only the `active` copies are worked on."""

    def __init__(self, model: Model, precision: str, conditions: Sequence[Conditions]) -> None:
        self._materials: list[tuple] = []
        self._varied = _is_varied(conditions)
        super().__init__(_numbered(model) if self._varied else model, precision, len(conditions))
        self.model = model
        self._numbered_rows = self.terms, self.elements
        self.take(conditions)

    def suits(self, conditions: Sequence[Conditions]) -> bool:
        """Whether `take` can take them."""
        return _is_varied(conditions) == self._varied

    def take(self, conditions: Sequence[Conditions]) -> None:
        """Go over to other conditions. What is the same for all of them stays on the device."""
        model, n, copies = self.model, self.model.vertices + 1, len(conditions)
        if self._varied or copies != self.copies:
            for name in ("_sizes", "_measured", "_softness", "_rest_stiffness"):
                self.__dict__.pop(name, None)
        self._shared = {k: v for k, v in self._shared.items() if k == "links" and not self._varied}
        self._forget_launches()  # lest the state that was is kept on the device beside the new one
        self.copies, self.active = copies, np.arange(copies, dtype=np.int32)
        self._energy_scale, self._energies = np.zeros(copies), None
        if len(self.u) != copies * n or self.anchor is not self.u:
            self.u = self.anchor = np.zeros((copies * n, RECORD), self.dtype)  # nothing pulls towards û here
            self.net = self.zeros(self.u.shape)
            self._at_targets = self._at_targets._replace(u=self.u)
        else:  # to touch new memory would take longer
            self.u[:] = 0
        alike = all(c.force is conditions[0].force for c in conditions)
        self.force = np.stack([c.force for c in conditions[: 1 if alike else None]])
        self._loads = np.broadcast_to([force[model.free].any() for force in self.force], copies)
        self._loaded = bool(self._loads.any())
        self.vertices = self.vertices._replace(
            force=np.ascontiguousarray(self._force_by_batch(self.vertices.own))
        )
        by_copy = self.u.reshape(copies, n, RECORD)
        for u, c in zip(by_copy, conditions, strict=True):
            if c.start is not None:
                u[:-1, :3] = c.start - model.rest
            u[model.pinned, :3] = c.pinned - model.rest[model.pinned]
        if self._varied:
            unchanged = tuple(term.material for term in model.terms if term.material is not None)
            self._materials = [c.materials or unchanged for c in conditions]
            terms, elements = self._numbered_rows
            self.terms = self._with_materials(terms)
            rows = self._with_materials(tuple(e.rows for e in elements))
            self.elements = [replace(e, rows=r) for e, r in zip(elements, rows, strict=True)]
        self.push(self.u)
        self._upload()

    @property
    def kinds(self) -> int:
        return self.copies if self._varied else 1

    def batch_links(self) -> Links | None:
        if not self._varied:
            return super().batch_links()
        model = _numbered(self.model)
        links = batch_links(model.terms, model.free, self.dtype, self.lanes, self._at_once)
        return links and replace(links, terms=self._with_materials(links.terms))

    def _with_materials(self, rows: tuple) -> tuple:
        """Rows of all terms whose material parameters are the numbers of their elements, with the parameters
        of every copy there instead."""
        found, varied = 0, list(rows)
        for k, term in enumerate(self.model.terms):
            if term.material is not None:
                of_copies = [materials[found] for materials in self._materials]
                varied[k] = _with_parameters(rows[k], of_copies, len(term.vertices), self.dtype)
                found += 1
        return tuple(varied)

    def is_loaded(self, copy: int) -> bool:
        return bool(self._loads[copy])

    def displacements_on_device(self, copy: int = 0) -> Any:
        self._catch_up()
        n = self.model.vertices + 1
        return self._mirror.duplicate(self.u, copy * n, (copy + 1) * n)

    def all_positions(self) -> Iterator[np.ndarray]:
        """(n, 3) float64 of one copy after the other."""
        self.pull(self.u)
        for u in self.u.reshape(self.copies, -1, RECORD):
            yield self.model.rest + u[:-1, :3]


def _is_varied(conditions: Sequence[Conditions]) -> bool:
    """Whether some have other materials."""
    return any(c.materials is not None for c in conditions)


def bytes_per_copy(model: Model, precision: str, solver: Solver) -> int:
    """What each further copy needs on the device: records of u, of what a step goes on from and of what a
    solve goes back to; forces and sums by vertex, energies, and the parameters of every visit, in case
    materials differ; and what the solver keeps. A tenth is added for what is rounded up."""
    visits = sum(term.vertices.size + len(term.vertices) for term in model.terms)
    numbers = 7 * RECORD * (model.vertices + 1) + 16 * model.vertices + model.elements
    numbers += 2 * visits + 16 * sums.PARTS
    size = np.dtype(precision).itemsize
    return int(1.1 * (size * numbers + solver.memory(model, size)))


def _numbered(model: Model) -> Model:
    """The model with the number of its element in place of every material parameter."""

    def numbered(term):
        if term.material is None:
            return term
        numbers = np.arange(len(term.vertices), dtype=float)
        return replace(term, material=type(term.material)._make([numbers] * len(term.material)))

    return replace(model, terms=tuple(numbered(term) for term in model.terms))


def _with_parameters(rows, materials: Sequence, elements: int, dtype: np.dtype):
    """Rows whose parameters are element numbers, with those of each copy there instead."""
    number = np.rint(rows.material[0]).astype(np.int64)
    tables = [
        np.stack([np.broadcast_to(material[k], elements) for material in materials]).astype(dtype)
        for k in range(len(rows.material))
    ]
    placed = (np.ascontiguousarray(table[:, number]) for table in tables)
    return rows._replace(material=type(rows.material)._make(placed))
