"""Derivatives with respect to pin positions, and to rest positions of pinned vertices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.model.dirichlet import DirichletConditions, PinConstraint
from supple.model.model import Model
from supple.scene.build import Prescribed

REST_STEP = 1e-5
"""Finite difference step of rest positions, relative to the size of the pinned set."""

MOTION_STEP = 1e-3
"""Finite difference step of motion parameters, relative to the larger of 1 and their magnitude."""

POSITION_TOLERANCE = 1e-9
"""Largest deviation of vertices from their motion, relative to the size of the pinned set."""


def split_by_pin(model: Model, derivatives: np.ndarray) -> dict[str, np.ndarray]:
    """Distribute derivatives (k, 3) with respect to pinned positions among the pins, by name.

    A vertex with several pins is divided according to the directions constrained by each.
    """
    supports = model.supports or (("pins", model.pinned, None),)
    holding = DirichletConditions(
        [PinConstraint(vertices, model.rest[vertices], along) for _, vertices, along in supports]
    )
    names = [name for name, _, _ in supports]
    return dict(zip(names, holding.distribute_reactions(derivatives), strict=True))


def pinned_rest_derivatives(
    model: Model, positions: np.ndarray, time: float, pins: dict[str, np.ndarray]
) -> np.ndarray:
    """Derivatives with respect to rest positions of pinned vertices, which follow the scene's motions.

    Vertices that are not at their motion's position, such as varied ones, stay fixed. The motion of a vertex
    must depend on its own rest position only.

    Args:
        model: Model.
        positions: (n, 3) positions [m].
        time: Time [s].
        pins: (k, 3) derivatives with respect to the positions of each pin's vertices.

    Returns:
        (n, 3) derivatives.
    """
    total = np.zeros_like(model.rest)
    if not isinstance(model.prescribed, Prescribed):
        for name, vertices, _ in model.supports or (("pins", model.pinned, None),):
            total[vertices] += pins[name]
        return total
    for pin in model.prescribed.pins:
        X, vertices, derivatives = pin.on.points, pin.on.vertices, pins[pin.name]
        if pin.motion is None:
            total[vertices] += derivatives
            continue
        size = float(np.ptp(X, axis=0).max(initial=0.0)) + float(np.abs(X).max(initial=0.0)) + 1e-12
        deviation = pin.motion(X, time) - positions[vertices]
        follows_motion = (
            np.abs(_along(deviation, pin.directions)).max(axis=1, initial=0.0) <= POSITION_TOLERANCE * size
        )
        for axis in range(3):
            shift = REST_STEP * size * np.eye(3)[axis]
            moved = (pin.motion(X + shift, time) - pin.motion(X - shift, time)) / (2 * REST_STEP * size)
            total[vertices, axis] += np.where(follows_motion, np.einsum("ki,ki->k", moved, derivatives), 0.0)
    return total


def motion_derivatives(
    make: Callable[[np.ndarray], Callable[..., np.ndarray]],
    values: np.ndarray,
    rest: np.ndarray,
    time: float,
    by_positions: np.ndarray,
) -> np.ndarray:
    """Derivatives with respect to motion parameters, by central differences of fourth order.

    Args:
        make: Function that creates a motion from its parameters.
        values: Parameters.
        rest: (k, 3) rest positions [m].
        time: Time [s].
        by_positions: (k, 3) derivatives with respect to the positions of the motion.
    """
    derivatives = np.zeros_like(values)
    for index in np.ndindex(values.shape):
        h = MOTION_STEP * max(1.0, abs(float(values[index])))
        for offset, weight in zip((-2, -1, 1, 2), (1, -8, 8, -1), strict=True):
            moved = values.copy()
            moved[index] += offset * h
            derivatives[index] += weight / (12 * h) * float((make(moved)(rest, time) * by_positions).sum())
    return derivatives


def _along(vectors: np.ndarray, directions: np.ndarray | None) -> np.ndarray:
    """Components of vectors (k, 3) along a pin's directions (d, 3) or (k, d, 3); all for None."""
    if directions is None:
        return vectors
    return vectors @ directions.T if directions.ndim == 2 else np.einsum("kdi,ki->kd", directions, vectors)
