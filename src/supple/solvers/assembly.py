"""The Hessian of the potential over the free vertices as a sparse matrix of 3×3 blocks."""

from __future__ import annotations

import numpy as np
from scipy.sparse import bsr_matrix

from supple.kernels import kernel
from supple.problem import Problem
from supple.problem.held import hold_blocks


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

    free (f,): ids of the free vertices in the order of the matrix.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.free = np.flatnonzero(problem.model.free)
        f = len(self.free)
        number = np.full(problem.model.vertices, -1, np.int64)
        number[self.free] = np.arange(f)
        keys = []
        for term in problem.model.terms:
            v = number[term.vertices]
            row, column = v[:, :, None], v[:, None, :]
            keys.append(np.where((row >= 0) & (column >= 0), row * f + column, -1))
        diagonal = np.arange(f) * (f + 1)
        pattern = np.unique(np.concatenate([diagonal, *(k.ravel() for k in keys)]))
        pattern = pattern[pattern >= 0]
        self._slots = [np.where(k >= 0, np.searchsorted(pattern, k), -1) for k in keys]
        self._diagonal = np.searchsorted(pattern, diagonal)
        self._rows, self._indices = np.divmod(pattern, f)
        self._indptr = np.searchsorted(self._rows, np.arange(f + 1))

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return 3 * len(self.free)

    @property
    def rest(self) -> np.ndarray:
        """(f, 3) rest positions of the free vertices [m]."""
        return self.problem.model.rest[self.free]

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

    def hessian(self, kind: str) -> bsr_matrix:
        """∂²E/∂u² at the problem's u; kind is exact, projected or bound."""
        p = self.problem
        data = np.zeros((len(self._indices), 3, 3))
        for term, elements, slots in zip(p.model.terms, p.layout.elements, self._slots, strict=True):
            blocks = term.hessian_blocks(elements, p.u, kind, p.device.threads)
            _accumulate(np.ascontiguousarray(blocks), slots, data)
        data[self._diagonal] += p.loads.inertia[self.free, None, None] * np.eye(3)
        hold_blocks(data, self.free[self._rows], self.free[self._indices], p.model)
        return bsr_matrix((data, self._indices, self._indptr), shape=(self.size, self.size))
