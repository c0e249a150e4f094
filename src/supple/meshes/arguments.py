"""Arguments of transformations, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from supple.checks import LONGEST, floats, shown
from supple.meshes.checks import MeshError


def three(name: str, values: ArrayLike) -> np.ndarray:
    """(3,) finite float64."""
    vector = floats(values)
    if vector.shape != (3,) or not np.all(np.abs(vector) <= LONGEST):
        raise MeshError(f"{name} must be three finite numbers, up to {LONGEST:g}, got {shown(values)}.")
    return vector


def matrix_of(values: ArrayLike) -> np.ndarray:
    """(3, 3) finite float64."""
    matrix = floats(values)
    if matrix.shape != (3, 3):
        found = f"has shape {matrix.shape}" if matrix.ndim else f"is {shown(values)}"
        raise MeshError(f"matrix must have shape (3, 3), but {found}.")
    if not np.all(np.abs(matrix) <= LONGEST):
        raise MeshError(f"matrix must have finite entries, up to {LONGEST:g}, got {shown(values)}.")
    return matrix
