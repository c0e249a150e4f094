"""How large the eigenvalues of D⁻¹ A are on every level, D the diagonal blocks, by the power method."""

from __future__ import annotations

from supple.kernels import (
    enter,
    inside,
    kernel,
    leave,
    ordered,
    pack_of_six,
    pack_of_three,
    physics,
    proceed,
    put_pack,
)
from supple.linear.rigid import tile_of, tiles
from supple.linear.smoothing import residual_of_six, residual_of_three, times_six, times_three

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


@physics
def _begin(team, phase, x, b, numbers):
    """Any x, and b = 0; `numbers` of each row are used."""
    rows = len(x)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            for c in range(x.shape[1]):
                b[row, c] = 0.0
                x[row, c] = _any_number(numbers * row + c) if c < numbers else 0.0
            row += step
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@physics
def _raise_fine(team, phase, A, x, y, squares, which):
    """y = -D⁻¹ A x, and the squares of its rows."""
    rows = len(A.parent)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            a, b, c = residual_of_three(A, row, x)
            a, b, c = times_three(A.inverse, row, a, b, c)
            put_pack(y, 4 * row, pack_of_three(a, b, c))
            squares[which, row] = a * a + b * b + c * c
            row += step
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@physics
def _raise_coarse(team, phase, A, x, y, squares, which):
    """The same on all coarse levels."""
    rows = len(A.parent)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            a, b, c, d, e, f = residual_of_six(A, row, x)
            a, b, c, d, e, f = times_six(A.inverse, row, pack_of_six(a, b, c, d, e, f))
            put_pack(y, 8 * row, pack_of_six(a, b, c, d, e, f))
            squares[which, row] = a * a + b * b + c * c + d * d + e * e + f * f
            row += step
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@kernel
def raise_powers(team, fine, coarse, fine_squares, coarse_squares):
    """Squares (2, rows) of the last two powers of D⁻¹ A applied to any vector, on all levels at once."""
    _begin(team, 0, fine.x, fine.b, 3)
    _begin(team, 1, coarse.x, coarse.b, 6)
    x, y, u, v = fine.x, fine.y, coarse.x, coarse.y
    for k in range(POWER_STEPS):
        _raise_fine(team, 2 * k + 2, fine, x, y, fine_squares, k % 2)
        _raise_coarse(team, 2 * k + 3, coarse, u, v, coarse_squares, k % 2)
        x, y, u, v = y, x, v, u
