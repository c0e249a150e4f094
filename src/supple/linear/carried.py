"""The Hessian of elements whose corners hang on nodes: Wᵀ K W with that of the corners, K, and weights W.

An element of 32 nodes has 1,024 blocks, those of its corners are 16, and elements share them: so these are
summed up over elements first, for every pair of points, and each sum goes to the 64 pairs of nodes that carry
the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from supple.linear.filling import compute_blocks, host_elements
from supple.linear.vectors import SumRows, Sums, sum_rows
from supple.ordering.colouring import sort_corners

if TYPE_CHECKING:
    from supple.problem import Problem
    from supple.terms import Carriage


def point_pairs(carriage: Carriage) -> tuple[np.ndarray, np.ndarray]:
    """(pairs (e, 2) of points p ≤ q that share an element, each with itself too; (m, 4, 4) which of them the
    corners of each element are)."""
    corners, points = carriage.corners.astype(np.int64), len(carriage.nodes)
    low = np.minimum(corners[:, :, None], corners[:, None])
    high = np.maximum(corners[:, :, None], corners[:, None])
    keys, which = np.unique(low * points + high, return_inverse=True)
    return np.stack(np.divmod(keys, points), axis=1), which.reshape(low.shape)


def carried_stencils(carriage: Carriage) -> np.ndarray:
    """(e, 16) the nodes of both points of each pair: what shares a block with what."""
    pairs, _ = point_pairs(carriage)
    return carriage.nodes[pairs].reshape(len(pairs), -1)


class CarriedBlocks:
    """The blocks of a term whose corners hang on nodes, and how they add up in each block of the matrix."""

    def __init__(self, problem: Problem, index: int, slots: np.ndarray, blocks: int) -> None:
        """slots (e, 16, 16): see `carried_stencils`: the places of their blocks, or negative."""
        self._problem, self._term = problem, problem.model.terms[index]
        carriage = self._term.carriage
        assert carriage is not None
        self._elements = host_elements(problem, index)
        pairs, which = point_pairs(carriage)
        turned = carriage.corners[:, :, None] > carriage.corners[:, None]
        self._in_pairs = _sums(which + len(pairs) * turned, np.ones(which.size), 2 * len(pairs))
        w = carriage.weights[pairs]
        weights = w[:, 0, :, None] * w[:, 1, None, :]
        there, back = (
            slots[:, :8, 8:],
            np.where((pairs[:, 0] < pairs[:, 1])[:, None, None], slots[:, 8:, :8], -1),
        )
        both = np.stack([there, back])
        self._in_matrix = _sums(both, np.stack([weights, np.swapaxes(weights, 1, 2)]).ravel(), blocks, 64)
        device = problem.device
        self._blocks = np.zeros((len(which), 4, 4, 3, 3))
        self._sums = device.zeros((2 * len(pairs), 3, 3), np.dtype(float))

    def add(self, kind: str, u: np.ndarray, data: np.ndarray) -> None:
        """At displacements u, to the blocks of the matrix."""
        device, blocks = self._problem.device, self._blocks
        compute_blocks(device, self._term, self._elements, kind, u, blocks)
        device.run(sum_rows, 1, SumRows(*self._in_pairs, blocks, 9, 0, self._sums))
        device.run(sum_rows, 1, SumRows(*self._in_matrix, self._sums, 9, 1, data))


def _sums(target: np.ndarray, weights: np.ndarray, rows: int, of_each: int = 1) -> Sums:
    """Where things go: the k-th, with the weight (k,), into row target[k], nowhere where that is negative;
    of_each: how many in a row are parts of the same source."""
    flat = np.ascontiguousarray(target.ravel(), np.int32)
    start, order = np.zeros(rows + 1, np.int64), np.empty(int((flat >= 0).sum()), np.int64)
    sort_corners(flat, start, order)
    sources = (order // of_each).astype(np.int32)
    return Sums(start.astype(np.int32), sources, weights[order], np.arange(rows, dtype=np.int32))
