"""Bitwise comparison of frames."""

import numpy as np

import supple


def frames_equal(actual: supple.Frame, expected: supple.Frame) -> bool:
    pairs = (
        (actual.positions, expected.positions),
        (actual.velocities, expected.velocities),
        (actual.state.displacements, expected.state.displacements),
        (actual.state.velocities, expected.state.velocities),
    )
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in pairs)
