"""Conjugate gradients with block-Jacobi preconditioner (3×3 diagonal blocks) as one threaded kernel."""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.sparse import bsr_matrix

from supple.kernels import (
    claim_chunk,
    counters_for,
    device_function,
    finish_chunk,
    kernel,
    run,
    wait_for_phase,
)

CHUNK_SIZE = 256
"""Number of block rows per work item of a thread."""

BURST_ITERATIONS = 64
"""Number of iterations per kernel call."""


def conjugate_gradients(
    H: bsr_matrix, b: np.ndarray, accuracy: float, max_iterations: int, threads: int
) -> tuple[np.ndarray, bool]:
    """Solve H x = b for a symmetric positive definite matrix of 3×3 blocks.

    Args:
        H: Matrix of 3×3 blocks.
        b: (3 f,) right-hand side.
        accuracy: Tolerance of |H x - b| relative to |b|. With 0, all iterations run unless the residual
            vanishes.
        max_iterations: Iteration limit.
        threads: Number of threads.

    Returns:
        x, and True if it satisfies the accuracy; False after the iteration limit or if H is not positive
        definite.
    """
    inverse = inverse_diagonal(H)
    z = np.einsum("vij,vj->vi", inverse, b.reshape(-1, 3)).ravel()
    x, r, p, q = np.zeros_like(b), b.copy(), z.copy(), np.empty_like(b)
    sums = np.zeros((BURST_ITERATIONS + 1, -(-len(inverse) // CHUNK_SIZE), 3))
    sums[0, 0] = 0, r @ z, r @ r
    target = accuracy**2 * (b @ b)
    done = np.zeros(1, np.int64)
    reached = False
    for before in range(0, max_iterations, BURST_ITERATIONS):
        burst = min(BURST_ITERATIONS, max_iterations - before)
        arguments = (H.indptr, H.indices, H.data, inverse, x, r, p, q, sums[: burst + 1], target, done)
        run(_iterate, threads, *arguments, counters_for(3 * burst))
        sums[0] = sums[done[0]]
        reached = bool(sums[0, :, 2].sum() <= target)
        if reached or done[0] < burst:
            break
    return (x if x.any() else z), reached


def inverse_diagonal(H: bsr_matrix) -> np.ndarray:
    """(f, 3, 3) inverses of the diagonal blocks."""
    rows = np.repeat(np.arange(len(H.indptr) - 1), np.diff(H.indptr))
    return np.linalg.inv(H.data[H.indices == rows])


@kernel
def _iterate(indptr, indices, blocks, inverse, x, r, p, q, sums, target, done, counters):
    """Run up to len(sums) - 1 iterations; stop if |r|² falls to the target or p·Hp ≤ 0. `done` receives their
    number.

    sums[i, chunk] holds p·Hp, r·z and r·r of iteration i. Each iteration has its own row, so a lagging thread
    never reads values of a later iteration.
    """
    rows = len(inverse)
    chunks = -(-rows // CHUNK_SIZE)
    for i in range(1, len(sums)):
        phase = 3 * (i - 1)
        chunk = claim_chunk(counters, phase, chunks)
        while chunk >= 0:
            first, last = chunk * CHUNK_SIZE, min(rows, (chunk + 1) * CHUNK_SIZE)
            sums[i, chunk, 0] = _multiply(indptr, indices, blocks, first, last, p, q)
            finish_chunk(counters, phase)
            chunk = claim_chunk(counters, phase, chunks)
        wait_for_phase(counters, phase, chunks)
        curvature = sums[i, :, 0].sum()
        done[0] = i - 1
        if not curvature > 0.0:
            return

        gain = sums[i - 1, :, 1].sum()
        alpha = gain / curvature
        chunk = claim_chunk(counters, phase + 1, chunks)
        while chunk >= 0:
            first, last = chunk * CHUNK_SIZE, min(rows, (chunk + 1) * CHUNK_SIZE)
            sums[i, chunk, 1], sums[i, chunk, 2] = _step(alpha, inverse, first, last, x, r, p, q)
            finish_chunk(counters, phase + 1)
            chunk = claim_chunk(counters, phase + 1, chunks)
        wait_for_phase(counters, phase + 1, chunks)
        done[0] = i
        if not sums[i, :, 2].sum() > target:
            return

        beta = sums[i, :, 1].sum() / gain
        chunk = claim_chunk(counters, phase + 2, chunks)
        while chunk >= 0:
            for j in range(3 * chunk * CHUNK_SIZE, 3 * min(rows, (chunk + 1) * CHUNK_SIZE)):
                p[j] = q[j] + beta * p[j]
            finish_chunk(counters, phase + 2)
            chunk = claim_chunk(counters, phase + 2, chunks)
        wait_for_phase(counters, phase + 2, chunks)


@njit(fastmath=False)  # reordered sums let LLVM vectorize the short inner loop: three times slower
def _multiply(indptr, indices, blocks, first, last, p, q):
    """Compute q = H p in rows first to last - 1; returns p·q of these rows."""
    total = 0.0
    for row in range(first, last):
        a = b = c = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            j = 3 * indices[k]
            x, y, z = p[j], p[j + 1], p[j + 2]
            a += blocks[k, 0, 0] * x + blocks[k, 0, 1] * y + blocks[k, 0, 2] * z
            b += blocks[k, 1, 0] * x + blocks[k, 1, 1] * y + blocks[k, 1, 2] * z
            c += blocks[k, 2, 0] * x + blocks[k, 2, 1] * y + blocks[k, 2, 2] * z
        i = 3 * row
        q[i], q[i + 1], q[i + 2] = a, b, c
        total += p[i] * a + p[i + 1] * b + p[i + 2] * c
    return total


@device_function
def _step(alpha, inverse, first, last, x, r, p, q):
    """x += α p, r -= α q, then q = z = D⁻¹ r in rows first to last - 1; returns their r·z and r·r."""
    rz = rr = 0.0
    for row in range(first, last):
        i = 3 * row
        for j in range(i, i + 3):
            x[j] += alpha * p[j]
            r[j] -= alpha * q[j]
        for j in range(3):
            q[i + j] = (
                inverse[row, j, 0] * r[i] + inverse[row, j, 1] * r[i + 1] + inverse[row, j, 2] * r[i + 2]
            )
            rz += r[i + j] * q[i + j]
            rr += r[i + j] * r[i + j]
    return rz, rr
