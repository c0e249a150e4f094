"""Remaining Hessian contributions: inertia, host terms, embedded elements, constrained directions.

Embedded elements interpolate grid nodes and add Wᵀ K W, with corner Hessian K and weights W. An element of 32
nodes has 1,024 node blocks, but only 16 corner blocks, many of them shared with other elements. Corner blocks
are therefore summed over elements first, for every pair of embedded points; each sum then goes to the 64 node
pairs of the two points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from supple.algebra.matrix3 import matmul
from supple.kernels import device_function, do, kernel, lanes_of
from supple.kernels.parallel.parallel_for import parallel_for_rows
from supple.linear.vectors import SumRows, Sums, make_row_sums, sum_rows
from supple.ordering import batch_elements
from supple.ordering.coloring import sort_corners

if TYPE_CHECKING:
    from supple.problem import Problem
    from supple.problem.device import Device
    from supple.terms import Elements, NodeInterpolation, Term


class ClearBlock(NamedTuple):
    """Set a block to zero."""

    data: Any


@do.of(ClearBlock)
def _clear_block(work, k):
    for a in range(3):
        for b in range(3):
            work.data[k, a, b] = 0.0


class AddInertia(NamedTuple):
    """Add k I to the diagonal block of a row."""

    data: Any
    diagonal: Any
    inertia: Any


@do.of(AddInertia)
def _add_inertia(work, row):
    for a in range(3):
        work.data[work.diagonal[row], a, a] += work.inertia[row]


@kernel
def begin_blocks(team, data, diagonal, inertia):
    """Set all blocks to zero, except for the inertia (f,) [N/m] on the diagonal."""
    parallel_for_rows(team, 0, 0, len(data), ClearBlock(data))
    parallel_for_rows(team, 1, 0, len(diagonal), AddInertia(data, diagonal, inertia))


class ConstrainRow(NamedTuple):
    """Hᵢⱼ ← Pᵢ Hᵢⱼ Pⱼ, P = I - N, in a row; the diagonal block also gets ⅓ tr(Hᵢᵢ) Nᵢ."""

    A: Any
    free: Any
    diagonal: Any
    normals: Any


@device_function
def _normal(normals, i):
    d, a = normals.diagonal, normals.across
    return (d[i, 0], a[i, 0], a[i, 1], a[i, 0], d[i, 1], a[i, 2], a[i, 1], a[i, 2], d[i, 2])


@device_function
def _across(N):
    return (1.0 - N[0], -N[1], -N[2], -N[3], 1.0 - N[4], -N[5], -N[6], -N[7], 1.0 - N[8])


@do.of(ConstrainRow)
def _constrain_row(work, row):
    A, normals, free = work.A, work.normals, work.free
    blocks = A.blocks
    N = _normal(normals, free[row])
    constrained = N[0] + N[4] + N[8]
    P = _across(N)
    for k in range(A.indptr[row], A.indptr[row + 1]):
        M = _normal(normals, free[A.indices[k]])
        if constrained + M[0] + M[4] + M[8] > 0.0:
            H = (
                blocks[k, 0, 0], blocks[k, 0, 1], blocks[k, 0, 2], blocks[k, 1, 0], blocks[k, 1, 1],
                blocks[k, 1, 2], blocks[k, 2, 0], blocks[k, 2, 1], blocks[k, 2, 2],
            )  # fmt: skip
            own = (H[0] + H[4] + H[8]) / 3.0 if k == work.diagonal[row] else 0.0
            H = matmul(matmul(P, H), _across(M))
            blocks[k, 0, 0], blocks[k, 0, 1], blocks[k, 0, 2] = (
                H[0] + own * N[0], H[1] + own * N[1], H[2] + own * N[2],
            )  # fmt: skip
            blocks[k, 1, 0], blocks[k, 1, 1], blocks[k, 1, 2] = (
                H[3] + own * N[3], H[4] + own * N[4], H[5] + own * N[5],
            )  # fmt: skip
            blocks[k, 2, 0], blocks[k, 2, 1], blocks[k, 2, 2] = (
                H[6] + own * N[6], H[7] + own * N[7], H[8] + own * N[8],
            )  # fmt: skip


@kernel
def constrain_rows(team, A, free, diagonal, normals):
    """Apply directional Dirichlet conditions to a Hessian.

    Solutions then have no component along constrained directions, provided that right-hand sides have none.
    """
    parallel_for_rows(team, 0, 0, len(free), ConstrainRow(A, free, diagonal, normals))


class TermBlocks:
    """Hessian blocks of a term computed on the host, and their sums in each matrix block."""

    def __init__(self, problem: Problem, index: int, elements: Elements, sums: Sums) -> None:
        self._problem, self._index, self._elements, self._sums = problem, index, elements, sums
        m, k = problem.model.terms[index].vertices.shape
        self._blocks = np.zeros((m, k, k, 3, 3))

    def add(self, kind: str, u: np.ndarray, data: np.ndarray) -> None:
        """Add the blocks at displacements u to the matrix values `data`."""
        device, blocks, term = self._problem.device, self._blocks, self._problem.model.terms[self._index]
        compute_blocks(device, term, self._elements, kind, u, blocks)
        device.run(sum_rows, 1, SumRows(*self._sums, blocks, 9, 1, data))


def compute_blocks(
    device: Device, term: Term, elements: Elements, kind: str, u: np.ndarray, blocks: np.ndarray
) -> None:
    """Compute blocks (m, k, k, 3, 3) of a term at displacements u on the host and upload them."""
    device.download(u)
    blocks[:] = term.hessian_blocks(elements, u, kind, device.threads)
    device.upload(blocks)


def host_elements(problem: Problem, index: int) -> Elements:
    """Elements of a term, packed for the host."""
    if problem.device.lanes == lanes_of(problem.dtype):
        return problem.layout.elements[index]
    return batch_elements(problem.model.terms[index], problem.dtype, problem.model.vertices)


def arrange_blocks(problem: Problem, index: int, slots: np.ndarray, blocks: int) -> TermBlocks:
    """Prepare the Hessian blocks of a host-assembled term.

    Args:
        problem: Problem that owns the term.
        index: Index of the term in the model.
        slots: (m, k, k) matrix block of each corner pair, negative for none.
        blocks: Number of matrix blocks.
    """
    flat = slots.ravel()
    entries = np.flatnonzero(flat >= 0)
    weights = csr_array((np.ones(len(entries)), (flat[entries], entries)), shape=(blocks, len(flat)))
    return TermBlocks(problem, index, host_elements(problem, index), make_row_sums(weights))


def point_pairs(interpolation: NodeInterpolation) -> tuple[np.ndarray, np.ndarray]:
    """List the pairs of embedded points that share an element.

    Returns:
        pairs (e, 2) of points p ≤ q, including p = q, and the pair index (m, 4, 4) of each pair of element
        corners.
    """
    corners, points = interpolation.corners.astype(np.int64), len(interpolation.nodes)
    low = np.minimum(corners[:, :, None], corners[:, None])
    high = np.maximum(corners[:, :, None], corners[:, None])
    keys, which = np.unique(low * points + high, return_inverse=True)
    return np.stack(np.divmod(keys, points), axis=1), which.reshape(low.shape)


def embedded_stencils(interpolation: NodeInterpolation) -> np.ndarray:
    """(e, 16) nodes of both points of each pair: the stencils of the node Hessian."""
    pairs, _ = point_pairs(interpolation)
    return interpolation.nodes[pairs].reshape(len(pairs), -1)


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
        interpolation = self._term.node_interpolation
        assert interpolation is not None
        self._elements = host_elements(problem, index)
        pairs, which = point_pairs(interpolation)
        turned = interpolation.corners[:, :, None] > interpolation.corners[:, None]
        self._in_pairs = _sums(which + len(pairs) * turned, np.ones(which.size), 2 * len(pairs))
        w = interpolation.weights[pairs]
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
