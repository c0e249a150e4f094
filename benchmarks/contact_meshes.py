"""Meshes for contact benchmarks: sectors around an axis with refined contact zones, stones of arches, and
meshes with halved edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import supple

SECTOR = np.radians(5.0)
"""Angle of one layer of cells; 72 of them are a full turn."""

ROUND = 2 * np.pi / SECTOR


def growing(inner: float, cells: int, ratio: float, size: float) -> np.ndarray:
    """Coordinates from 0 to a size: equal cells up to `inner`, then each longer than the last by a ratio."""
    step = inner / cells
    steps, total = [step] * cells, inner
    while total < size:
        step *= ratio
        steps.append(step)
        total += step
    line = np.concatenate([[0.0], np.cumsum(steps)])
    return np.where(line <= inner, line, inner + (line - inner) * (size - inner) / (line[-1] - inner))


def sector(
    radii: np.ndarray, depths: np.ndarray, profile: Callable[[np.ndarray], np.ndarray] | None = None
) -> supple.TetMesh:
    """A sector of a cylinder around y with its top at y = 0, or at a profile of the radius that vanishes
    towards the bottom."""
    cells = len(radii) - 1, len(depths) - 1, 1
    block = supple.block(cells=cells, size=(1, 1, 1))
    i, j, k = (np.rint(block.points[:, axis] * cells[axis]).astype(int) for axis in range(3))
    r, y, angle = radii[i], -depths[::-1][j], SECTOR * k
    if profile is not None:
        y = y + profile(r) * (1 + y / depths[-1])
    points = np.column_stack([r * np.cos(angle), y, r * np.sin(angle)])
    first = np.arange(len(r))
    for level in range(cells[1] + 1):
        on_axis = (i == 0) & (j == level)
        first[on_axis] = np.flatnonzero(on_axis & (k == 0))[0]
    tets = first[block.tets]
    distinct = np.array([len(set(tet)) == 4 for tet in tets.tolist()])
    used, tets = np.unique(tets[distinct], return_inverse=True)
    return supple.TetMesh(points[used], tets.reshape(-1, 4))


def hold_sector(scene: supple.Scene, body: Any, size: float, bottom: float, motion: Any = None) -> None:
    """Planes of symmetry on both sides and a pinned bottom with a motion."""
    sides = np.array([[0, 0, 1.0], [-np.sin(SECTOR), 0, np.cos(SECTOR)]])
    for normal in sides:
        scene.pin(body.where(lambda X, n=normal: np.abs(X @ n) < 1e-9 * size), normal=normal)
    scene.pin(body.where(lambda X: np.abs(X[:, 1] - bottom) < 1e-9 * size), motion)


def voussoir(
    begin: float, end: float, radius: float, thick: float, width: float, cells: int
) -> supple.TetMesh:
    """A stone of an arch around the z axis, between two angles from the horizontal."""
    block = supple.block(cells=(cells, cells, cells), size=(1, 1, 1))
    s, t, w = block.points.T
    angle, r = end + s * (begin - end), radius + thick * (t - 0.5)
    return supple.TetMesh(
        np.column_stack([r * np.cos(angle), r * np.sin(angle), width * (w - 0.5)]), block.tets
    )


PARTS = np.array(
    [[0, 4, 5, 6], [4, 1, 7, 8], [5, 7, 2, 9], [6, 8, 9, 3], [4, 5, 6, 8], [4, 7, 5, 8], [5, 9, 6, 8],
     [5, 7, 9, 8]]
)  # fmt: skip
"""Eight tetrahedra of the corners 0 to 3 and the middles 4 to 9 of the edges 01, 02, 03, 12, 13, 23."""


def halved(mesh: supple.TetMesh) -> supple.TetMesh:
    """Mesh with every tetrahedron cut into eight."""
    sides = np.sort(mesh.tets[:, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]], axis=2)
    edges, which = np.unique(sides.reshape(-1, 2), axis=0, return_inverse=True)
    points = np.concatenate([mesh.points, mesh.points[edges].mean(axis=1)])
    ten = np.column_stack([mesh.tets, len(mesh.points) + which.reshape(-1, 6)])
    return supple.TetMesh(points, ten[:, PARTS].reshape(-1, 4))
