"""Soft light, computed once per corner so that every renderer shows the same."""

from __future__ import annotations

import numpy as np

GAMMA = 2.2
"""Of screens (sRGB, nearly): light adds up in what is linear."""

KEY, SKY, BOUNCE, FRONT = 0.56, 0.42, 0.2, 0.14
"""Strengths: a lamp from the upper left, the sky above, the floor below, and the camera's own light."""

WRAP = 0.35
"""How far the lamp's light reaches around the body's horizon, as from a large lamp."""


def shade(colours: np.ndarray, normals: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Lit colours (n, 3) of corners with unit normals (n, 3); axes: rows right, up, towards the camera."""
    right, _, towards = axes
    lamp = _unit(1.2 * towards - right + 1.6 * np.array([0.0, 1.0, 0.0]))
    upwards = 0.5 + 0.5 * normals[:, 1]
    light = SKY * upwards + BOUNCE * (1 - upwards)
    light += KEY * np.clip((normals @ lamp + WRAP) / (1 + WRAP), 0, 1)
    light += FRONT * np.clip(normals @ towards, 0, 1)
    return np.clip(colours**GAMMA * light[:, None], 0, 1) ** (1 / GAMMA)


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
