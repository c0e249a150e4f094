"""Rows of 3×3 and 6×6 blocks times vectors: what smoothing and conjugate gradients do with matrices."""

from __future__ import annotations

from supple.kernels import eight_at, four_at, number_at, ordered, pack_like, physics, six_sum, three_sum


@physics
def residual_of_three(A, row, x):
    """b - A x in a row of 3×3 blocks."""
    a, b, c = row_times(A.indptr, A.indices, A.blocks, row, x)
    i = 4 * row
    return number_at(A.b, i) - a, number_at(A.b, i + 1) - b, number_at(A.b, i + 2) - c


@physics
def row_times(indptr, indices, blocks, row, x):
    """A row of 3×3 blocks times records x."""
    p = q = r = pack_like(0.0, four_at(x, 4 * row))
    for k in range(indptr[row], indptr[row + 1]):
        y = four_at(x, 4 * indices[k])
        p = p + four_at(blocks, 9 * k) * y
        q = q + four_at(blocks, 9 * k + 3) * y
        r = r + four_at(blocks, 9 * k + 6) * y
    return three_sum(p), three_sum(q), three_sum(r)


@ordered
def times_three(D, row, a, b, c):
    """D_row (a, b, c)."""
    return (
        D[row, 0] * a + D[row, 1] * b + D[row, 2] * c,
        D[row, 3] * a + D[row, 4] * b + D[row, 5] * c,
        D[row, 6] * a + D[row, 7] * b + D[row, 8] * c,
    )


@physics
def times_six(A, k, x):
    """A_k x for a 6×6 block and a pack of six numbers and two zeros."""
    at = 36 * k
    return (
        six_sum(eight_at(A, at) * x),
        six_sum(eight_at(A, at + 6) * x),
        six_sum(eight_at(A, at + 12) * x),
        six_sum(eight_at(A, at + 18) * x),
        six_sum(eight_at(A, at + 24) * x),
        six_sum(eight_at(A, at + 30) * x),
    )


@physics
def residual_of_six(A, row, x):
    """b - A x in a row of 6×6 blocks."""
    blocks, i = A.blocks, 8 * row
    p = q = r = s = t = u = pack_like(0.0, eight_at(A.b, i))
    for k in range(A.indptr[row], A.indptr[row + 1]):
        y, at = eight_at(x, 8 * A.indices[k]), 36 * k
        p = p + eight_at(blocks, at) * y
        q = q + eight_at(blocks, at + 6) * y
        r = r + eight_at(blocks, at + 12) * y
        s = s + eight_at(blocks, at + 18) * y
        t = t + eight_at(blocks, at + 24) * y
        u = u + eight_at(blocks, at + 30) * y
    return (
        number_at(A.b, i) - six_sum(p),
        number_at(A.b, i + 1) - six_sum(q),
        number_at(A.b, i + 2) - six_sum(r),
        number_at(A.b, i + 3) - six_sum(s),
        number_at(A.b, i + 4) - six_sum(t),
        number_at(A.b, i + 5) - six_sum(u),
    )
