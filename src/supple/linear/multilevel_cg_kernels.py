"""Conjugate gradients with a V-cycle preconditioner and detection of negative curvature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from supple.kernels import (
    do,
    is_writer,
    item_number,
    kernel,
    lane_stride,
    parallel_for,
    parallel_for_shared_rows,
    skip_phases,
    store_vector,
    vector_of_four,
    warp_sum,
)
from supple.kernels.parallel.parallel_for import parallel_for_rows
from supple.linear.block_matrix import product
from supple.linear.multilevel.v_cycle import apply_cycle, begin_row, chebyshev_start, cycle_phases

if TYPE_CHECKING:
    from supple.linear.multilevel.v_cycle import Cycle
    from supple.problem.device import Device

BURST_ITERATIONS = 16
"""Number of iterations per kernel call."""

MIN_CURVATURE = 1e-14
"""Threshold of p·Ap relative to r·Mr below which curvature counts as negative, because of rounding errors."""

PARTIAL_SUMS = 512
"""Number of partial sums of a scalar product."""


class Vectors(NamedTuple):
    """Work vectors (f, 4) of conjugate gradients, and partial sums (2, PARTS) of scalar products."""

    x: Any
    r: Any
    p: Any
    q: Any
    parts: Any


Coefficients = tuple[list[float], list[float]]


class PCGOutcome(NamedTuple):
    """Outcome of conjugate gradients; x and the last direction p are in `Vectors`.

    Attributes:
        iterations: Number of iterations.
        negative: True if p·Ap ≤ 0.
        positive: False if M turned out not to be positive definite.
        gain: b·x.
        coefficients: α and β of all iterations.
    """

    iterations: int
    negative: bool
    positive: bool
    gain: float
    coefficients: Coefficients


def allocate_vectors(device: Device, rows: int) -> Vectors:
    """Allocate the work vectors for `rows` matrix rows."""
    four = (device.zeros((rows, 4), np.dtype(float)) for _ in range(4))
    return Vectors(*four, device.zeros((2, PARTIAL_SUMS), np.dtype(float)))  # type: ignore[call-arg]


def iterate(
    device: Device,
    A: Any,
    cycle: Cycle,
    vectors: Vectors,
    eta: float,
    floor: float,
    max_iterations: int,
) -> PCGOutcome:
    """Solve A x = r until √(r·Mr) ≤ eta times its value at x = 0, or |r| ≤ floor.

    Args:
        device: Device that runs the kernels.
        A: Block matrix, one of the types in `block_matrix`.
        cycle: V-cycle of the preconditioner M.
        vectors: Work vectors; r holds the right-hand side, x receives the solution.
        eta: Relative tolerance of √(r·Mr).
        floor: Absolute tolerance of |r|.
        max_iterations: Iteration limit.
    """
    degree, dense = int(cycle.degree), len(cycle.dense) > 0
    phases_each = cycle_phases(len(cycle.start) - 1, degree, dense) + 7
    scalars = np.zeros((BURST_ITERATIONS + 1, 4))
    device.upload(scalars)
    alphas: list[float] = []
    betas: list[float] = []
    gains: list[float] = []
    target = Target(eta * eta, -1.0, floor * floor, 0)
    while True:
        count = min(BURST_ITERATIONS, max_iterations - len(alphas))
        device.run(
            _iterate,
            (BURST_ITERATIONS + 1) * phases_each,
            A,
            cycle,
            vectors,
            scalars,
            target,
            count + 1,
            (BURST_ITERATIONS + 1) * phases_each,
        )
        device.download(scalars)
        steps = int(scalars[1:, 3].sum())
        gain, curvature = scalars[: steps + 1, 1], scalars[1 : steps + 1, 0]
        alphas += (gain[:-1] / curvature).tolist()
        betas += (gain[1:] / gain[:-1]).tolist()
        gains += gain[:-1].tolist()
        if target.reference < 0:
            target = target._replace(reference=float(gain[0]), begun=1)
        last = scalars[steps].copy()
        has_converged = bool(last[1] <= target.eta * target.reference or last[2] <= target.square)
        if steps < count or has_converged or len(alphas) >= max_iterations:
            break
        scalars[:] = 0
        scalars[0] = last
        device.upload(scalars)
    total = float(np.dot(alphas, gains)) if alphas else 0.0
    failed = bool(last[1] < 0)
    negative = failed or (steps < count and not has_converged)
    return PCGOutcome(len(alphas), negative, not failed, total, (alphas, betas))


def ritz_values(coefficients: Coefficients) -> np.ndarray:
    """Ritz values of M A from the coefficients of conjugate gradients, ascending.

    They are the eigenvalues of the Lanczos tridiagonal matrix and approximate the spectrum of M A from
    inside. The first one is the smallest curvature seen by the iterations.
    """
    if not coefficients[0]:
        return np.zeros(0)
    a, c = map(np.array, coefficients)
    diagonal = 1 / a
    diagonal[1:] += c[:-1] / a[:-1]
    if not np.isfinite(diagonal).all():
        return np.zeros(0)
    return eigvalsh_tridiagonal(diagonal, np.sqrt(np.maximum(c[:-1], 0)) / a[:-1])


class Target(NamedTuple):
    """Termination criteria of conjugate gradients.

    Attributes:
        eta: Threshold of r·Mr relative to `reference`.
        reference: Reference value of r·Mr; negative for its initial value.
        square: Threshold of r·r.
        begun: 0 before the first iteration, otherwise 1.
    """

    eta: Any
    reference: Any
    square: Any
    begun: Any


class Multiply(NamedTuple):
    """q = A p in a row."""

    A: Any
    p: Any
    q: Any


@do.of(Multiply)
def _multiply(work, at):
    q = product(work.A, at, work.p)
    if is_writer(at):
        store_vector(work.q, at.row, q)


class Dot(NamedTuple):
    """Partial sum of a·b, and of a·a if `squares`."""

    a: Any
    b: Any
    squares: Any
    parts: Any


@do.of(Dot)
def _dot(work, item):
    a, b, part = work.a, work.b, item_number(item)
    size = -(-len(a) // PARTIAL_SUMS)
    begin, step = lane_stride(item)
    row, end = part * size + begin, min(len(a), (part + 1) * size)
    gain = square = 0.0
    while row < end:
        for c in range(3):
            gain += a[row, c] * b[row, c]
            square += a[row, c] * a[row, c]
        row += step
    gain, square = warp_sum(item, gain), warp_sum(item, square)
    if begin == 0:
        work.parts[0, part] = gain
        if work.squares:
            work.parts[1, part] = square


class Total(NamedTuple):
    """Sum of the partial sums of `count` scalar products, and the completion flag of iteration i."""

    parts: Any
    count: Any
    scalars: Any
    i: Any
    first: Any
    done: Any


@do.of(Total)
def _total(work, item):
    begin, step = lane_stride(item)
    for field in range(work.count):
        total = 0.0
        k = begin
        while k < PARTIAL_SUMS:
            total += work.parts[field, k]
            k += step
        total = warp_sum(item, total)
        if begin == 0:
            work.scalars[work.i, work.first + field] = total
    if begin == 0:
        work.scalars[work.i, 3] = work.done


class Step(NamedTuple):
    """Update x += α p and r -= α q in a row, or set x = 0 at first, and start a V-cycle for r."""

    fine: Any
    vectors: Any
    first: Any
    alpha: Any
    gain: Any


@do.of(Step)
def _step(work, row):
    x, r, alpha = work.vectors.x, work.vectors.r, work.alpha
    residual = vector_of_four(r, row)
    if work.first:
        store_vector(x, row, 0.0 * residual)
    else:
        store_vector(x, row, vector_of_four(x, row) + alpha * vector_of_four(work.vectors.p, row))
        residual = residual - alpha * vector_of_four(work.vectors.q, row)
        store_vector(r, row, residual)
    begin_row(work.fine, row, work.gain, residual)


class Turn(NamedTuple):
    """p = z + β p in a row."""

    p: Any
    z: Any
    beta: Any


@do.of(Turn)
def _turn(work, row):
    p = work.p
    for c in range(3):
        p[row, c] = work.z[row, c] + work.beta * p[row, c]


@kernel
def _iterate(team, A, cycle, vectors, scalars, target, max_count, phases):
    """Run iterations begun to max_count - 1; stop at the target or if p·Ap is not positive.

    Iteration 0 only sets p = M r.

    figures[i] holds p·Ap, r·z and r·r of iteration i, and a flag for completion. Each iteration has its own
    row, so a lagging thread never reads values of a later iteration.
    """
    fine, r, p, q, parts = cycle.fine, vectors.r, vectors.p, vectors.q, vectors.parts
    z, rows, phase = fine.x, len(p), 0
    first, _, _ = chebyshev_start(cycle.radius[0])
    reference = target.reference
    for i in range(target.begun, max_count):
        alpha = beta = 0.0
        if i > 0:
            parallel_for_shared_rows(team, phase, 0, rows, Multiply(A, p, q))
            parallel_for(team, phase + 1, 0, PARTIAL_SUMS, Dot(p, q, False, parts))
            parallel_for(team, phase + 2, 0, 1, Total(parts, 1, scalars, i, 0, 0.0))
            phase += 3
            curvature, gain = scalars[i, 0], scalars[i - 1, 1]
            if not curvature > MIN_CURVATURE * gain:
                break
            alpha = gain / curvature
        parallel_for_rows(team, phase, 0, rows, Step(fine, vectors, i == 0, alpha, first))
        phase = apply_cycle(team, phase + 1, cycle)
        parallel_for(team, phase, 0, PARTIAL_SUMS, Dot(r, z, True, parts))
        parallel_for(team, phase + 1, 0, 1, Total(parts, 2, scalars, i, 1, 1.0))
        phase += 2
        if reference < 0.0:
            reference = scalars[i, 1]
        if not (scalars[i, 1] > target.eta * reference and scalars[i, 2] > target.square):
            break
        if i > 0:
            beta = scalars[i, 1] / scalars[i - 1, 1]
        parallel_for_rows(team, phase, 0, rows, Turn(p, z, beta))
        phase += 1
    skip_phases(team, phase, phases)


@kernel
def measure_curvature(team, A, p, q, parts, scalars):
    """Compute p·Ap and p·p into columns 1 and 2 of `scalars` (1, 4); q and parts are work memory."""
    parallel_for_shared_rows(team, 0, 0, len(p), Multiply(A, p, q))
    parallel_for(team, 1, 0, PARTIAL_SUMS, Dot(p, q, True, parts))
    parallel_for(team, 2, 0, 1, Total(parts, 2, scalars, 0, 1, 1.0))
