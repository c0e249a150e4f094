"""Kernels of rotation paths: spins of elements, and the corner forces of the least-squares fit."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from supple.algebra.matrix3 import (
    add_diagonal,
    combine,
    dot,
    matmul,
    matvec,
    scale,
    scaled,
    solve_spd,
    transpose,
)
from supple.kernels import (
    do,
    each,
    each_item,
    gather,
    kernel,
    lane_most,
    load,
    number,
    number_at,
    physics,
    store,
    strides,
)
from supple.linear.tiles import each_row
from supple.terms.elastic import (
    corner_vectors,
    corners,
    displacement_gradient,
    shape_gradients,
)
from supple.terms.straining import rest_gradient

COLLAPSED = 0.1
"""Elements with |F|² below this value have hardly any orientation; their spin is reduced."""

DOUBLINGS = 5
"""Number of doublings of the angle.

For a rotation by π the series is evaluated at |v| ≤ π/64, where its first omitted term, s⁴/8!, is about the
rounding of float64.
"""

PARTS = 512
"""Number of blocks of elements; the largest rotation is computed for each."""


@physics
def spin_of(F, D):
    """Return the angular velocity ω [rad] for which [ω]× F is closest to D.

    It solves (tr(B) I - B) ω = axial(D Fᵀ) with B = F Fᵀ.
    """
    B, N = matmul(F, transpose(F)), matmul(D, transpose(F))
    trace = B[0] + B[4] + B[8]
    t = (1.0 + 1e-12) * trace + max(COLLAPSED - trace, 0.0 * trace)
    axial = (N[7] - N[5], N[2] - N[6], N[3] - N[1])
    return solve_spd((t - B[0], t - B[4], t - B[8], -B[1], -B[2], -B[5]), axial)


@physics
def skew(w):
    """Return [w]×."""
    zero = 0.0 * w[0]
    return (zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero)


@physics
def turned_by(w):
    """Return e^{[w]×} from the quaternion of a small fraction of the angle, doubled several times."""
    v = scale(0.5 / 2.0**DOUBLINGS, w)
    s = dot(v, v)
    c = 1.0 - s * (0.5 - s * (1.0 / 24.0 - s / 720.0))
    v = scale(1.0 - s * (1.0 / 6.0 - s * (1.0 / 120.0 - s / 5040.0)), v)
    for _ in range(DOUBLINGS):
        c, v = c * c - dot(v, v), scale(2.0 * c, v)
    length = 1.0 / math.sqrt(c * c + dot(v, v))
    c, v = c * length, scale(length, v)
    K = skew(v)
    return add_diagonal(combine(2.0 * c, K, 2.0, matmul(K, K)), 1.0)


@physics
def motion_at(rows, row, own, u, d):
    """Return (F, D, g) of the elements in a row."""
    g = shape_gradients(rows, row)
    x = corners(rows, row, u, gather(u, own, row, 0))
    change = corner_vectors(rows, row, d, gather(d, own, row, 0))
    F = combine(1.0, rest_gradient(rows, g), 1.0, displacement_gradient(x, g))
    return F, displacement_gradient(change, g), g


@physics
def _put(records, row, k, a):
    """Store vector k of a row."""
    store(records, row, 3 * k, a[0])
    store(records, row, 3 * k + 1, a[1])
    store(records, row, 3 * k + 2, a[2])
    return k


_pull_corners = each("pulls, row, M, g", "_put(pulls, row, i, matvec(M, g[i]))", _put, matvec, over="g")
"""Store M gₐ for every corner."""


class Spins(NamedTuple):
    """Compute the angular velocities of the elements in a row under d: spins (rows, 3, lanes) [rad]."""

    rows: Any
    own: Any
    u: Any
    d: Any
    spins: Any


@do.of(Spins)
def _spins(work, row):
    F, D, _ = motion_at(work.rows, row, work.own, work.u, work.d)
    _put(work.spins, row, 0, spin_of(F, D))


class Pulls(NamedTuple):
    """Compute weight (F(t) - F - t D) gₐ for each corner a of a row of elements: pulls (rows, 3 k, lanes)."""

    motion: Any
    weights: Any
    t: Any
    pulls: Any


@do.of(Pulls)
def _pulls(work, row):
    motion, t = work.motion, work.t
    F, D, g = motion_at(motion.rows, row, motion.own, motion.u, motion.d)
    w = (load(motion.spins, row, 0), load(motion.spins, row, 1), load(motion.spins, row, 2))
    stretching = combine(1.0, D, -1.0, matmul(skew(w), F))
    turned = matmul(turned_by(scale(t, w)), combine(1.0, F, t, stretching))
    missing = combine(1.0, turned, -1.0, combine(1.0, F, t, D))
    _pull_corners(work.pulls, row, scaled(load(work.weights, row, 0), missing), g)


@kernel
def measure_spins(team, rows, own, u, d, spins):
    """Compute the angular velocities of all elements."""
    each_item(team, 0, 0, len(own), Spins(rows, own, u, d, spins))


@kernel
def measure_pulls(team, rows, own, u, d, weights, t, spins, pulls):
    """Compute the corner forces of all elements at t."""
    each_item(team, 0, 0, len(own), Pulls(Spins(rows, own, u, d, spins), weights, t, pulls))


class SampleTurns(NamedTuple):
    """Rotation angles [rad] of every step-th element."""

    spins: Any
    step: Any
    sample: Any


@physics
def _turn_of(spins, e):
    lanes = spins.shape[2]
    row, lane = e // lanes, e % lanes
    x, y, z = spins[row, 0, lane], spins[row, 1, lane], spins[row, 2, lane]
    return math.sqrt(x * x + y * y + z * z)


@do.of(SampleTurns)
def _sample_turn(work, k):
    work.sample[k] = _turn_of(work.spins, k * work.step)


class MostTurned(NamedTuple):
    """Largest rotation angle [rad] in a block of elements."""

    spins: Any
    count: Any
    most: Any


@do.of(MostTurned)
def _most_turned(work, place):
    part, begin = number(place), strides(place)
    size = -(-work.count // PARTS)
    e, end = part * size + begin[0], min(work.count, (part + 1) * size)
    most = 0.0
    while e < end:
        most = max(most, _turn_of(work.spins, e))
        e += begin[1]
    most = lane_most(place, most)
    if begin[0] == 0:
        work.most[part] = most


@kernel
def measure_turns(team, spins, count, step, sample, most):
    """Compute rotation angles of a sample of elements, and the largest angle in each block."""
    each_row(team, 0, 0, len(sample), SampleTurns(spins, step, sample))
    each_item(team, 1, 0, PARTS, MostTurned(spins, count, most))


class GatherPulls(NamedTuple):
    """Sum the corner forces of a row of the matrix.

    The entries of pulls (rows, 3 k, lanes) are which[start[row]] to which[start[row + 1] - 1].
    """

    start: Any
    which: Any
    pulls: Any
    out: Any


@do.of(GatherPulls)
def _gather_pulls(work, row):
    lanes = work.pulls.shape[2]
    for c in range(3):
        total = work.out[row, c]
        for k in range(work.start[row], work.start[row + 1]):
            total += number_at(work.pulls, work.which[k] + c * lanes)
        work.out[row, c] = total


@kernel
def gather_pulls(team, start, which, pulls, out):
    """Add the corner forces of elements to out (f, 4) at the free vertices."""
    each_row(team, 0, 0, len(out), GatherPulls(start, which, pulls, out))
