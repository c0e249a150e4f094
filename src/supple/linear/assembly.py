"""The Hessian of the potential over the free vertices as a sparse matrix of 3×3 blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import bsr_matrix

from supple.kernels import kernel
from supple.linear.elements import Bound, Tangent, add_elements, arrange_elements
from supple.linear.pattern import pattern_of
from supple.materials import LinearElastic
from supple.problem.held import hold_blocks
from supple.terms import TetElasticity

if TYPE_CHECKING:
    from supple.problem import Problem

KINDS: dict[str, Any] = {"exact": Tangent(0), "projected": Tangent(1), "bound": Bound(0)}
"""The Hessian itself, its positive semi-definite part element by element, and what sweeps use for it."""


@kernel
def _accumulate(blocks, slots, data):
    """data[slots[e, a, b]] += blocks[e, a, b]; negative slots belong to pinned vertices."""
    for e in range(slots.shape[0]):
        for a in range(slots.shape[1]):
            for b in range(slots.shape[2]):
                slot = slots[e, a, b]
                if slot >= 0:
                    for i in range(3):
                        for j in range(3):
                            data[slot, i, j] += blocks[e, a, b, i, j]


class Assembly:
    """The sparsity pattern, found once, and the values for each state.

    free (f,): ids of the free vertices in the order of the matrix, in which neighbours in space are near to
    each other; pattern: where its blocks are. precision: of the matrix.
    """

    def __init__(self, problem: Problem, precision: str = "float64") -> None:
        self.problem, self.precision = problem, np.dtype(precision)
        model = problem.model
        free = np.flatnonzero(model.free)
        self.free = free[along_curve(model.rest[free])]
        number_of = np.full(model.vertices, -1, np.int64)
        number_of[self.free] = np.arange(len(self.free))
        stencils = [number_of[term.vertices] for term in model.terms]
        self.pattern = pattern_of(stencils, len(self.free), problem.device.threads)
        places = number_of, len(self.pattern.indices), problem.dtype, problem.device
        self._elements = [
            arrange_elements(term, slots, *places) if _has_principal_frame(term) else None
            for term, slots in zip(model.terms, self.pattern.slots, strict=True)
        ]

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return 3 * len(self.free)

    @property
    def rest(self) -> np.ndarray:
        """(f, 3) rest positions of the free vertices [m]."""
        return self.problem.model.rest[self.free]

    @property
    def positions(self) -> np.ndarray:
        """(f, 3) where the free vertices are [m]."""
        return self.rest + self.problem.u[self.free, :3]

    def unheld(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (3 f, ...) of the free vertices without what they have along held directions."""
        model = self.problem.model
        if model.held is None:
            return vectors
        every = np.zeros((vectors[0].size, model.vertices, 3))
        every[:, self.free] = np.moveaxis(vectors.reshape(len(self.free), 3, -1), 2, 0)
        return np.moveaxis(model.unheld(every)[:, self.free], 0, 2).reshape(vectors.shape)

    def restrict(self, records: np.ndarray) -> np.ndarray:
        """The vector of the free vertices from (n + 1, 4) records."""
        return records[self.free, :3].ravel()

    def at_rest(self) -> np.ndarray:
        """(blocks, 3, 3) the bound at rest and without inertia [N/m], which tells how vertices connect."""
        return self._blocks("bound", np.zeros_like(self.problem.u))[:-1]

    def hessian(self, kind: str) -> bsr_matrix:
        """∂²E/∂u² at the problem's u; kind is exact, projected or bound."""
        p, pattern = self.problem, self.pattern
        data = self._blocks(kind, p.u)
        inertia = p.loads.inertia[self.free]
        if inertia.any():
            data[pattern.diagonal] += inertia[:, None, None] * np.eye(3)
        if p.model.held is not None:
            rows = np.repeat(self.free, np.diff(pattern.indptr))
            hold_blocks(data[:-1], rows, self.free[pattern.indices], p.model)
        return bsr_matrix((data[:-1], pattern.indices, pattern.indptr), shape=(self.size, self.size))

    def _blocks(self, kind: str, u: np.ndarray) -> np.ndarray:
        """(blocks + 1, 3, 3) of the terms at displacements u, the last of which is for what nobody wants."""
        p, pattern = self.problem, self.pattern
        data = np.zeros((len(pattern.indices) + 1, 3, 3), self.precision)
        for term, elements, rows, slots in zip(
            p.model.terms, p.layout.elements, self._elements, pattern.slots, strict=True
        ):
            if rows is None:
                blocks = term.hessian_blocks(elements, u, kind, p.device.threads)
                _accumulate(np.ascontiguousarray(blocks), slots, data)
            else:
                places = rows.colour_start, rows.start, rows.own, rows.rows, rows.slots
                p.device.run(add_elements, rows.colours, KINDS[kind], *places, u, data)
        return data


def _has_principal_frame(term: Any) -> bool:
    """Whether `add_elements` knows the second derivatives of its elements."""
    material = term.material
    if not isinstance(term, TetElasticity) or not material.isotropic:
        return False
    return material.objective or type(material) is LinearElastic


def along_curve(points: np.ndarray) -> np.ndarray:
    """The order of points (n, 3) along Morton's curve, on which those near to each other in space are mostly
    near to each other."""
    if len(points) == 0:
        return np.zeros(0, np.int64)
    low, size = points.min(axis=0), np.ptp(points, axis=0).max()
    cells = ((points - low) * (1023 / max(float(size), 1e-300))).astype(np.uint64)
    key = np.zeros(len(points), np.uint64)
    for bit in range(10):
        for axis in range(3):
            key |= ((cells[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + axis)
    return np.argsort(key, kind="stable")
