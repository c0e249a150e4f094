"""Sparsity pattern of the Hessian: vertices that share a stencil, and the matrix slots of stencil blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.kernels import allocating_kernel, claim_chunk, counters_for, device_function, run
from supple.ordering import sort_corners

CHUNK_SIZE = 1024
"""Number of rows per work item of a thread."""

NO_STENCILS = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Pattern:
    """Sparsity pattern of a matrix of 3×3 blocks.

    Attributes:
        indptr: (f + 1,) first block of each row.
        indices: Block columns, ascending in each row.
        diagonal: (f,) slot of each diagonal block.
        slots: One array (m, k, k) per stencil array: slot of the block of corners a and b, -1 if one of them
            has no row.
    """

    indptr: np.ndarray
    indices: np.ndarray
    diagonal: np.ndarray
    slots: list[np.ndarray]

    @property
    def rows(self) -> int:
        """Number of block rows."""
        return len(self.indptr) - 1


def count_blocks(stencils: list[np.ndarray], vertices: int) -> int:
    """Count the 3×3 blocks of the Hessian: one per vertex and two per pair of vertices with a common stencil.

    Args:
        stencils: Arrays (m, k) of vertex ids.
        vertices: Number of vertices.
    """
    pairs = [s[:, [i, j]] for s in stencils for i, j in zip(*np.triu_indices(s.shape[1], 1), strict=True)]
    edges = np.sort(np.concatenate([np.empty((0, 2), np.int32), *pairs]), axis=1)
    return vertices + 2 * len(np.unique(edges.astype(np.int64) @ [vertices, 1]))


def make_pattern(stencils: list[np.ndarray], rows: int, threads: int) -> Pattern:
    """Compute the sparsity pattern of stencils.

    Args:
        stencils: Arrays (m, k) of the rows of stencil corners, -1 for none.
        rows: Number of matrix rows.
        threads: Number of threads.

    Raises:
        MemoryError: The matrix would have 2³¹ blocks or more.
    """
    sizes = [s.shape for s in stencils]
    corner = np.concatenate([s.ravel() for s in stencils] or [NO_STENCILS]).astype(np.int32)
    width = np.concatenate([np.full(m, k, np.int32) for m, k in sizes] or [NO_STENCILS])
    first = np.concatenate([[0], np.cumsum(width, dtype=np.int64)])
    block_start = np.concatenate([[0], np.cumsum(width.astype(np.int64) ** 2)])
    stencil = np.repeat(np.arange(len(width), dtype=np.int32), width)
    start = np.zeros(rows + 1, np.int64)
    incident = np.empty(int((corner >= 0).sum()), np.int64)
    sort_corners(corner, start, incident)

    indptr = np.zeros(rows + 1, np.int64)
    graph = corner, stencil, first, start, incident
    run(_count_columns, threads, *graph, indptr, counters_for(1))
    np.cumsum(indptr, out=indptr)
    if indptr[-1] >= 2**31:
        raise MemoryError(
            f"the Hessian would have {indptr[-1]:,} blocks, and the limit is 2³¹; use a solver without a "
            "matrix, such as pbng, or a coarser mesh"
        )
    indices = np.empty(indptr[-1], np.int32)
    diagonal = np.empty(rows, np.int32)
    slots = np.full(block_start[-1], -1, np.int32)
    run(_fill_columns, threads, *graph, block_start, indptr, indices, diagonal, slots, counters_for(1))
    ends = np.cumsum([m * k * k for m, k in sizes])
    parts = [slots[end - m * k * k : end].reshape(m, k, k) for (m, k), end in zip(sizes, ends, strict=True)]
    return Pattern(indptr.astype(np.int32), indices, diagonal, parts)


@allocating_kernel
def _count_columns(corner, stencil, first, start, incident, indptr, counters):
    """Set indptr[i + 1] to the number of distinct rows that share a stencil with row i, including i."""
    rows = len(start) - 1
    seen = np.full(rows, -1, np.int32)
    chunks = -(-rows // CHUNK_SIZE)
    chunk = claim_chunk(counters, 0, chunks)
    while chunk >= 0:
        for i in range(chunk * CHUNK_SIZE, min(rows, (chunk + 1) * CHUNK_SIZE)):
            seen[i] = i
            count = 1
            for k in range(start[i], start[i + 1]):
                e = stencil[incident[k]]
                for c in range(first[e], first[e + 1]):
                    j = corner[c]
                    if j >= 0 and seen[j] != i:
                        seen[j] = i
                        count += 1
            indptr[i + 1] = count
        chunk = claim_chunk(counters, 0, chunks)


@device_function
def _sort(numbers, first, last):
    """Insertion sort of numbers[first:last]: rows are short."""
    for k in range(first + 1, last):
        value = numbers[k]
        at = k
        while at > first and numbers[at - 1] > value:
            numbers[at] = numbers[at - 1]
            at -= 1
        numbers[at] = value


@allocating_kernel
def _fill_columns(
    corner, stencil, first, start, incident, block_start, indptr, indices, diagonal, slots, counters
):
    """Fill columns, diagonal slots and stencil slots of every row."""
    rows = len(start) - 1
    seen, position = np.full(rows, -1, np.int32), np.empty(rows, np.int32)
    chunks = -(-rows // CHUNK_SIZE)
    chunk = claim_chunk(counters, 0, chunks)
    while chunk >= 0:
        for i in range(chunk * CHUNK_SIZE, min(rows, (chunk + 1) * CHUNK_SIZE)):
            seen[i] = i
            indices[indptr[i]] = i
            count = indptr[i] + 1
            for k in range(start[i], start[i + 1]):
                e = stencil[incident[k]]
                for c in range(first[e], first[e + 1]):
                    j = corner[c]
                    if j >= 0 and seen[j] != i:
                        seen[j] = i
                        indices[count] = j
                        count += 1
            _sort(indices, indptr[i], indptr[i + 1])
            for k in range(indptr[i], indptr[i + 1]):
                position[indices[k]] = k
            diagonal[i] = position[i]
            for k in range(start[i], start[i + 1]):
                e = stencil[incident[k]]
                width = first[e + 1] - first[e]
                row = block_start[e] + (incident[k] - first[e]) * width
                for c in range(first[e], first[e + 1]):
                    if corner[c] >= 0:
                        slots[row + c - first[e]] = position[corner[c]]
        chunk = claim_chunk(counters, 0, chunks)
