"""Soft shadow on the ground, sharper and darker below low parts of a body."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter

GROUND_CELLS = 96
"""Number of ground cells per direction."""

SHADOW_LAYERS = 6
"""Number of height slices of a body, each with its own shadow softness."""


@dataclass(frozen=True, eq=False)
class Shadow:
    """Ground points (CELLS + 1, CELLS + 1, 3) [m] and their darkness, 0 to 1."""

    points: np.ndarray
    darkness: np.ndarray


def ground_level(points: np.ndarray) -> float:
    """Height of the ground [m], slightly below the lowest of points (n, 3)."""
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    return float(points[:, 1].min()) - 0.015 * size


def shadow_of(corners: np.ndarray, triangles: np.ndarray, level: float) -> Shadow:
    """Compute the shadow of triangles (k, 3) with corners (c, 3) on the plane y = level."""
    points = np.concatenate([corners[triangles].mean(axis=1), corners])
    low, high = points.min(axis=0), points.max(axis=0)
    size = float(np.linalg.norm(high - low)) or 1.0
    center = (low + high)[[0, 2]] / 2
    half = 0.5 * float((high - low)[[0, 2]].max()) + 0.45 * size + 0.4 * max(0.0, float(low[1]) - level)
    ticks = np.linspace(-half, half, GROUND_CELLS + 1)
    x, z = np.meshgrid(center[0] + ticks, center[1] + ticks, indexing="ij")
    cell = 2 * half / GROUND_CELLS
    at = np.round((points[:, [0, 2]] - center + half) / cell).astype(int)
    height = (points[:, 1] - level) / size
    edges = np.linspace(height.min(), height.max() + 1e-9, SHADOW_LAYERS + 1)
    light = np.ones(x.shape)
    for lower, upper in pairwise(edges):
        inside = (height >= lower) & (height < upper)
        covered = np.zeros(x.shape)
        covered[tuple(at[inside].T)] = 1.0
        covered = _close_holes(covered)
        softness = (0.02 + 0.3 * max(0.0, (lower + upper) / 2)) * size / cell
        light *= 1 - 0.75 * gaussian_filter(covered, softness)
    inwards = np.clip(2 - 2 * np.hypot(x - center[0], z - center[1]) / half, 0, 1)
    fading = inwards**2 * (3 - 2 * inwards)
    return Shadow(np.stack([x, np.full_like(x, level), z], axis=-1), (1 - light) * fading)


def _close_holes(covered: np.ndarray) -> np.ndarray:
    """Close holes between points in neighboring cells."""
    from scipy.ndimage import binary_closing

    return binary_closing(np.pad(covered > 0, 2), iterations=2)[2:-2, 2:-2].astype(float)
