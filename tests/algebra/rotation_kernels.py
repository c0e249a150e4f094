"""The rotation of many matrices on packs."""

from numba import njit

from supple.algebra.rotation import rotation
from supple.kernels import load, store


@njit
def rotations_of(F, out):
    """out[row] = R(F[row]) for F, out (rows, 9, lanes)."""
    for row in range(len(F)):
        R = rotation(
            (
                load(F, row, 0),
                load(F, row, 1),
                load(F, row, 2),
                load(F, row, 3),
                load(F, row, 4),
                load(F, row, 5),
                load(F, row, 6),
                load(F, row, 7),
                load(F, row, 8),
            )
        )
        for field in range(9):
            store(out, row, field, R[field])
