"""Contact points in pictures."""

from __future__ import annotations

import numpy as np

from supple.collision import distances_to
from supple.model.model import Model

MAX_CONTACT_DISTANCE = 1e-4
"""Largest distance of a contact vertex from an obstacle, relative to the mean edge length."""


def contact_points(model: Model, positions: np.ndarray, time: float) -> np.ndarray:
    """Contact points with obstacles and between bodies.

    Args:
        model: Model.
        positions: (n, 3) vertex positions [m].
        time: Time of moving obstacles [s].

    Returns:
        (c, 3) points [m].
    """
    points = [np.empty((0, 3))]
    if model.obstacles is not None:
        distance, _, _ = distances_to(model.obstacles.shapes(time), positions)
        points.append(positions[np.abs(distance) <= MAX_CONTACT_DISTANCE * model.mean_edge])
    for _, dynamic_term in model.dynamic_terms:
        points.append(dynamic_term.contact_points(positions))
    return np.concatenate(points)
