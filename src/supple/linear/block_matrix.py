"""Block-sparse matrices with three block types, and their operations in smoothing and conjugate gradients.

Vectors have one zero-padded row per matrix row: four numbers for 3×3 blocks and for scalar matrices with
three right-hand sides, eight numbers for 6×6 blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import (
    eight_at,
    four_at,
    generic,
    number_at,
    pack_like,
    pack_of_six,
    pack_of_three,
    row_range,
    row_sum,
    six_numbers,
    six_sum,
    strict_order,
    three_numbers,
    three_sum,
    vector_of_eight,
    vector_of_four,
)


class Blocks3x3(NamedTuple):
    """Block-sparse matrix of 3×3 blocks.

    Attributes:
        indptr: (rows + 1,) first block of each row.
        indices: (b,) block columns.
        blocks: (b, 3, 3) values, followed by padding that vector loads may read.
    """

    indptr: Any
    indices: Any
    blocks: Any


class Blocks6x6(NamedTuple):
    """Block-sparse matrix of 6×6 blocks (b, 36)."""

    indptr: Any
    indices: Any
    blocks: Any


class ScalarEntries(NamedTuple):
    """Sparse matrix of scalars (b,), applied to three right-hand sides at once."""

    indptr: Any
    indices: Any
    blocks: Any


@generic
def vector_at(A, x, row):
    """Load one row of a vector as a pack."""


@generic
def product(A, at, x):
    """Row of A x as a pack, reduced over the cooperating threads of the row."""


@generic
def apply_inverse(A, inverse, row, v):
    """Apply the inverse D⁻¹ of the row's diagonal block to a pack v."""


@generic
def reduce_row(A, at, v):
    """Reduce a pack over the cooperating threads of a row."""


@vector_at.of(ScalarEntries)
@vector_at.of(Blocks3x3)
def _four(A, x, row):
    return vector_of_four(x, row)


@vector_at.of(Blocks6x6)
def _eight(A, x, row):
    return vector_of_eight(x, row)


@reduce_row.of(ScalarEntries)
@reduce_row.of(Blocks3x3)
def _sum_three(A, at, v):
    a, b, c = three_numbers(v)
    return pack_of_three(row_sum(at, a), row_sum(at, b), row_sum(at, c))


@reduce_row.of(Blocks6x6)
def _sum_six(A, at, v):
    a, b, c, d, e, f = six_numbers(v)
    return pack_of_six(
        row_sum(at, a), row_sum(at, b), row_sum(at, c), row_sum(at, d), row_sum(at, e), row_sum(at, f)
    )


@product.of(Blocks3x3)
def _times_threes(A, at, x):
    indices, blocks = A.indices, A.blocks
    first, last, step = row_range(A.indptr, at)
    p = q = r = pack_like(0.0, vector_of_four(x, at.row))
    for k in range(first, last, step):
        y = vector_of_four(x, indices[k])
        p = p + four_at(blocks, 9 * k) * y
        q = q + four_at(blocks, 9 * k + 3) * y
        r = r + four_at(blocks, 9 * k + 6) * y
    return pack_of_three(row_sum(at, three_sum(p)), row_sum(at, three_sum(q)), row_sum(at, three_sum(r)))


@product.of(Blocks6x6)
def _times_sixes(A, at, x):
    indices, blocks = A.indices, A.blocks
    first, last, step = row_range(A.indptr, at)
    p = q = r = s = t = u = pack_like(0.0, vector_of_eight(x, at.row))
    for k in range(first, last, step):
        y, i = vector_of_eight(x, indices[k]), 36 * k
        p = p + eight_at(blocks, i) * y
        q = q + eight_at(blocks, i + 6) * y
        r = r + eight_at(blocks, i + 12) * y
        s = s + eight_at(blocks, i + 18) * y
        t = t + eight_at(blocks, i + 24) * y
        u = u + eight_at(blocks, i + 30) * y
    return pack_of_six(
        row_sum(at, six_sum(p)),
        row_sum(at, six_sum(q)),
        row_sum(at, six_sum(r)),
        row_sum(at, six_sum(s)),
        row_sum(at, six_sum(t)),
        row_sum(at, six_sum(u)),
    )


@product.of(ScalarEntries)
def _times_ones(A, at, x):
    indices, blocks = A.indices, A.blocks
    first, last, step = row_range(A.indptr, at)
    p = pack_like(0.0, vector_of_four(x, at.row))
    for k in range(first, last, step):
        p = p + number_at(blocks, k) * vector_of_four(x, indices[k])
    return reduce_row(A, at, p)


@strict_order
def _times_three(D, row, a, b, c):
    return (
        D[row, 0] * a + D[row, 1] * b + D[row, 2] * c,
        D[row, 3] * a + D[row, 4] * b + D[row, 5] * c,
        D[row, 6] * a + D[row, 7] * b + D[row, 8] * c,
    )


@apply_inverse.of(Blocks3x3)
def _apply_inverse_three(A, inverse, row, v):
    a, b, c = three_numbers(v)
    a, b, c = _times_three(inverse, row, a, b, c)
    return pack_of_three(a, b, c)


@apply_inverse.of(Blocks6x6)
def _apply_inverse_six(A, inverse, row, v):
    i = 36 * row
    return pack_of_six(
        six_sum(eight_at(inverse, i) * v),
        six_sum(eight_at(inverse, i + 6) * v),
        six_sum(eight_at(inverse, i + 12) * v),
        six_sum(eight_at(inverse, i + 18) * v),
        six_sum(eight_at(inverse, i + 24) * v),
        six_sum(eight_at(inverse, i + 30) * v),
    )


@apply_inverse.of(ScalarEntries)
def _apply_inverse_one(A, inverse, row, v):
    return number_at(inverse, row) * v


@generic
def squared(A, v):
    """|v|² of a pack."""


@squared.of(ScalarEntries)
@squared.of(Blocks3x3)
def _squared_three(A, v):
    return three_sum(v * v)


@squared.of(Blocks6x6)
def _squared_six(A, v):
    return six_sum(v * v)


def add_padding_block(blocks: np.ndarray) -> np.ndarray:
    """Copy 3×3 blocks and append one padding block."""
    roomier = np.zeros((len(blocks) + 1, 3, 3), blocks.dtype)
    roomier[:-1] = blocks
    return roomier
