"""Disks and balls from subdivided simplices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations, product
from math import sqrt

import numpy as np


def disk(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit disk with n rings: points (v, 2) and 6 n² triangles, from the sectors of a hexagon."""
    hexagon = np.array([[1, 0], [1, 1], [0, 1], [-1, 0], [-1, -1], [0, -1]])
    regular = hexagon @ np.array([[1, 0], [-0.5, sqrt(0.75)]])
    return _curve(n, [(i, (i + 1) % 6) for i in range(6)], regular, hexagon)


def ball(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit ball with n layers: points (v, 3) and 20 n³ tets, from the sectors of an icosahedron."""
    regular = _icosahedron((1 + sqrt(5)) / 2)
    faces = [face for face in combinations(range(12), 3) if _are_neighbors(regular[list(face)])]
    return _curve(n, faces, regular, _icosahedron(2))


def _icosahedron(ratio: float) -> np.ndarray:
    """Corners (0, ±1, ±ratio) and their cyclic shifts, (12, 3); the golden ratio makes it regular."""
    signs = list(product((-1, 1), (-ratio, ratio)))
    return np.array([xyz for a, b in signs for xyz in ((0, a, b), (b, 0, a), (a, b, 0))])


def _are_neighbors(corners: np.ndarray) -> bool:
    """True if all corners of the regular icosahedron are connected by edges (of length 2)."""
    return all(np.linalg.norm(p - q) < 2.1 for p, q in combinations(corners, 2))


def _curve(
    n: int, faces: Sequence[tuple[int, ...]], regular: np.ndarray, integer_corners: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Subdivide the sectors between the origin and faces, and project each layer k to radius k / n.

    `integer_corners` has the shape of `regular` with integer corners: its lattice points are integers too, so
    points shared by sectors are identified without rounding.
    """
    weights, cells = _divide_simplex(n, regular.shape[1])
    outer = weights[:, 1:]
    directions = np.concatenate([outer @ regular[list(face)] for face in faces])
    lengths = np.linalg.norm(directions, axis=1)
    layers = np.tile(outer.sum(axis=1), len(faces))
    points = directions * (layers / (n * np.where(layers > 0, lengths, 1)))[:, None]

    lattice = np.concatenate([outer @ integer_corners[list(face)] for face in faces])
    width = 4 * n + 1  # lattice points lie between -2 n and 2 n
    key = (lattice + 2 * n) @ width ** np.arange(regular.shape[1])
    _, chosen, merged = np.unique(key, return_index=True, return_inverse=True)
    sectors = np.concatenate([cells + sector * len(weights) for sector in range(len(faces))])
    return points[chosen], merged[sectors]


def _divide_simplex(n: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Subdivided simplex of n^dim cells: barycentric weights (v, dim + 1) in units of 1/n, cells (·, dim +
    1).

    Kuhn's subdivision of {n ≥ x₁ ≥ x₂ ≥ ... ≥ 0}: paths from every lattice point along the axes in each
    order.
    """
    grid = np.indices((n + 1,) * dim).reshape(dim, -1).T
    inside = (np.diff(grid) <= 0).all(axis=1)
    number = np.cumsum(inside) - 1
    axes = np.eye(dim, dtype=int)
    walks = [np.cumsum([0 * axes[0], *axes[list(order)]], axis=0) for order in permutations(range(dim))]
    walked = grid[inside][:, None, None] + np.array(walks)
    fits = (walked[..., 0] <= n).all(axis=-1) & (np.diff(walked) <= 0).all(axis=(-1, -2))
    cells = np.ravel_multi_index(tuple(np.moveaxis(walked[fits], -1, 0)), (n + 1,) * dim)
    return -np.diff(grid[inside], prepend=n, append=0), number[cells]
