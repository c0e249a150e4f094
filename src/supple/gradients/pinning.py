"""Derivatives by where pins are, and by where their vertices are at rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.holding import Holding, Part
from supple.model import Model
from supple.scene.build import Prescribed

STEP = 1e-5
"""Of rest positions, in parts of the size of what is pinned."""

MOTION_STEP = 1e-3
"""Of what a motion is made of, in parts of it or of 1."""

AS_SAID = 1e-9
"""How far, in parts of that size, vertices may be from where a motion has them."""


def shares_of(model: Model, held: np.ndarray) -> dict[str, np.ndarray]:
    """What each pin has of derivatives (k, 3) by the positions of all pinned vertices, by its name: where
    several pins meet at a vertex, that by what each of them holds."""
    supports = model.supports or (("pins", model.pinned, None),)
    holding = Holding([Part(vertices, model.rest[vertices], along) for _, vertices, along in supports])
    names = [name for name, _, _ in supports]
    return dict(zip(names, holding.shares(held), strict=True))


def pull_through_motions(
    model: Model, positions: np.ndarray, time: float, pins: dict[str, np.ndarray]
) -> np.ndarray:
    """(n, 3) derivatives by the rest positions of pinned vertices, which move along with these as the motions
    say that the scene has; vertices that are elsewhere, as variations have them, stay there. The motion of a
    vertex is taken to depend on its own rest position only."""
    total = np.zeros_like(model.rest)
    if not isinstance(model.prescribed, Prescribed):
        for name, vertices, _ in model.supports or (("pins", model.pinned, None),):
            total[vertices] += pins[name]
        return total
    for pin in model.prescribed.pins:
        X, vertices, found = pin.on.points, pin.on.vertices, pins[pin.name]
        if pin.motion is None:
            total[vertices] += found
            continue
        size = float(np.ptp(X, axis=0).max(initial=0.0)) + float(np.abs(X).max(initial=0.0)) + 1e-12
        away = pin.motion(X, time) - positions[vertices]
        there = np.abs(_along(away, pin.directions)).max(axis=1, initial=0.0) <= AS_SAID * size
        for axis in range(3):
            shift = STEP * size * np.eye(3)[axis]
            moved = (pin.motion(X + shift, time) - pin.motion(X - shift, time)) / (2 * STEP * size)
            total[vertices, axis] += np.where(there, np.einsum("ki,ki->k", moved, found), 0.0)
    return total


def motion_slopes(
    make: Callable[[np.ndarray], Callable[..., np.ndarray]],
    values: np.ndarray,
    rest: np.ndarray,
    time: float,
    pulled: np.ndarray,
) -> np.ndarray:
    """Derivatives by the values that a motion is made of, from those (k, 3) by where it has points rest
    (k, 3) at a time [s]: by central differences of fourth order."""
    found = np.zeros_like(values)
    for place in np.ndindex(values.shape):
        h = MOTION_STEP * max(1.0, abs(float(values[place])))
        for offset, weight in zip((-2, -1, 1, 2), (1, -8, 8, -1), strict=True):
            moved = values.copy()
            moved[place] += offset * h
            found[place] += weight / (12 * h) * float((make(moved)(rest, time) * pulled).sum())
    return found


def _along(vectors: np.ndarray, directions: np.ndarray | None) -> np.ndarray:
    """What vectors (k, 3) have along the directions (d, 3) or (k, d, 3) of a pin, None for all."""
    if directions is None:
        return vectors
    return vectors @ directions.T if directions.ndim == 2 else np.einsum("kdi,ki->kd", directions, vectors)
