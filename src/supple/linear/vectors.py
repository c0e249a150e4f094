"""Device operations on vectors and matrices, entry by entry or row by row.

Vectors of the free vertices are padded vectors (f, 4) in matrix order; vectors of all vertices are (n + 1,
4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from scipy.sparse import csr_array

from supple.algebra.dirichlet_projection import free_part
from supple.kernels import (
    do,
    item_number,
    kernel,
    lane_stride,
    number_at,
    overload_by_type,
    parallel_for,
    record_at,
    store_number,
    store_record,
)
from supple.kernels.parallel.parallel_for import parallel_for_rows


class GatherFree(NamedTuple):
    """Gather the padded vectors of the free vertices."""

    records: Any
    free: Any
    out: Any


@do.of(GatherFree)
def _gather_free(work, row):
    for c in range(3):
        work.out[row, c] = work.records[work.free[row], c]


@kernel
def gather_free(team, records, free, out):
    """out = padded vectors of the free vertices (f,), in the precision of `out`."""
    parallel_for_rows(team, 0, 0, len(free), GatherFree(records, free, out))


class Locate(NamedTuple):
    """Position of a free vertex: rest + u."""

    rest: Any
    u: Any
    free: Any
    positions: Any


@do.of(Locate)
def _locate(work, row):
    for c in range(3):
        work.positions[row, c] = work.rest[row, c] + work.u[work.free[row], c]


@kernel
def locate(team, rest, u, free, positions):
    """Compute positions (f, 3) of the free vertices [m] from rest positions (f, 3) and displacements u."""
    parallel_for_rows(team, 0, 0, len(free), Locate(rest, u, free, positions))


def unconstrained_record(normals: Any, i: int, x: Any) -> Any:
    """Remove the components of x along the constrained directions of vertex i."""


@overload_by_type(unconstrained_record)
def _unconstrained_record(normals, i, x):
    if len(normals) == 0:
        return lambda normals, i, x: x
    return lambda normals, i, x: free_part(record_at(normals.diagonal, i) + record_at(normals.across, i), x)


class Spread(NamedTuple):
    """Scatter a vector of the free vertices to all vertices; `normals`: `Normals` of all vertices, or ()."""

    x: Any
    free: Any
    normals: Any
    out: Any


@do.of(Spread)
def _spread(work, row):
    i = types.int64(work.free[row])
    store_record(work.out, i, unconstrained_record(work.normals, i, record_at(work.x, row)))


@kernel
def spread_free(team, x, free, normals, out):
    """out = x at the free vertices without components along constrained directions; other rows keep their
    values."""
    parallel_for_rows(team, 0, 0, len(free), Spread(x, free, normals, out))


class SumRows(NamedTuple):
    """Weighted sums of rows of `width` numbers: out[target[i]] = Σ weights[k] source[indices[k]] over k from
    indptr[i] to indptr[i + 1] - 1. If `adds`, the sum is added to the output."""

    indptr: Any
    indices: Any
    weights: Any
    target: Any
    source: Any
    width: Any
    adds: Any
    out: Any


@do.of(SumRows)
def _sum_rows(work, row):
    width, to = work.width, work.width * work.target[row]
    for c in range(width):
        total = number_at(work.out, to + c) if work.adds else 0.0
        for k in range(work.indptr[row], work.indptr[row + 1]):
            total += work.weights[k] * number_at(work.source, width * work.indices[k] + c)
        store_number(work.out, to + c, total)


@kernel
def sum_rows(team, work):
    """Compute all rows of `SumRows`."""
    parallel_for_rows(team, 0, 0, len(work.target), work)


class Sums(NamedTuple):
    """Sparse weighted row sums: arguments of `SumRows`."""

    indptr: Any
    indices: Any
    weights: Any
    target: Any


def make_row_sums(matrix: csr_array) -> Sums:
    """Convert a sparse matrix of weights to row sums; empty rows are left out."""
    matrix = csr_array(matrix)
    filled = np.flatnonzero(np.diff(matrix.indptr))
    indptr = np.append(matrix.indptr[filled], matrix.nnz).astype(np.int32)
    return Sums(indptr, matrix.indices.astype(np.int32), matrix.data.astype(float), filled.astype(np.int32))


CHUNK_SIZE = 1024
"""Number of entries per work item."""


class Round(NamedTuple):
    """out = source entry by entry, in the precision of `out`."""

    source: Any
    out: Any


@do.of(Round)
def _round(work, item):
    begin, step = lane_stride(item)
    k, end = (
        item_number(item) * CHUNK_SIZE + begin,
        min(work.out.size, (item_number(item) + 1) * CHUNK_SIZE),
    )
    while k < end:
        store_number(work.out, k, number_at(work.source, k))
        k += step


@kernel
def round_numbers(team, source, out):
    """Copy source to out, in the precision of `out`."""
    parallel_for(team, 0, 0, -(-out.size // CHUNK_SIZE), Round(source, out))
