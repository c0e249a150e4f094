"""What is done to vectors and matrices number by number or row by row, where kernels see them.

Vectors of the free vertices are records (f, 4) in the order of the matrix, those of all vertices (n + 1, 4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from scipy.sparse import csr_array

from supple.algebra.holding import free_part
from supple.kernels import (
    chosen_by_type,
    do,
    each_item,
    kernel,
    number,
    number_at,
    put_number,
    put_record,
    record_at,
    strides,
)
from supple.linear.tiles import each_row


class Take(NamedTuple):
    """Records of the free vertices."""

    records: Any
    free: Any
    out: Any


@do.of(Take)
def _take(work, row):
    for c in range(3):
        work.out[row, c] = work.records[work.free[row], c]


@kernel
def take_free(team, records, free, out):
    """out = the records of the free vertices (f,), in any precision."""
    each_row(team, 0, 0, len(free), Take(records, free, out))


class Locate(NamedTuple):
    """Where free vertices are: rest (f, 3) + u."""

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
    """Positions (f, 3) of the free vertices at displacements u."""
    each_row(team, 0, 0, len(free), Locate(rest, u, free, positions))


def unheld_record(normals: Any, i: int, x: Any) -> Any:
    """x of the i-th vertex without what it has along directions in which that is held."""


@chosen_by_type(unheld_record)
def _unheld_record(normals, i, x):
    if len(normals) == 0:
        return lambda normals, i, x: x
    return lambda normals, i, x: free_part(record_at(normals.diagonal, i) + record_at(normals.across, i), x)


class Spread(NamedTuple):
    """A vector of the free vertices as records of all; normals: `Normals` of these, or ()."""

    x: Any
    free: Any
    normals: Any
    out: Any


@do.of(Spread)
def _spread(work, row):
    i = types.int64(work.free[row])
    put_record(work.out, i, unheld_record(work.normals, i, record_at(work.x, row)))


@kernel
def spread_free(team, x, free, normals, out):
    """out = x at the free vertices, without what these have along held directions; others stay as they
    are."""
    each_row(team, 0, 0, len(free), Spread(x, free, normals, out))


class SumRows(NamedTuple):
    """Rows of `width` numbers: out[target[i]] = Σ weights[k] source[indices[k]] over k from indptr[i] to
    indptr[i + 1], or that in addition to what is there."""

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
        put_number(work.out, to + c, total)


@kernel
def sum_rows(team, work):
    """All rows of `SumRows`."""
    each_row(team, 0, 0, len(work.target), work)


class Sums(NamedTuple):
    """Which rows of something add up to which rows of something else; see `SumRows`."""

    indptr: Any
    indices: Any
    weights: Any
    target: Any


def sums_of(matrix: csr_array) -> Sums:
    """A matrix whose rows tell what is summed up; rows without anything are left out."""
    matrix = csr_array(matrix)
    filled = np.flatnonzero(np.diff(matrix.indptr))
    indptr = np.append(matrix.indptr[filled], matrix.nnz).astype(np.int32)
    return Sums(indptr, matrix.indices.astype(np.int32), matrix.data.astype(float), filled.astype(np.int32))


PIECE = 1024
"""Numbers of an item of work."""


class Round(NamedTuple):
    """out = source, number by number, in the precision of out."""

    source: Any
    out: Any


@do.of(Round)
def _round(work, place):
    begin, step = strides(place)
    k, end = number(place) * PIECE + begin, min(work.out.size, (number(place) + 1) * PIECE)
    while k < end:
        put_number(work.out, k, number_at(work.source, k))
        k += step


@kernel
def round_numbers(team, source, out):
    """out = source in the precision of out."""
    each_item(team, 0, 0, -(-out.size // PIECE), Round(source, out))
