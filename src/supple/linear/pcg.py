"""Conjugate gradients preconditioned by a V-cycle, which notice directions of negative curvature."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse import bsr_matrix

from supple.kernels import (
    enter,
    four_at,
    inside,
    kernel,
    lane_total,
    leave,
    number,
    number_at,
    pack_of_three,
    physics,
    proceed,
    put_pack,
    strides,
)
from supple.linear.cycle import apply_cycle
from supple.linear.multilevel import Preconditioner, as_records, room_after
from supple.linear.rigid import TILE, tile_of, tiles
from supple.linear.smoothing import row_times

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


@physics
def _multiply(team, phase, A, vectors):
    """q = A p, and parts of p·q."""
    p, q, sums = vectors.p, vectors.q, vectors.sums
    rows = len(p)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        total = 0.0
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            total += _multiply_row(A, row, p, q)
            row += step
        sums[0, number(place)] = lane_total(place, total)
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@physics
def _step(team, phase, vectors, alpha):
    """x += α p, r -= α q."""
    x, r, p, q = vectors.x, vectors.r, vectors.p, vectors.q
    rows = len(p)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            i = 4 * row
            put_pack(x, i, four_at(x, i) + alpha * four_at(p, i))
            put_pack(r, i, four_at(r, i) - alpha * four_at(q, i))
            row += step
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@physics
def _measure(team, phase, vectors, z):
    """Parts of r·z and r·r."""
    r, sums = vectors.r, vectors.sums
    rows = len(r)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        gain = square = 0.0
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            for c in range(3):
                gain += r[row, c] * z[row, c]
                square += r[row, c] * r[row, c]
            row += step
        sums[0, number(place)], sums[1, number(place)] = lane_total(place, gain), lane_total(place, square)
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@physics
def _turn(team, phase, vectors, z, beta):
    """p = z + β p."""
    p = vectors.p
    rows = len(p)
    place = enter(team, phase, 0, tiles(rows))
    while inside(place, tiles(rows)):
        row, end, step = tile_of(place, 0, rows)
        while row < end:
            for c in range(3):
                p[row, c] = z[row, c] + beta * p[row, c]
            row += step
        place = proceed(team, phase, place, 0, tiles(rows))
    leave(team, phase, 0, tiles(rows))


@physics
def _total(team, phase, sums, count, figures, i, first):
    """Sum up `count` of the parts into figures[i, first], figures[i, first + 1]."""
    place = enter(team, phase, 0, 1)
    while inside(place, 1):
        begin, step = strides(place)
        for field in range(count):
            total = 0.0
            k = begin
            while k < sums.shape[1]:
                total += sums[field, k]
                k += step
            total = lane_total(place, total)
            if begin == 0:
                figures[i, first + field] = total
        place = proceed(team, phase, place, 0, 1)
    leave(team, phase, 0, 1)


@kernel
def _begin(team, cycle, vectors, figures):
    """p = z = M r, and r·z, r·r."""
    phase = apply_cycle(team, 0, cycle, vectors.r)
    _measure(team, phase, vectors, cycle.fine.x)
    _total(team, phase + 1, vectors.sums, 2, figures, 0, 1)
    _turn(team, phase + 2, vectors, cycle.fine.x, 0.0)


@kernel
def _iterate(team, A, cycle, vectors, figures, target, taken):
    """As many iterations as `figures` has places for, fewer when the target is reached or p·Ap is not
    positive; their number goes to taken.

    figures[i] holds p·Ap, r·z and r·r of iteration i. Each iteration has its own, so a thread that lags
    behind never reads those of a later one.
    """
    phase = 0
    for i in range(1, len(figures)):
        _multiply(team, phase, A, vectors)
        _total(team, phase + 1, vectors.sums, 1, figures, i, 0)
        curvature, gain = figures[i, 0], figures[i - 1, 1]
        taken[0] = i - 1
        if not curvature > FLAT * gain:
            return
        _step(team, phase + 2, vectors, gain / curvature)
        phase = apply_cycle(team, phase + 3, cycle, vectors.r)
        _measure(team, phase, vectors, cycle.fine.x)
        _total(team, phase + 1, vectors.sums, 2, figures, i, 1)
        taken[0] = i
        if not (figures[i, 1] > target.gain and figures[i, 2] > target.square):
            return
        _turn(team, phase + 2, vectors, cycle.fine.x, figures[i, 1] / gain)
        phase += 3
