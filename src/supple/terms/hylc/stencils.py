"""Triangles of a fabric: shape gradients in thread coordinates, and neighbors."""

from __future__ import annotations

import numpy as np

from supple.terms.shells.bending import hinges_of


def shapes(uv: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shape gradients (m, 3, 2) [1/m] and areas (m,) [m²] of triangles (m, 3, 2) in thread coordinates."""
    edges = uv[:, 1:] - uv[:, :1]
    twice = np.linalg.det(edges)
    if not (twice > 0).all():
        raise ValueError(
            f"{int((~(twice > 0)).sum())} triangles are flat or upside down in the fabric, for example "
            f"{int(np.flatnonzero(~(twice > 0))[0])}; their uv coordinates must be counter-clockwise [m]"
        )
    others = np.linalg.inv(edges).transpose(0, 2, 1)
    return np.concatenate([-others.sum(axis=1, keepdims=True), others], axis=1), 0.5 * twice


def neighbors(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the neighbors of triangles.

    Returns:
        (m, 3) apexes of the neighbors across the edges 01, 12 and 20, or the triangle's own opposite corner
        at a border, and (m, 3) flags of existing neighbors.
    """
    vertices, owners = hinges_of(triangles)
    apexes, exists = triangles[:, [2, 0, 1]].copy(), np.zeros(triangles.shape, bool)
    for side, apex in ((0, 3), (1, 2)):
        start = vertices[:, side]
        owner = owners[:, side]
        edge = np.argmax(triangles[owner] == start[:, None], axis=1)
        apexes[owner, edge], exists[owner, edge] = vertices[:, apex], True
    return apexes, exists
