"""Soft lighting, computed per corner, so that all renderers look alike."""

from __future__ import annotations

import numpy as np

GAMMA = 2.2
"""Screen gamma (approximately sRGB); light is summed in linear space."""

KEY, SKY, BOUNCE, FRONT = 0.56, 0.42, 0.2, 0.14
"""Intensities of the lamp from the upper left, the sky, the floor and the camera light."""

LAMP_WRAP = 0.35
"""Extent of the lamp's light beyond the terminator, as from a large lamp."""


def shade(colors: np.ndarray, normals: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Apply lighting.

    Args:
        colors: (n, 3) colors.
        normals: (n, 3) unit normals.
        axes: Camera axes, rows to the right, up and toward the camera.

    Returns:
        (n, 3) lit colors.
    """
    right, _, towards = axes
    lamp = _unit(1.2 * towards - right + 1.6 * np.array([0.0, 1.0, 0.0]))
    upwards = 0.5 + 0.5 * normals[:, 1]
    light = SKY * upwards + BOUNCE * (1 - upwards)
    light += KEY * np.clip((normals @ lamp + LAMP_WRAP) / (1 + LAMP_WRAP), 0, 1)
    light += FRONT * np.clip(normals @ towards, 0, 1)
    return np.clip(colors**GAMMA * light[:, None], 0, 1) ** (1 / GAMMA)


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
