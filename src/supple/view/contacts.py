"""Where bodies touch obstacles and each other, for pictures."""

from __future__ import annotations

import numpy as np

from supple.contact import distances_to
from supple.model import Model

TOUCHES = 1e-4
"""How far from an obstacle a vertex may be, in parts of the mean edge."""


def contact_points(model: Model, positions: np.ndarray, time: float) -> np.ndarray:
    """(c, 3) [m] vertices that touch obstacles where these are at a time [s], and points where bodies meet,
    with vertices at positions (n, 3)."""
    found = [np.empty((0, 3))]
    if model.obstacles is not None:
        distance, _, _ = distances_to(model.obstacles.shapes(time), positions)
        found.append(positions[np.abs(distance) <= TOUCHES * model.mean_edge])
    for _, follower in model.followers:
        if hasattr(follower, "meeting_points"):
            found.append(follower.meeting_points(positions))
    return np.concatenate(found)
