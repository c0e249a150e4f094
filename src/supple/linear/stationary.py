"""Linear solvers of comparisons in the papers: Gauss-Seidel, BiCGSTAB and dense QR.

They are slower than the other solvers and serve as a reference. All of them accept indefinite matrices.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.linalg import qr, solve_triangular
from scipy.sparse import bsr_matrix
from scipy.sparse.linalg import bicgstab

from supple.linear.conjugate_gradients import inverse_diagonal

LARGEST_QR = 6000
"""Largest number of unknowns n for dense QR: it takes 24 n² bytes and about n³ operations."""


@njit(cache=True)
def _sweep(indptr, indices, blocks, inverse, b, x):
    """xᵢ += Dᵢ⁻¹ (bᵢ - Σ Hᵢⱼ xⱼ) for all i in turn; returns |b - H x|² as measured during the sweep."""
    squared_residual = 0.0
    for i in range(len(inverse)):
        r0, r1, r2 = b[3 * i], b[3 * i + 1], b[3 * i + 2]
        for k in range(indptr[i], indptr[i + 1]):
            j, B = 3 * indices[k], blocks[k]
            r0 -= B[0, 0] * x[j] + B[0, 1] * x[j + 1] + B[0, 2] * x[j + 2]
            r1 -= B[1, 0] * x[j] + B[1, 1] * x[j + 1] + B[1, 2] * x[j + 2]
            r2 -= B[2, 0] * x[j] + B[2, 1] * x[j + 1] + B[2, 2] * x[j + 2]
        squared_residual += r0 * r0 + r1 * r1 + r2 * r2
        D = inverse[i]
        for a in range(3):
            x[3 * i + a] += D[a, 0] * r0 + D[a, 1] * r1 + D[a, 2] * r2
    return squared_residual


def gauss_seidel(H: bsr_matrix, b: np.ndarray, accuracy: float, sweeps: int) -> np.ndarray:
    """Solve H x = b by Gauss-Seidel sweeps over 3×3 blocks from x = 0.

    Args:
        H: Matrix of 3×3 blocks.
        b: (3 f,) right-hand side.
        accuracy: Tolerance of |H x - b| relative to |b|.
        sweeps: Maximum number of sweeps.
    """
    inverse, x, target = inverse_diagonal(H), np.zeros_like(b), accuracy**2 * (b @ b)
    for _ in range(sweeps):
        left = _sweep(H.indptr, H.indices, H.data, inverse, b, x)
        if left <= target or not np.isfinite(left):
            break
    return x


def solve_bicgstab(H: bsr_matrix, b: np.ndarray, accuracy: float, iterations: int) -> np.ndarray:
    """Solve H x = b by BiCGSTAB from x = 0 without preconditioner."""
    return np.asarray(bicgstab(H.tocsr(), b, rtol=accuracy, atol=0.0, maxiter=iterations)[0])


def dense_qr(H: bsr_matrix, b: np.ndarray) -> np.ndarray:
    """Solve H x = b by H = Q R."""
    if len(b) > LARGEST_QR:
        raise ValueError(
            f"linear_solver='qr' is for up to {LARGEST_QR:,} unknowns, and there are {len(b):,}; "
            "'direct' finds the same solution of larger systems"
        )
    Q, R = qr(H.toarray(), mode="economic")
    return solve_triangular(R, Q.T @ b)
