"""Saved states of a live scene, and the checks that qualify a state for rollback."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.model.model import Model

DIVERGENCE_RATIO = 100.0
"""Ratio of body extent to reference size above which a solve has diverged."""

MAX_VALID_RATIO = 10.0
"""Largest ratio of body extent to reference size in a state saved for rollback."""

MAX_RELATIVE_MOTION = 0.2
"""Largest vertex displacement relative to the mean displacement in the update before a saved state, as a
fraction of the scene size."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Saved state of a simulation.

    Attributes:
        time: Time [s].
        updates: Number of updates until then.
        states: For each solver, positions (n, 3) [m] and rigid bodies (k, 18); None for the initial rigid
            bodies.
    """

    time: float
    updates: int
    states: tuple[tuple[np.ndarray, np.ndarray | None], ...]


def extent_ratio(model: Model, positions: np.ndarray, constrained: np.ndarray) -> float:
    """Largest body extent relative to the reference size; translation does not contribute.

    The reference is the extent of the scene at rest or of the constrained points, whichever is larger.

    Args:
        model: The model.
        positions: (n, 3) positions [m].
        constrained: (k, 3) constrained points [m].
    """
    extents = [np.ptp(positions[body.vertices], axis=0).max() for body in model.bodies]
    constrained_extent = np.ptp(constrained, axis=0).max() if len(constrained) else 0.0
    return float(max(extents) / max(size(model), constrained_extent))


def is_valid_state(model: Model, before: np.ndarray, after: np.ndarray, constrained: np.ndarray) -> bool:
    """True if bodies kept a plausible size and moved little in an update.

    Args:
        model: The model.
        before: (n, 3) positions before the update [m].
        after: (n, 3) positions after the update [m].
        constrained: (k, 3) constrained points [m].
    """
    moved = after - before
    relative_motion = np.abs(moved - moved.mean(axis=0)).max() / size(model)
    return bool(
        relative_motion <= MAX_RELATIVE_MOTION and extent_ratio(model, after, constrained) <= MAX_VALID_RATIO
    )


def size(model: Model) -> float:
    """Largest extent of the scene at rest [m]."""
    return float(np.ptp(model.rest, axis=0).max())
