"""Newton system of several disconnected bodies, solved jointly to a tolerance per body."""

from __future__ import annotations

import math

import numpy as np

from supple.linear.block_matrix import Threes
from supple.linear.multilevel.preconditioner import Preconditioner
from supple.linear.pcg import Solution, solve

TOLERANCE_FACTOR = 0.5
"""Tolerance of the joint solve as a fraction of eta. Bodies that converge at the average rate then satisfy
eta; at least three out of four bodies satisfy it in any case."""


def solve_per_body(
    H: Threes,
    b: np.ndarray,
    M: Preconditioner,
    eta: float,
    max_iterations: int,
    body: np.ndarray,
    each: bool = False,
) -> tuple[Solution, np.ndarray]:
    """Solve H x = b like `solve`, with a convergence measure per disconnected body.

    The right-hand side of each body is scaled to the same √(b·Mb), so that residuals of soft bodies do not
    hide those of stiff bodies. A direction of negative curvature stays scaled.

    Args:
        H: Block matrix in device memory.
        b: (f, 4) right-hand side, padded vectors in device memory.
        M: Preconditioner of H.
        eta: Tolerance of √(r·Mr) relative to its value at x = 0.
        max_iterations: Iteration limit of each solve.
        body: (f,) body number of each row.
        each: Iterate until every body satisfies eta.

    Returns:
        Solution, and √(r·Mr) of each body relative to its value at x = 0. Bodies above eta have converged
        more slowly than the others.
    """
    solve(H, b, M, eta, 0.0, 0)  # computes M b only
    size = _body_norms(M, body)
    size[size == 0] = 1.0
    scaled = _scale_bodies(M, b, 1 / size[body])
    solution, _ = solve(H, scaled, M, TOLERANCE_FACTOR * eta, 0.0, max_iterations)
    left = _body_norms(M, body)
    if each and solution.negative is None and not (left <= eta).all():
        closest = eta / math.sqrt(len(size))  # joint tolerance if one body holds the entire residual
        before = solution.iterations
        solution, _ = solve(H, scaled, M, closest, 0.0, max_iterations)
        solution, left = solution._replace(iterations=before + solution.iterations), _body_norms(M, body)
    return solution._replace(x=_scale_bodies(M, solution.x, size[body])), left


def _body_norms(M: Preconditioner, body: np.ndarray) -> np.ndarray:
    """√(r·Mr) of each body for the final residual r of conjugate gradients."""
    r, z = M.vectors.r, M.cycle.fine.x
    for vector in (r, z):
        M.device.download(vector)
    return np.sqrt(np.maximum(np.bincount(body, np.einsum("fi,fi->f", r[:, :3], z[:, :3])), 0))


def _scale_bodies(M: Preconditioner, records: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return padded vectors (f, 4) times factors (f,) in new memory."""
    M.device.download(records)
    return records * by[:, None]
