"""Conjugate gradients preconditioned by a V-cycle, which notice directions of negative curvature."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse import bsr_matrix

from supple.kernels import (
    do,
    each_item,
    four_at,
    kernel,
    lane_total,
    number,
    number_at,
    pack_of_three,
    physics,
    put_pack,
    strides,
)
from supple.linear.block_rows import row_times
from supple.linear.cycle import apply_cycle
from supple.linear.multilevel import Preconditioner, as_records, room_after
from supple.linear.tiles import TILE, each_row, tile_of, tiles

WIDENINGS = 5
"""How often a preconditioner is made more cautious that is not positive."""

BURST = 16
"""Iterations per call of the kernel."""

FLAT = 1e-14
"""p·Hp counts as negative below this part of r·Mr: rounding could have made it positive."""


class Solution(NamedTuple):
    """x ≈ H⁻¹ b; iterations; negative: a direction p with p·Hp ≤ 0 on which they ended, with what had been
    found before as x, or None; ritz: approximations from inside of the eigenvalues of M H, ascending, of
    which the first is the smallest curvature that the iterations have seen."""

    x: np.ndarray
    iterations: int
    negative: np.ndarray | None
    ritz: np.ndarray


def pcg(
    H: bsr_matrix,
    b: np.ndarray,
    M: Preconditioner,
    eta: float,
    floor: float = 0.0,
    max_iterations: int = 1000,
) -> Solution:
    """Solve H x = b until √(r·Mr) ≤ eta times what it was at x = 0, or |r| ≤ floor, in the basis of M."""
    if M.basis is None:
        return _widening(H, b, M, eta, floor, max_iterations)
    found = _widening(M.basis.matrix(H), M.basis.forces(b), M, eta, floor, max_iterations)
    negative = None if found.negative is None else M.basis.positions(found.negative)
    return found._replace(x=M.basis.positions(found.x), negative=negative)


def _widening(H: bsr_matrix, b: np.ndarray, M: Preconditioner, *limits: Any) -> Solution:
    """The solution; again if M turned out not to be positive, which is made so."""
    for _ in range(WIDENINGS):
        found, positive = _solve(H, b, M, *limits)
        if positive:
            break
        M.widen()
    return found


def _solve(
    H: bsr_matrix, b: np.ndarray, M: Preconditioner, eta: float, floor: float, max_iterations: int
) -> tuple[Solution, bool]:
    """Also whether r·Mr was never negative."""
    run, rows = M.device.run, len(b) // 3
    x, p, q = np.zeros((3, rows, 4))
    matrix = Matrix(H.indptr, H.indices, room_after(H.data, np.dtype(float)))
    vectors = Vectors(x, as_records(b.astype(float)), p, q, np.zeros((2, -(-rows // TILE))))
    first = np.zeros((1, 3))
    run(_begin, M.phases + 3, M.cycle, vectors, first)
    target = Target(eta * eta * first[0, 1], floor * floor)
    alphas, betas, done, last = [], [], 0, first[0]
    negative = bool(last[1] < 0)
    while not negative and done < max_iterations and not _arrived(last, target):
        count = min(BURST, max_iterations - done)
        figures = np.zeros((count + 1, 3))
        figures[0] = last
        taken = np.zeros(1, np.int64)
        run(_iterate, count * (M.phases + 6), matrix, M.cycle, vectors, figures, target, taken)
        steps = int(taken[0])
        gain, curvature = figures[: steps + 1, 1], figures[1 : steps + 1, 0]
        alphas += (gain[:-1] / curvature).tolist()
        betas += (gain[1:] / gain[:-1]).tolist()
        done, last = done + steps, figures[steps]
        negative = steps < count and not _arrived(last, target)
    direction = p[:, :3].ravel() if negative else None
    return Solution(x[:, :3].ravel(), done, direction, _ritz(alphas, betas)), not last[1] < 0


def _arrived(figures: np.ndarray, target: Target) -> bool:
    return bool(figures[1] <= target.gain or figures[2] <= target.square)


def _ritz(alphas: list[float], betas: list[float]) -> np.ndarray:
    """Eigenvalues of Lanczos' tridiagonal matrix, which the coefficients of conjugate gradients tell."""
    if not alphas:
        return np.zeros(0)
    a, c = np.array(alphas), np.array(betas)
    diagonal = 1 / a
    diagonal[1:] += c[:-1] / a[:-1]
    return eigvalsh_tridiagonal(diagonal, np.sqrt(np.maximum(c[:-1], 0)) / a[:-1])


class Matrix(NamedTuple):
    """Rows of 3×3 blocks, after which there is room to read."""

    indptr: Any
    indices: Any
    blocks: Any


class Vectors(NamedTuple):
    """Those of conjugate gradients as records (f, 4); sums (2, tiles): parts of scalar products."""

    x: Any
    r: Any
    p: Any
    q: Any
    sums: Any


