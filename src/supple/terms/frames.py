"""Frames of triangles: how those of a flat pattern lie in space."""

from __future__ import annotations

import numpy as np


def flattened(corners: np.ndarray) -> np.ndarray:
    """Coordinates (m, 3, 2) of the corners (m, 3, 3) [m] of triangles in their own planes, counter-clockwise;
    those that lie in z = 0 keep their x, so that patterns keep their directions."""
    if not corners[..., 2].any():
        flat = corners[..., :2].copy()
        first, second = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0]
        over = first[:, 0] * second[:, 1] < first[:, 1] * second[:, 0]
        flat[over, :, 1] *= -1
        return flat
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    along = first / np.linalg.norm(first, axis=1, keepdims=True)
    normal = np.cross(first, second)
    across = np.cross(normal / np.linalg.norm(normal, axis=1, keepdims=True), along)
    relative = corners - corners[:, :1]
    return np.stack([np.einsum("eai,ei->ea", relative, axis) for axis in (along, across)], axis=2)


def pattern_gradients(flat: np.ndarray) -> np.ndarray:
    """Shape gradients (m, 3, 2) [1/m] of triangles with corners flat (m, 3, 2) [m]."""
    edges = flat[:, 1:] - flat[:, :1]
    others = np.linalg.inv(edges).transpose(0, 2, 1)
    return np.concatenate([-others.sum(axis=1, keepdims=True), others], axis=1)


def pattern_frames(corners: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """(m, 3, 2) where the two axes of a pattern flat (m, 3, 2) lie in triangles with corners (m, 3, 3): R of
    the polar decomposition of its deformation."""
    F = np.einsum("eai,eaj->eij", corners, pattern_gradients(flat))
    U, _, V = np.linalg.svd(F, full_matrices=False)
    return U @ V
