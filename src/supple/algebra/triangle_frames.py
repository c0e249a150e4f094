"""Local frames of triangles, and the placement of flat patterns in space."""

from __future__ import annotations

import numpy as np


def flatten_triangle(corners: np.ndarray) -> np.ndarray:
    """In-plane coordinates of triangles, counter-clockwise.

    Triangles in the plane z = 0 keep their x axis, so patterns keep their directions.

    Args:
        corners: (m, 3, 3) corners [m].

    Returns:
        (m, 3, 2) coordinates [m].
    """
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
    """Shape gradients (m, 3, 2) [1/m] of triangles with plane corners flat (m, 3, 2) [m]."""
    edges = flat[:, 1:] - flat[:, :1]
    others = np.linalg.inv(edges).transpose(0, 2, 1)
    return np.concatenate([-others.sum(axis=1, keepdims=True), others], axis=1)


def pattern_frames(corners: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """Directions of the pattern axes in space: R of the polar decomposition of the deformation.

    Args:
        corners: (m, 3, 3) corners of the triangles in space [m].
        flat: (m, 3, 2) corners in the pattern [m].

    Returns:
        (m, 3, 2) both axes of each pattern.
    """
    F = np.einsum("eai,eaj->eij", corners, pattern_gradients(flat))
    U, _, V = np.linalg.svd(F, full_matrices=False)
    return U @ V
