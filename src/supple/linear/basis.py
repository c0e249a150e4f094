"""Unknowns in which stiff ties are harmless: how far tied vertices are from where they would be carried to.

A weak constraint between a vertex and a point of another body couples five vertices, and a stiff one hides
what is soft about them from aggregates and smoothing. With x_a = s_a + Σ w_b x_b for each vertex a that
follows others, the constraint is a function of s_a alone: what the x_b see of it is gone from the matrix, and
s_a, which is stiff and zero in rigid motions, needs smoothing only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, eye_array

from supple.linear.block_rows import Threes
from supple.linear.pattern import Pattern
from supple.linear.vectors import SumRows, Sums, sum_rows, sums_of
from supple.ordering import NEARLY_LARGEST, Equations, carrying, equations

if TYPE_CHECKING:
    from supple.linear.assembly import Assembly
    from supple.problem.device import Device

STIFF = 10.0
"""Ties so many times as stiff as what the vertex is part of that would follow count as stiff."""


class Basis:
    """x = B y of a matrix's rows, B = I + W with W[a, b] where row a follows row b. pattern: of the matrix
    Bᵀ H B; follows (f,): which rows of y are distances s."""

    def __init__(self, weights: csr_array, follows: np.ndarray, pattern: Pattern, device: Device) -> None:
        self.follows, self._device = follows, device
        B = csr_array(eye_array(len(follows), format="csr") + weights)
        self.pattern, self._blocks = _transformed(B, pattern)
        self._up, self._down, self._sums = sums_of(B), sums_of(csr_array(B.T)), sums_of(self._blocks)

    def matrix(self, H: Threes) -> Threes:
        """Bᵀ H B, where kernels see it."""
        data = self._device.zeros((len(self.pattern.indices) + 1, 3, 3), np.dtype(float))
        self._sum(self._sums, H.blocks, 9, data)
        return Threes(self.pattern.indptr, self.pattern.indices, data)

    def connections(self, own: np.ndarray) -> np.ndarray:
        """How strongly blocks connect rows, where those of H have own (blocks, 3, 3): not at all where one is
        a distance."""
        blocks = (self._blocks @ own.reshape(len(own), 9)).reshape(-1, 3, 3)
        strength = np.sqrt(np.square(blocks).sum(axis=(1, 2)))
        rows = np.repeat(np.arange(self.pattern.rows), np.diff(self.pattern.indptr))
        apart = self.follows[rows] | self.follows[self.pattern.indices]
        apart[self.pattern.diagonal] = False
        return np.where(apart, 0.0, strength)

    def forces(self, r: np.ndarray) -> np.ndarray:
        """Bᵀ r of records (f, 4)."""
        return self._sum(self._down, r, 4, self._device.zeros(r.shape, np.dtype(float)))

    def positions(self, y: np.ndarray) -> np.ndarray:
        """B y."""
        return self._sum(self._up, y, 4, self._device.zeros(y.shape, np.dtype(float)))

    def _sum(self, sums: Sums, source: np.ndarray, width: int, out: np.ndarray) -> np.ndarray:
        self._device.run(sum_rows, 1, SumRows(*sums, source, width, 0, out))
        return out


def stiff_basis(assembly: Assembly, own: np.ndarray) -> Basis | None:
    """The basis for those ties of a problem that are stiff beside own (f,) [N/m], the stiffness of each free
    vertex; None where there are none."""
    model, free = assembly.problem.model, assembly.free
    ties = equations(model.terms, model.free)
    C = csr_array(ties.coefficients[:, free])
    if not C.nnz:
        return None
    row = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr))
    shares = np.sqrt(3) * ties.stiffness[row] * C.data**2
    body = np.maximum(own - np.bincount(C.indices, shares, len(free)), 0)
    largest = np.zeros(C.shape[0])
    np.maximum.at(largest, row, np.abs(C.data))
    soft = (shares <= STIFF * body[C.indices]) & (np.abs(C.data) >= NEARLY_LARGEST * largest[row])
    stiff = (largest > 0) & (np.bincount(row[soft], minlength=C.shape[0]) == 0)
    if not stiff.any():
        return None
    weights, follows = carrying(Equations(csr_array(C[stiff]), ties.stiffness[stiff]))
    return None if follows.all() else Basis(weights, follows, assembly.pattern, assembly.problem.device)


def _transformed(B: csr_array, pattern: Pattern) -> tuple[Pattern, csr_array]:
    """The pattern of Bᵀ H B, and the sums over the blocks of H that its blocks are."""
    f, blocks = pattern.rows, len(pattern.indices)
    rows, columns = np.repeat(np.arange(f), np.diff(pattern.indptr)), pattern.indices
    width = np.diff(B.indptr)
    count = width[rows] * width[columns]
    block = np.repeat(np.arange(blocks), count)
    rank = np.arange(len(block)) - np.repeat(np.cumsum(count) - count, count)
    left, right = np.divmod(rank, width[columns][block])
    p, q = B.indptr[rows[block]] + left, B.indptr[columns[block]] + right
    key = B.indices[p].astype(np.int64) * f + B.indices[q]
    found, slot = np.unique(key, return_inverse=True)
    sums = csr_array((B.data[p] * B.data[q], (slot, block)), shape=(len(found), blocks))
    row, column = np.divmod(found, f)
    indptr = np.searchsorted(row, np.arange(f + 1)).astype(np.int32)
    diagonal = np.searchsorted(found, np.arange(f) * (f + 1)).astype(np.int32)
    return Pattern(indptr, column.astype(np.int32), diagonal, []), sums
