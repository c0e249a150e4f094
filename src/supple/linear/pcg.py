"""Solution of Newton systems H x = b by multilevel-preconditioned conjugate gradients, in the
preconditioner's basis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix

from supple.linear.block_matrix import Threes
from supple.linear.multilevel.preconditioner import Preconditioner, as_matrix, as_records
from supple.linear.pcg_kernels import Coefficients, PCGOutcome, iterate, measure_curvature, ritz_values

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
    H: Threes, b: np.ndarray, M: Preconditioner, eta: float, floor: float, max_iterations: int
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


def curvature_along(H: Threes, p: np.ndarray, M: Preconditioner) -> float:
    """Curvature p·Hp / |p|² [N/m] along padded vectors p (f, 4)."""
    scalars = np.zeros((1, 4))
    M.device.run(measure_curvature, 3, H, p, M.vectors.q, M.vectors.parts, scalars)
    M.device.download(scalars)
    return float(scalars[0, 1] / max(scalars[0, 2], 1e-300))


def host_product(H: Threes, p: np.ndarray, M: Preconditioner) -> np.ndarray:
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
