"""Scalar Laplace problems L Y = B with three right-hand sides, solved by multigrid-preconditioned CG.

The cycles are those of `linear` with piecewise constant aggregates. L is constant, so its levels are built
once.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from supple.linear.assembly.sparsity import Pattern
from supple.linear.block_matrix import ScalarEntries
from supple.linear.multilevel.aggregation import Levels, coarsen
from supple.linear.multilevel.spectral_radius import POWER_PHASES, raise_powers
from supple.linear.multilevel.v_cycle import Cycle, Level
from supple.linear.multilevel_cg_kernels import allocate_vectors, iterate
from supple.problem import Device

DIAGONAL_SHIFT = 1e-9
"""Fraction of the diagonal that is added to it, since L is singular for unconstrained bodies."""

SMOOTHER_DEGREE, OVERCORRECTION = 3, 1.5
"""Degree of the smoother and over-correction factor of the coarse levels, as in `Multilevel`."""

MAX_DENSE_ROWS = 400
"""Largest number of rows of the last level for which its matrix is inverted."""


class Laplace:
    """Solver for one symmetric positive semi-definite matrix L, with vectors in device memory.

    Args:
        L: The matrix.
        device: Device of the vectors.
        levels: Multigrid levels of the pattern of L, if known.
    """

    def __init__(self, L: csr_array, device: Device, levels: Levels | None = None) -> None:
        self._device = device
        self.L = L = csr_array(L)
        L.sort_indices()
        rows = np.repeat(np.arange(L.shape[0]), np.diff(L.indptr))
        diagonal = np.flatnonzero(rows == L.indices)
        L.data[diagonal] = (1 + DIAGONAL_SHIFT) * L.data[diagonal] + np.finfo(float).tiny
        pattern = Pattern(
            L.indptr.astype(np.int32), L.indices.astype(np.int32), diagonal.astype(np.int32), []
        )
        if levels is None:
            levels = coarsen(pattern, np.abs(L.data), np.ones(pattern.rows, bool))
        self._A = ScalarEntries(pattern.indptr, pattern.indices, L.data)
        self._cycle = self._levels(levels, pattern)
        self._vectors = allocate_vectors(device, pattern.rows)
        squares = (device.zeros((2, n), np.dtype(float)) for n in (pattern.rows, levels.rows))
        device.run(raise_powers, POWER_PHASES, self._cycle, *squares)

    def _levels(self, levels: Levels, pattern: Pattern) -> Cycle:
        blocks = _products(levels, self._A.blocks)

        def level(A: ScalarEntries, diagonal: np.ndarray, parent: np.ndarray) -> Level:
            vectors = (self._device.zeros((len(parent), 4), np.dtype(float)) for _ in range(4))
            return Level(A, 1 / A.blocks[diagonal], parent, (), (), *vectors)

        fine = level(self._A, pattern.diagonal, levels.fine_parent)
        coarse = level(ScalarEntries(levels.indptr, levels.indices, blocks), levels.diagonal, levels.parent)
        shape = levels.start, levels.child_start, levels.child, _dense(levels, blocks)
        return Cycle(fine, coarse, *shape, np.ones(len(levels.start)), SMOOTHER_DEGREE, OVERCORRECTION)

    def solve(self, B: np.ndarray, accuracy: float, most: int = 100) -> np.ndarray:
        """Solve L Y = B approximately.

        Args:
            B: (n, 4) right-hand sides, padded vectors in device memory.
            accuracy: Approximate bound of |B - L Y| / |B|.
            most: Iteration limit.

        Returns:
            Y (n, 4), padded vectors in device memory that the next solve overwrites.
        """
        self._device.assign(self._vectors.r, B)
        iterate(self._device, self._A, self._cycle, self._vectors, accuracy, 0.0, most)
        return self._vectors.x


def _products(levels: Levels, fine: np.ndarray) -> np.ndarray:
    """Return the entries of all coarse matrices: sums of the fine entries over the aggregates."""
    blocks = np.bincount(levels.fine_slots, fine, len(levels.indices))
    ends = levels.indptr[levels.start]
    for first, last in pairwise(ends[:-1]):
        blocks += np.bincount(levels.slots[first:last], blocks[first:last], len(blocks))
    return blocks


def _dense(levels: Levels, blocks: np.ndarray) -> np.ndarray:
    """Return the inverse of the last level's matrix, or an empty array if the level is large."""
    first, last = levels.start[-2:]
    m, inside = int(last - first), slice(levels.indptr[first], levels.indptr[last])
    if m > MAX_DENSE_ROWS:
        return np.zeros((0, 0))
    indptr = levels.indptr[first : last + 1] - levels.indptr[first]
    square = csr_array((blocks[inside], levels.indices[inside] - first, indptr), shape=(m, m)).toarray()
    square.flat[:: m + 1] *= 1 + DIAGONAL_SHIFT
    return np.linalg.inv(0.5 * (square + square.T))
