"""Newton's systems H x = b by conjugate gradients with a multilevel preconditioner, in the basis of that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix

from supple.linear.block_rows import Threes
from supple.linear.krylov import Coefficients, Found, iterate, measure_curvature, ritz_values
from supple.linear.multilevel import Preconditioner, as_matrix, as_records

WIDENINGS = 5
"""How often a preconditioner is made more cautious that is not positive."""


class Solution(NamedTuple):
    """x ≈ H⁻¹ b; iterations; negative: a direction p with p·Hp ≤ 0 on which they ended, with what had been
    found before as x, or None; coefficients: of the iterations, which tell `ritz`. Of vectors that are given
    and found as records (f, 4), kernels have the numbers."""

    x: np.ndarray
    iterations: int
    negative: np.ndarray | None
    coefficients: Coefficients

    @property
    def ritz(self) -> np.ndarray:
        """Approximations from inside of the eigenvalues of M H, ascending, of which the first is the smallest
        curvature that the iterations have seen."""
        return ritz_values(self.coefficients)


def pcg(
    H: bsr_matrix,
    b: np.ndarray,
    M: Preconditioner,
    eta: float,
    floor: float = 0.0,
    max_iterations: int = 1000,
) -> Solution:
    """Solve H x = b (3 f,) until √(r·Mr) ≤ eta times what it was at x = 0, or |r| ≤ floor."""
    found, _ = solve(as_matrix(H), as_records(b.astype(float)), M, eta, floor, max_iterations)

    def here(records: np.ndarray) -> np.ndarray:
        M.device.pull(records)
        return records[:, :3].ravel()

    negative = None if found.negative is None else here(found.negative)
    return found._replace(x=here(found.x), negative=negative)


def solve(
    H: Threes, b: np.ndarray, M: Preconditioner, eta: float, floor: float, max_iterations: int
) -> tuple[Solution, float]:
    """Solve H x = b as `pcg` does, where kernels see H and the records b (f, 4); also gives b·x."""
    device, vectors = M.device, M.vectors
    A = M.in_basis(H)
    for _ in range(WIDENINGS):
        device.assign(vectors.r, M.forces(b))
        found: Found = iterate(device, A, M.cycle, vectors, eta, floor, max_iterations)
        if found.positive:
            break
        M.widen()
    negative = M.moves(vectors.p) if found.negative else None
    return Solution(M.moves(vectors.x), found.iterations, negative, found.coefficients), found.gain


def curvature_along(H: Threes, p: np.ndarray, M: Preconditioner) -> float:
    """p · H p / |p|² [N/m] of records p (f, 4)."""
    figures = np.zeros((1, 4))
    M.device.run(measure_curvature, 3, H, p, M.vectors.q, M.vectors.parts, figures)
    M.device.pull(figures)
    return float(figures[0, 1] / max(figures[0, 2], 1e-300))


def product_here(H: Threes, p: np.ndarray, M: Preconditioner) -> np.ndarray:
    """H p (f, 3) of records p (f, 4), by kernels, here."""
    curvature_along(H, p, M)
    M.device.pull(M.vectors.q)
    return M.vectors.q[:, :3].copy()


def shares_along(M: Preconditioner) -> np.ndarray:
    """(f,) what each row has of p · H p, of the p on which conjugate gradients with M have ended because that
    was not positive; in the basis of M."""
    p, q = M.vectors.p, M.vectors.q
    for vector in (p, q):
        M.device.pull(vector)
    return np.einsum("fi,fi->f", p[:, :3], q[:, :3])
