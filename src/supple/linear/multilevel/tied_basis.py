"""Change of basis that decouples stiff ties: tied vertices are described by their offset from the tie.

A weak constraint between a vertex and a point of another body couples five vertices; a stiff one hides their
soft modes from aggregation and smoothing. The substitution x_a = s_a + Σ w_b x_b for each dependent vertex a
makes the constraint a function of s_a alone: its coupling to the x_b drops out of the matrix. The offset s_a
is stiff and vanishes in rigid motions, so smoothing alone reduces its error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, eye_array

from supple.linear.assembly.sparsity import Pattern
from supple.linear.block_matrix import Blocks3x3
from supple.linear.vectors import SumRows, Sums, make_row_sums, sum_rows
from supple.ordering import MIN_PIVOT_RATIO, TieEquations, eliminate_ties, tie_equations

if TYPE_CHECKING:
    from supple.linear.assembly.hessian import Assembly
    from supple.problem.device import Device

STIFFNESS_RATIO = 10.0
"""Ratio of tie stiffness to the stiffness of the dependent vertex's own body above which a tie counts as
stiff."""


class Basis:
    """Change of basis x = B y with B = I + W, where W[a, b] is the weight of row b in dependent row a.

    Attributes:
        follows: (f,) True for rows of y that are offsets s.
        pattern: Sparsity pattern of Bᵀ H B.
    """

    def __init__(self, weights: csr_array, follows: np.ndarray, pattern: Pattern, device: Device) -> None:
        self.follows, self._device = follows, device
        B = csr_array(eye_array(len(follows), format="csr") + weights)
        self.pattern, self._blocks = _transform_pattern(B, pattern)
        self._up, self._down, self._sums = (
            make_row_sums(B),
            make_row_sums(csr_array(B.T)),
            make_row_sums(self._blocks),
        )

    def matrix(self, H: Blocks3x3) -> Blocks3x3:
        """Compute Bᵀ H B in device memory."""
        data = self._device.zeros((len(self.pattern.indices) + 1, 3, 3), np.dtype(float))
        self._sum(self._sums, H.blocks, 9, data)
        return Blocks3x3(self.pattern.indptr, self.pattern.indices, data)

    def connections(self, own: np.ndarray) -> np.ndarray:
        """Connection strength of each block of Bᵀ H B; zero for off-diagonal blocks of an offset row.

        Args:
            own: (blocks, 3, 3) blocks of H.
        """
        blocks = (self._blocks @ own.reshape(len(own), 9)).reshape(-1, 3, 3)
        strength = np.sqrt(np.square(blocks).sum(axis=(1, 2)))
        rows = np.repeat(np.arange(self.pattern.rows), np.diff(self.pattern.indptr))
        separate = self.follows[rows] | self.follows[self.pattern.indices]
        separate[self.pattern.diagonal] = False
        return np.where(separate, 0.0, strength)

    def forces(self, r: np.ndarray) -> np.ndarray:
        """Compute Bᵀ r for padded vectors (f, 4)."""
        return self._sum(self._down, r, 4, self._device.zeros(r.shape, np.dtype(float)))

    def positions(self, y: np.ndarray) -> np.ndarray:
        """Compute B y for padded vectors (f, 4)."""
        return self._sum(self._up, y, 4, self._device.zeros(y.shape, np.dtype(float)))

    def _sum(self, sums: Sums, source: np.ndarray, width: int, out: np.ndarray) -> np.ndarray:
        self._device.run(sum_rows, 1, SumRows(*sums, source, width, 0, out))
        return out


def stiff_basis(assembly: Assembly, own: np.ndarray) -> Basis | None:
    """Build the change of basis for the stiff ties of a problem; None without stiff ties.

    Args:
        assembly: Assembly of the problem.
        own: (f,) stiffness of each free vertex [N/m], the reference for stiff ties.
    """
    model, free = assembly.problem.model, assembly.free
    ties = tie_equations(model.terms, model.free)
    C = csr_array(ties.coefficients[:, free])
    if not C.nnz:
        return None
    row = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr))
    shares = np.sqrt(3) * ties.stiffness[row] * C.data**2
    body = np.maximum(own - np.bincount(C.indices, shares, len(free)), 0)
    largest = np.zeros(C.shape[0])
    np.maximum.at(largest, row, np.abs(C.data))
    soft = (shares <= STIFFNESS_RATIO * body[C.indices]) & (np.abs(C.data) >= MIN_PIVOT_RATIO * largest[row])
    stiff = (largest > 0) & (np.bincount(row[soft], minlength=C.shape[0]) == 0)
    if not stiff.any():
        return None
    weights, follows = eliminate_ties(TieEquations(csr_array(C[stiff]), ties.stiffness[stiff]))
    return None if follows.all() else Basis(weights, follows, assembly.pattern, assembly.problem.device)


def _transform_pattern(B: csr_array, pattern: Pattern) -> tuple[Pattern, csr_array]:
    """Pattern of Bᵀ H B, and the sparse matrix that expresses its blocks as sums over blocks of H."""
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
