"""Rotations of many matrices on packs and lane by lane."""

import numpy as np
from numba import njit

from supple.algebra.rotation import rotation
from supple.kernels import load, store
from supple.kernels.emulated_gpu import LaneWorkItem


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


@njit
def rotations_lane_by_lane(F, out):
    """R(F[row]) as a CUDA thread computes it, one lane at a time; F, out (rows, 9, 32)."""
    for row in range(len(F)):
        for lane in range(32):
            item = LaneWorkItem(np.int64(row), lane, 32, 0, np.int64(0), np.int64(0))
            R = rotation(
                (
                    load(F, item, 0),
                    load(F, item, 1),
                    load(F, item, 2),
                    load(F, item, 3),
                    load(F, item, 4),
                    load(F, item, 5),
                    load(F, item, 6),
                    load(F, item, 7),
                    load(F, item, 8),
                )
            )
            for field in range(9):
                store(out, item, field, R[field])
