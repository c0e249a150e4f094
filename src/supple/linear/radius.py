"""How large the eigenvalues of D⁻¹ A are on every level, D the diagonal blocks, by the power method."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import do, kernel, ordered, pack_of_six, pack_of_three, put_pack
from supple.linear.block_rows import residual_of_six, residual_of_three, times_six, times_three
from supple.linear.tiles import each_row

POWER_STEPS = 8
"""Powers of D⁻¹ A that are taken, an even number."""

SAFETY = 1.1
"""The estimate is from below."""


@ordered
def _any_number(i):
    """Between -1 and 1, different for each i, always the same."""
    x = (i * 2654435761 + 12345) % 4294967296
    x = ((x ^ (x >> 15)) * 2246822519) % 4294967296
    return ((x >> 9) % 65536) / 32768.0 - 1.0


class Begin(NamedTuple):
    """Any x, and b = 0; `numbers` of each row are used."""

    x: Any
    b: Any
    numbers: Any


@do.of(Begin)
def _begin(work, row):
    x = work.x
    for c in range(x.shape[1]):
        work.b[row, c] = 0.0
        x[row, c] = _any_number(work.numbers * row + c) if c < work.numbers else 0.0


class RaiseFine(NamedTuple):
    """y = -D⁻¹ A x in a row, and its square."""

    A: Any
    x: Any
    y: Any
    squares: Any
    which: Any


@do.of(RaiseFine)
def _raise_fine(work, row):
    a, b, c = residual_of_three(work.A, row, work.x)
    a, b, c = times_three(work.A.inverse, row, a, b, c)
    put_pack(work.y, 4 * row, pack_of_three(a, b, c))
    work.squares[work.which, row] = a * a + b * b + c * c


class RaiseCoarse(NamedTuple):
    """y = -D⁻¹ A x in a row of a coarse level, and its square."""

    A: Any
    x: Any
    y: Any
    squares: Any
    which: Any


@do.of(RaiseCoarse)
def _raise_coarse(work, row):
    a, b, c, d, e, f = residual_of_six(work.A, row, work.x)
    a, b, c, d, e, f = times_six(work.A.inverse, row, pack_of_six(a, b, c, d, e, f))
    put_pack(work.y, 8 * row, pack_of_six(a, b, c, d, e, f))
    work.squares[work.which, row] = a * a + b * b + c * c + d * d + e * e + f * f


@kernel
def raise_powers(team, fine, coarse, fine_squares, coarse_squares):
    """Squares (2, rows) of the last two powers of D⁻¹ A applied to any vector, on all levels at once."""
    x, y, u, v = fine.x, fine.y, coarse.x, coarse.y
    rows, coarse_rows = len(x), len(u)
    each_row(team, 0, 0, rows, Begin(x, fine.b, 3))
    each_row(team, 1, 0, coarse_rows, Begin(u, coarse.b, 6))
    for k in range(POWER_STEPS):
        each_row(team, 2 * k + 2, 0, rows, RaiseFine(fine, x, y, fine_squares, k % 2))
        each_row(team, 2 * k + 3, 0, coarse_rows, RaiseCoarse(coarse, u, v, coarse_squares, k % 2))
        x, y, u, v = y, x, v, u