class Target(NamedTuple):
    """r·Mr and r·r at which to stop."""

    gain: Any
    square: Any


@physics
def _multiply_row(A, row, p, q):
    """q = A p in a row; returns p·q there."""
    i = 4 * row
    a, b, c = row_times(A.indptr, A.indices, A.blocks, row, p)
    put_pack(q, i, pack_of_three(a, b, c))
    return number_at(p, i) * a + number_at(p, i + 1) * b + number_at(p, i + 2) * c


class Multiply(NamedTuple):
    """q = A p in a tile of rows, and its part of p·q."""

    A: Any
    vectors: Any


@do.of(Multiply)
def _multiply(work, place):
    p, q = work.vectors.p, work.vectors.q
    total = 0.0
    row, end, step = tile_of(place, 0, len(p))
    while row < end:
        total += _multiply_row(work.A, row, p, q)
        row += step
    work.vectors.sums[0, number(place)] = lane_total(place, total)


class Step(NamedTuple):
    """x += α p, r -= α q in a row."""

    vectors: Any
    alpha: Any


@do.of(Step)
def _step(work, row):
    x, r, alpha, i = work.vectors.x, work.vectors.r, work.alpha, 4 * row
    put_pack(x, i, four_at(x, i) + alpha * four_at(work.vectors.p, i))
    put_pack(r, i, four_at(r, i) - alpha * four_at(work.vectors.q, i))


class Measure(NamedTuple):
    """A tile's parts of r·z and r·r."""

    vectors: Any
    z: Any


@do.of(Measure)
def _measure(work, place):
    r, z, sums = work.vectors.r, work.z, work.vectors.sums
    gain = square = 0.0
    row, end, step = tile_of(place, 0, len(r))
    while row < end:
        for c in range(3):
            gain += r[row, c] * z[row, c]
            square += r[row, c] * r[row, c]
        row += step
    sums[0, number(place)], sums[1, number(place)] = lane_total(place, gain), lane_total(place, square)


class Turn(NamedTuple):
    """p = z + β p in a row."""

    vectors: Any
    z: Any
    beta: Any


@do.of(Turn)
def _turn(work, row):
    p = work.vectors.p
    for c in range(3):
        p[row, c] = work.z[row, c] + work.beta * p[row, c]


class Total(NamedTuple):
    """`count` of the parts summed up into figures[i, first], figures[i, first + 1]."""

    sums: Any
    count: Any
    figures: Any
    i: Any
    first: Any


@do.of(Total)
def _total(work, place):
    sums = work.sums
    begin, step = strides(place)
    for field in range(work.count):
        total = 0.0
        k = begin
        while k < sums.shape[1]:
            total += sums[field, k]
            k += step
        total = lane_total(place, total)
        if begin == 0:
            work.figures[work.i, work.first + field] = total


@kernel
def _begin(team, cycle, vectors, figures):
    """p = z = M r, and r·z, r·r."""
    z, rows = cycle.fine.x, len(vectors.p)
    phase = apply_cycle(team, 0, cycle, vectors.r)
    each_item(team, phase, 0, tiles(rows), Measure(vectors, z))
    each_item(team, phase + 1, 0, 1, Total(vectors.sums, 2, figures, 0, 1))
    each_row(team, phase + 2, 0, rows, Turn(vectors, z, 0.0))


@kernel
def _iterate(team, A, cycle, vectors, figures, target, taken):
    """As many iterations as `figures` has places for, fewer when the target is reached or p·Ap is not
    positive; their number goes to taken.

    figures[i] holds p·Ap, r·z and r·r of iteration i. Each iteration has its own, so a thread that lags
    behind never reads those of a later one.
    """
    z, rows = cycle.fine.x, len(vectors.p)
    phase = 0
    for i in range(1, len(figures)):
        each_item(team, phase, 0, tiles(rows), Multiply(A, vectors))
        each_item(team, phase + 1, 0, 1, Total(vectors.sums, 1, figures, i, 0))
        curvature, gain = figures[i, 0], figures[i - 1, 1]
        taken[0] = i - 1
        if not curvature > FLAT * gain:
            return
        each_row(team, phase + 2, 0, rows, Step(vectors, gain / curvature))
        phase = apply_cycle(team, phase + 3, cycle, vectors.r)
        each_item(team, phase, 0, tiles(rows), Measure(vectors, z))
        each_item(team, phase + 1, 0, 1, Total(vectors.sums, 2, figures, i, 1))
        taken[0] = i
        if not (figures[i, 1] > target.gain and figures[i, 2] > target.square):
            return
        each_row(team, phase + 2, 0, rows, Turn(vectors, z, figures[i, 1] / gain))
        phase += 3
