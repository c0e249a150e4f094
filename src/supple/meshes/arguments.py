"""Validation of transformation arguments."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes.checks import MeshError
from supple.support.arguments import MAX_LENGTH, format_value, to_floats


def three(name: str, values: ArrayLike) -> np.ndarray:
    """Validate a vector of three finite numbers."""
    vector = to_floats(values)
    if vector.shape != (3,) or not np.all(np.abs(vector) <= MAX_LENGTH):
        raise MeshError(
            f"{name} must be three finite numbers, up to {MAX_LENGTH:g}, got {format_value(values)}."
        )
    return vector


def matrix_of(values: ArrayLike) -> np.ndarray:
    """Validate a finite (3, 3) matrix."""
    matrix = to_floats(values)
    if matrix.shape != (3, 3):
        actual = f"has shape {matrix.shape}" if matrix.ndim else f"is {format_value(values)}"
        raise MeshError(f"matrix must have shape (3, 3), but {actual}.")
    if not np.all(np.abs(matrix) <= MAX_LENGTH):
        raise MeshError(f"matrix must have finite entries, up to {MAX_LENGTH:g}, got {format_value(values)}.")
    return matrix


def scaling(factor: ArrayLike) -> np.ndarray:
    """(3, 3) scaling matrix for one factor, or one factor per axis."""
    factors = to_floats(factor)
    if factors.shape not in ((), (3,)):
        raise MeshError(f"scale must be one number or three, but has shape {factors.shape}.")
    if not np.all((np.abs(factors) <= MAX_LENGTH) & (factors != 0)):
        raise MeshError(
            f"scale must be finite and not 0, got {format_value(factor)}; 1 leaves lengths as they are."
        )
    return np.diag(np.broadcast_to(factors, 3))
