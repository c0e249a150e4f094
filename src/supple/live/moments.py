"""Moments of a live scene, and which of them one may go back to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.model import Model

LOST = 100.0
"""A body that spreads so far has exploded."""

SOUND = 10.0
"""So far a body may spread at a moment that is worth going back to."""

HASTY = 0.2
"""How far of the scene's size vertices may move in the update before such a moment, against each other."""


@dataclass(frozen=True, eq=False)
class Moment:
    """time [s], the number of updates until then, and by each solver positions (n, 3) [m] and rigid bodies
    (k, 18), None where the scene has them first."""

    time: float
    updates: int
    states: tuple[tuple[np.ndarray, np.ndarray | None], ...]


def spread(model: Model, positions: np.ndarray, held: np.ndarray) -> float:
    """The extent of the largest body at positions (n, 3), against that of the scene at rest or of what pins
    and hands hold apart at points (k, 3) [m], whichever is larger. A body that falls does not spread."""
    extents = [np.ptp(positions[body.vertices], axis=0).max() for body in model.bodies]
    apart = np.ptp(held, axis=0).max() if len(held) else 0.0
    return float(max(extents) / max(size(model), apart))


def is_sound(model: Model, before: np.ndarray, after: np.ndarray, held: np.ndarray) -> bool:
    """Whether an update from positions before to after (n, 3) left the bodies whole and calm."""
    moved = after - before
    hurry = np.abs(moved - moved.mean(axis=0)).max() / size(model)
    return bool(hurry <= HASTY and spread(model, after, held) <= SOUND)


def size(model: Model) -> float:
    """The largest extent of the scene at rest [m]."""
    return float(np.ptp(model.rest, axis=0).max())
