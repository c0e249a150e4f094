"""Forces on single vertices, updated as the vertices move: the energy -f · u."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import dot
from supple.kernels import device_function, load
from supple.terms.base.term import Elemental, Elements, Incidence, energy, vertex_force


class NodalForceRows(NamedTuple):
    """Packed data: start (batches + 1,), first row of each batch; force (rows, 3, lanes) [N]."""

    start: Any
    force: Any


@dataclass(frozen=True, eq=False)
class NodalForces(Elemental):
    """-Σ f · u over vertices (m, 1) with forces (m, 3) [N]; capacity: m for variable forces, or None."""

    vertices: np.ndarray
    force: np.ndarray
    capacity: int | None = None

    name: ClassVar[str] = "follower tractions"
    material: ClassVar[None] = None
    loads: ClassVar[bool] = True
    family: ClassVar[str] = "load"

    @property
    def translatable(self) -> np.ndarray:
        return np.zeros(len(self.vertices), bool)

    def rows(self, incidence: Incidence, start: np.ndarray) -> NodalForceRows:
        return NodalForceRows(start, incidence.pack(self.force[incidence.element]))

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """Zero: the force is constant during a solve."""
        return np.zeros((len(self.vertices), 1, 1, 3, 3))


@device_function
def _force(term, row):
    return load(term.force, row, 0), load(term.force, row, 1), load(term.force, row, 2)


@vertex_force.of(NodalForceRows)
def _vertex_force(term, row, u, ui):
    f = _force(term, row)
    zero = 0.0 * f[0]
    return f, (zero, zero, zero, zero, zero, zero)


@energy.of(NodalForceRows)
def _energy(term, row, u, ui):
    return -dot(_force(term, row), ui)
