"""Newton systems H x = b by preconditioned conjugate gradients, jointly or with a tolerance per body."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix

from supple.linear.block_matrix import Blocks3x3
from supple.linear.multilevel.preconditioner import Preconditioner, as_matrix, as_records
from supple.linear.multilevel_cg_kernels import (
    Coefficients,
    PCGOutcome,
    iterate,
    measure_curvature,
    ritz_values,
)

MAX_WIDENINGS = 5
"""Number of attempts; after each one with an indefinite preconditioner, its spectral radii are increased."""


class Solution(NamedTuple):
    """Result of conjugate gradients. Vectors found by `solve` are padded vectors (f, 4) in device memory.

    Attributes:
        x: Approximation of H⁻¹ b, or the last iterate before negative curvature.
        iterations: Number of iterations.
        negative: Direction p with p·Hp ≤ 0 that ended the iterations, or None.
        coefficients: Coefficients of the iterations, used by `ritz`.
    """

    x: np.ndarray
    iterations: int
    negative: np.ndarray | None
    coefficients: Coefficients

    @property
    def ritz(self) -> np.ndarray:
        """Ritz values of M H, ascending; the first one is the smallest curvature seen by the iterations.

        They approximate the spectrum of M H from inside.
        """
        return ritz_values(self.coefficients)


def pcg(
    H: bsr_matrix,
    b: np.ndarray,
    M: Preconditioner,
    eta: float,
    floor: float = 0.0,
    max_iterations: int = 1000,
) -> Solution:
    """Solve H x = b until √(r·Mr) ≤ eta times its value at x = 0, or |r| ≤ floor.

    Args:
        H: Matrix of 3×3 blocks.
        b: (3 f,) right-hand side.
        M: Preconditioner of H.
        eta: Relative tolerance of √(r·Mr).
        floor: Absolute tolerance of |r|.
        max_iterations: Iteration limit.
    """
    solution, _ = solve(as_matrix(H), as_records(b.astype(float)), M, eta, floor, max_iterations)

    def to_host_vector(records: np.ndarray) -> np.ndarray:
        M.device.download(records)
        return records[:, :3].ravel()

    negative = None if solution.negative is None else to_host_vector(solution.negative)
    return solution._replace(x=to_host_vector(solution.x), negative=negative)


def solve(
    H: Blocks3x3, b: np.ndarray, M: Preconditioner, eta: float, floor: float, max_iterations: int
) -> tuple[Solution, float]:
    """Solve H x = b like `pcg`, with H and padded vectors b (f, 4) in device memory; also returns b·x."""
    device, vectors = M.device, M.vectors
    A = M.in_basis(H)
    for _ in range(MAX_WIDENINGS):
        device.assign(vectors.r, M.forces(b))
        outcome: PCGOutcome = iterate(device, A, M.cycle, vectors, eta, floor, max_iterations)
        if outcome.positive:
            break
        M.widen()
    negative = M.moves(vectors.p) if outcome.negative else None
    return Solution(M.moves(vectors.x), outcome.iterations, negative, outcome.coefficients), outcome.gain


def curvature_along(H: Blocks3x3, p: np.ndarray, M: Preconditioner) -> float:
    """Curvature p·Hp / |p|² [N/m] along padded vectors p (f, 4)."""
    scalars = np.zeros((1, 4))
    M.device.run(measure_curvature, 3, H, p, M.vectors.q, M.vectors.parts, scalars)
    M.device.download(scalars)
    return float(scalars[0, 1] / max(scalars[0, 2], 1e-300))


def host_product(H: Blocks3x3, p: np.ndarray, M: Preconditioner) -> np.ndarray:
    """Compute H p (f, 3) for padded vectors p (f, 4) on the device and download it."""
    curvature_along(H, p, M)
    M.device.download(M.vectors.q)
    return M.vectors.q[:, :3].copy()


def shares_along(M: Preconditioner) -> np.ndarray:
    """(f,) contribution of each row to p·Hp, in the basis of M, for the final direction p of conjugate
    gradients.

    Valid after the iterations ended at negative curvature.
    """
    p, q = M.vectors.p, M.vectors.q
    for vector in (p, q):
        M.device.download(vector)
    return np.einsum("fi,fi->f", p[:, :3], q[:, :3])


TOLERANCE_FACTOR = 0.5
"""Tolerance of the joint solve as a fraction of eta. Bodies that converge at the average rate then satisfy
eta; at least three out of four bodies satisfy it in any case."""


def solve_per_body(
    H: Blocks3x3,
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
