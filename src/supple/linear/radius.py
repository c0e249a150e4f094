"""How large the eigenvalues of D⁻¹ A are on every level, D the diagonal blocks, by the power method."""

from __future__ import annotations

from supple.kernels import enter, inside, kernel, leave, ordered, physics, proceed
from supple.linear.cycle import (
    load_six,
    residual_of_six,
    residual_of_three,
    store_six,
    times_six,
    times_three,
)
from supple.linear.rigid import tile_of, tiles

POWER_STEPS = 10
"""Powers of D⁻¹ A that are taken."""

SAFETY = 1.1
"""The estimate is from below."""


@ordered
def _any_number(i):
    """Between -1 and 1, different for each i, always the same."""
    x = (i * 2654435761 + 12345) % 4294967296
    x = ((x ^ (x >> 15)) * 2246822519) % 4294967296
    return ((x >> 9) % 65536) / 32768.0 - 1.0


@physics
def _begin(fine, coarse, row):
    """Any x, and b = 0."""
    rows = len(fine.parent)
    if row < rows:
        for c in range(3):
            fine.b[row, c] = 0.0
            fine.x[row, c] = _any_number(3 * row + c)
    else:
        i = row - rows
        for c in range(6):
            coarse.b[i, c] = 0.0
            coarse.x[i, c] = _any_number(6 * i + c)


@physics
def _raise(fine, coarse, row, x, y, u, v, which, fine_squares, coarse_squares):
    """y = -D⁻¹ A x of a fine row, v = -D⁻¹ A u of a coarse one, and its square."""
    rows = len(fine.parent)
    if row < rows:
        a, b, c = residual_of_three(fine, row, x)
        a, b, c = times_three(fine.inverse, row, a, b, c)
        y[row, 0], y[row, 1], y[row, 2] = a, b, c
        fine_squares[which, row] = a * a + b * b + c * c
    else:
        i = row - rows
        z = times_six(coarse.inverse, i, residual_of_six(coarse, i, u))
        store_six(v, i, z)
        z = load_six(v, i)
        coarse_squares[which, i] = (
            z[0] * z[0] + z[1] * z[1] + z[2] * z[2] + z[3] * z[3] + z[4] * z[4] + z[5] * z[5]
        )


@kernel
def raise_powers(team, fine, coarse, fine_squares, coarse_squares):
    """Squares (2, rows) of the last two powers of D⁻¹ A applied to any vector, on all levels at once."""
    rows = len(fine.parent) + len(coarse.parent)
    place = enter(team, 0, 0, tiles(rows))
    while inside(place, tiles(rows)):
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            _begin(fine, coarse, row)
            row += step
        place = proceed(team, 0, place, 0, tiles(rows))
    leave(team, 0, 0, tiles(rows))
    x, y, u, v = fine.x, fine.y, coarse.x, coarse.y
    for k in range(POWER_STEPS):
        place = enter(team, k + 1, 0, tiles(rows))
        while inside(place, tiles(rows)):
            row, end, step = tile_of(place, 0, rows)
            while row < end:
                _raise(fine, coarse, row, x, y, u, v, k % 2, fine_squares, coarse_squares)
                row += step
            place = proceed(team, k + 1, place, 0, tiles(rows))
        leave(team, k + 1, 0, tiles(rows))
        x, y, u, v = y, x, v, u
