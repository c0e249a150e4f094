"""Springs between vertices of a model that a `Stepper` replaces during a simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.model.model import Model
from supple.support.arguments import (
    MAX_LENGTH,
    MAX_MAGNITUDE,
    format_value,
    to_floats,
)
from supple.terms import Springs


def add_spring_capacity(model: Model, capacity: int) -> Model:
    """Add an empty spring term with a given capacity to a model."""
    arrays = np.empty((0, 2), np.int32), np.empty(0), np.empty((0, 1))
    return replace(model, terms=(*model.terms, Springs(*arrays, model.rest, capacity)))


def make_springs(
    model: Model,
    pairs: ArrayLike,
    stiffness: ArrayLike | None,
    length: ArrayLike | None,
    positions: np.ndarray,
) -> Springs:
    """Create springs between pairs of vertices.

    Args:
        model: Model.
        pairs: (m, 2) vertices.
        stiffness: Number or (m,) [N/m].
        length: Number or (m,) rest lengths [m]; None for the lengths at `positions`.
        positions: (n, 3) positions [m].

    Raises:
        ValueError: If pairs, stiffness or length are invalid.
    """
    vertices = _check_pairs(pairs, model.vertices)
    if length is None:
        ends = positions[vertices]
        length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    if stiffness is None:
        if len(vertices):
            raise ValueError(f"{len(vertices)} springs need a stiffness [N/m]")
        stiffness = 0.0
    k = _broadcast_numbers("stiffness [N/m]", stiffness, len(vertices), MAX_MAGNITUDE)
    L = _broadcast_numbers("rest_length [m]", length, len(vertices), MAX_LENGTH)
    return Springs(vertices, k, L[:, None], model.rest)


def _check_pairs(pairs: Any, n: int) -> np.ndarray:
    """Validate pairs of vertices."""
    vertices = np.asarray(pairs)
    if vertices.size == 0:
        return np.empty((0, 2), np.int32)
    expected = f"springs must be pairs of vertices: whole numbers (m, 2) from 0 to {n - 1}"
    if vertices.dtype.kind not in "iu" or vertices.ndim != 2 or vertices.shape[1] != 2:
        raise ValueError(f"{expected}, got {format_value(pairs)}")
    if vertices.min() < 0 or vertices.max() >= n:
        raise ValueError(f"{expected}, got numbers from {vertices.min()} to {vertices.max()}")
    loops = np.flatnonzero(vertices[:, 0] == vertices[:, 1])
    if len(loops):
        k = int(loops[0])
        raise ValueError(
            f"the ends of a spring must differ, but both ends of spring {k} are vertex {vertices[k, 0]}"
        )
    return vertices.astype(np.int32)


def _broadcast_numbers(name: str, values: Any, count: int, limit: float) -> np.ndarray:
    """Broadcast a number, or one per spring, to (count,); negative numbers are rejected."""
    numbers = to_floats(values)
    if numbers.shape not in ((), (count,)):
        raise ValueError(
            f"{name} must be one number, or one for each of the {count} springs, got {format_value(values)}"
        )
    if not np.all((numbers >= 0) & (numbers <= limit)):  # NaN fails as well
        raise ValueError(f"{name} must lie between 0 and {limit:g}, got {format_value(values)}")
    return np.broadcast_to(numbers, count).astype(float)
