"""Hessian of embedded elements, whose corners interpolate grid nodes: Wᵀ K W, with corner Hessian K and
weights W.

An element of 32 nodes has 1,024 node blocks, but only 16 corner blocks, many of them shared with other
elements. Corner blocks are therefore summed over elements first, for every pair of embedded points; each sum
then goes to the 64 node pairs of the two points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from supple.linear.assembly.block_kernels import compute_blocks, host_elements
from supple.linear.vectors import SumRows, Sums, sum_rows
from supple.ordering.coloring import sort_corners

if TYPE_CHECKING:
    from supple.problem import Problem
    from supple.terms import NodeInterpolation


def point_pairs(carriage: NodeInterpolation) -> tuple[np.ndarray, np.ndarray]:
    """List the pairs of embedded points that share an element.

    Returns:
        pairs (e, 2) of points p ≤ q, including p = q, and the pair index (m, 4, 4) of each pair of element
        corners.
    """
    corners, points = carriage.corners.astype(np.int64), len(carriage.nodes)
    low = np.minimum(corners[:, :, None], corners[:, None])
    high = np.maximum(corners[:, :, None], corners[:, None])
    keys, which = np.unique(low * points + high, return_inverse=True)
    return np.stack(np.divmod(keys, points), axis=1), which.reshape(low.shape)


def embedded_stencils(carriage: NodeInterpolation) -> np.ndarray:
    """(e, 16) nodes of both points of each pair: the stencils of the node Hessian."""
    pairs, _ = point_pairs(carriage)
    return carriage.nodes[pairs].reshape(len(pairs), -1)


class EmbeddedBlocks:
    """Hessian blocks of a term with embedded corners, and their sums in each matrix block."""

    def __init__(self, problem: Problem, index: int, slots: np.ndarray, blocks: int) -> None:
        """Prepare the sums over elements and node pairs.

        Args:
            problem: Problem that owns the term.
            index: Index of the term in the model.
            slots: (e, 16, 16) matrix block of each node pair of `embedded_stencils`, negative for none.
            blocks: Number of matrix blocks.
        """
        self._problem, self._term = problem, problem.model.terms[index]
        carriage = self._term.node_interpolation
        assert carriage is not None
        self._elements = host_elements(problem, index)
        pairs, which = point_pairs(carriage)
        turned = carriage.corners[:, :, None] > carriage.corners[:, None]
        self._in_pairs = _sums(which + len(pairs) * turned, np.ones(which.size), 2 * len(pairs))
        w = carriage.weights[pairs]
        weights = w[:, 0, :, None] * w[:, 1, None, :]
        forward, backward = (
            slots[:, :8, 8:],
            np.where((pairs[:, 0] < pairs[:, 1])[:, None, None], slots[:, 8:, :8], -1),
        )
        both = np.stack([forward, backward])
        self._in_matrix = _sums(both, np.stack([weights, np.swapaxes(weights, 1, 2)]).ravel(), blocks, 64)
        device = problem.device
        self._blocks = np.zeros((len(which), 4, 4, 3, 3))
        self._sums = device.zeros((2 * len(pairs), 3, 3), np.dtype(float))

    def add(self, kind: str, u: np.ndarray, data: np.ndarray) -> None:
        """Add the blocks at displacements u to the matrix values `data`."""
        device, blocks = self._problem.device, self._blocks
        compute_blocks(device, self._term, self._elements, kind, u, blocks)
        device.run(sum_rows, 1, SumRows(*self._in_pairs, blocks, 9, 0, self._sums))
        device.run(sum_rows, 1, SumRows(*self._in_matrix, self._sums, 9, 1, data))


def _sums(target: np.ndarray, weights: np.ndarray, rows: int, of_each: int = 1) -> Sums:
    """Build weighted row sums from a target row per entry.

    Args:
        target: Target row of each entry, negative for none.
        weights: (k,) weight of each entry.
        rows: Number of target rows.
        of_each: Number of consecutive entries that share a source.
    """
    flat = np.ascontiguousarray(target.ravel(), np.int32)
    start, order = np.zeros(rows + 1, np.int64), np.empty(int((flat >= 0).sum()), np.int64)
    sort_corners(flat, start, order)
    sources = (order // of_each).astype(np.int32)
    return Sums(start.astype(np.int32), sources, weights[order], np.arange(rows, dtype=np.int32))
