"""Newton's systems of bodies that have nothing to do with each other, as one that does justice to all."""

from __future__ import annotations

import math

import numpy as np

from supple.linear.block_rows import Threes
from supple.linear.multilevel import Preconditioner
from supple.linear.pcg import Solution, solve

CLOSER = 0.5
"""Part of eta to which all bodies together are solved: of those that are not slower than others, each one is
then solved to eta; and at least three of four are in any case."""


def solve_apart(
    H: Threes,
    b: np.ndarray,
    M: Preconditioner,
    eta: float,
    max_iterations: int,
    body: np.ndarray,
    each: bool = False,
) -> tuple[Solution, np.ndarray]:
    """Solve H x = b as `solve` does, for rows (f,) of the numbered bodies; the right-hand side of each is
    scaled to the same √(b·Mb), so that what is left of soft ones does not hide stiff ones. Also gives √(r·Mr)
    of each, as part of what it was at x = 0: those that have more than eta have converged more slowly than
    the others; each: go on then, until none has. A negative direction stays scaled."""
    solve(H, b, M, eta, 0.0, 0)  # which only makes M b
    size = _sizes(M, body)
    size[size == 0] = 1.0
    scaled = _scaled(M, b, 1 / size[body])
    found, _ = solve(H, scaled, M, CLOSER * eta, 0.0, max_iterations)
    left = _sizes(M, body)
    if each and found.negative is None and not (left <= eta).all():
        closest = eta / math.sqrt(len(size))  # of all together, as if one had all that is left
        before = found.iterations
        found, _ = solve(H, scaled, M, closest, 0.0, max_iterations)
        found, left = found._replace(iterations=before + found.iterations), _sizes(M, body)
    return found._replace(x=_scaled(M, found.x, size[body])), left


def _sizes(M: Preconditioner, body: np.ndarray) -> np.ndarray:
    """√(r·Mr) of each body, of the r with which conjugate gradients have ended."""
    r, z = M.vectors.r, M.cycle.fine.x
    for vector in (r, z):
        M.device.pull(vector)
    return np.sqrt(np.maximum(np.bincount(body, np.einsum("fi,fi->f", r[:, :3], z[:, :3])), 0))


def _scaled(M: Preconditioner, records: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Records (f, 4) times numbers (f,), in memory of their own."""
    M.device.pull(records)
    return records * by[:, None]
