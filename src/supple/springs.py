"""Dynamic springs between vertices of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.checks import LARGEST, LONGEST, floats, shown
from supple.model import Model
from supple.terms import Springs


def with_room_for_springs(model: Model, capacity: int) -> Model:
    """Add an empty spring term with a given capacity to a model."""
    none = np.empty((0, 2), np.int32), np.empty(0), np.empty((0, 1))
    return replace(model, terms=(*model.terms, Springs(*none, model.rest, capacity)))


def springs_between(
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
    vertices = _pairs(pairs, model.vertices)
    if length is None:
        ends = positions[vertices]
        length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    if stiffness is None:
        if len(vertices):
            raise ValueError(f"{len(vertices)} springs need a stiffness [N/m]")
        stiffness = 0.0
    k = _for_each("stiffness [N/m]", stiffness, len(vertices), LARGEST)
    L = _for_each("rest_length [m]", length, len(vertices), LONGEST)
    return Springs(vertices, k, L[:, None], model.rest)


def _pairs(pairs: Any, n: int) -> np.ndarray:
    """Validate pairs of vertices."""
    given = np.asarray(pairs)
    if given.size == 0:
        return np.empty((0, 2), np.int32)
    wanted = f"springs are pairs of vertices: whole numbers (m, 2) from 0 to {n - 1}"
    if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != 2:
        raise ValueError(f"{wanted}, got {shown(pairs)}")
    if given.min() < 0 or given.max() >= n:
        raise ValueError(f"{wanted}, got some from {given.min()} to {given.max()}")
    alone = np.flatnonzero(given[:, 0] == given[:, 1])
    if len(alone):
        k = int(alone[0])
        raise ValueError(f"a spring has two different ends, but both of spring {k} are vertex {given[k, 0]}")
    return given.astype(np.int32)


def _for_each(name: str, values: Any, count: int, limit: float) -> np.ndarray:
    """Broadcast a number, or one per spring, to (count,); negative numbers are rejected."""
    numbers = floats(values)
    if numbers.shape not in ((), (count,)):
        raise ValueError(
            f"{name} must be a number or one for each of the {count} springs, got {shown(values)}"
        )
    if not np.all((numbers >= 0) & (numbers <= limit)):  # NaN fails as well
        raise ValueError(f"{name} must lie between 0 and {limit:g}, got {shown(values)}")
    return np.broadcast_to(numbers, count).astype(float)
