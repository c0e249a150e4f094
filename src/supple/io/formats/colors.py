"""Colors of bodies."""

from __future__ import annotations

import numpy as np

BODY_COLORS = ("#7fb3c8", "#e0a458", "#9bbf85", "#c97b84", "#a08fc4", "#d4c25a", "#8a9099", "#5c7fa3")


def srgb(body: int) -> np.ndarray:
    """sRGB color (3,) uint8 of a body."""
    return np.frombuffer(bytes.fromhex(BODY_COLORS[body % len(BODY_COLORS)][1:]), np.uint8)


def linear(body: int) -> np.ndarray:
    """Linear body color (3,), between 0 and 1, as required by USD and glTF."""
    return to_linear(srgb(body) / 255)


def to_linear(colors: np.ndarray) -> np.ndarray:
    """Convert sRGB from 0 to 1 to linear light."""
    return np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
