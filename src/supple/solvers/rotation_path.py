"""Paths along which elements turn: where a step d would only shear what it means to turn.

With the gradient F of an element, its change D under d and a spin W, a skew matrix, F(t) = e^{tW} (F + t (D -
W F)) turns and stretches at constant rates. The path is x(t) = x + t d + y(t), where y makes the gradients of
all elements F(t) in the sense of least squares, weighted by volume and stiffness: one Laplace problem with a
constant matrix for each t. Since F'(0) = D whatever W is, x'(0) = d, and what is known of descent along d
holds for the path. A rigid rotation is followed exactly.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array

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
from supple.kernels import RECORD, do, each, each_item, gather, kernel, load, physics, store
from supple.problem import Problem
from supple.solvers.laplace import Laplace
from supple.terms.elastic import (
    Elastic,
    corner_vectors,
    corners,
    displacement_gradient,
    rest_gradient,
    shape_gradients,
)
from supple.terms.term import Elements, Term

STRAIGHT = 3e-3
"""Turns [rad] below which a straight line does as well: it stretches elements by half the square of that."""

ACCURACY = 1e-2
"""Of y, relative to what it should even out."""

COLLAPSED = 0.1
"""|F|² below which an element has hardly a direction left, and turns less."""

DOUBLINGS = 5


@physics
def spin_of(F, D):
    """The angular velocity ω [rad] with which [ω]× F is closest to D: (tr(B) I - B) ω = axial(D Fᵀ),
    B = F Fᵀ."""
    B, N = matmul(F, transpose(F)), matmul(D, transpose(F))
    trace = B[0] + B[4] + B[8]
    t = (1.0 + 1e-12) * trace + max(COLLAPSED - trace, 0.0 * trace)
    axial = (N[7] - N[5], N[2] - N[6], N[3] - N[1])
    return solve_spd((t - B[0], t - B[4], t - B[8], -B[1], -B[2], -B[5]), axial)


@physics
def skew(w):
    """[w]×."""
    zero = 0.0 * w[0]
    return (zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero)


@physics
def turned_by(w):
    """e^{[w]×}, from the quaternion of a small part of the angle, doubled several times."""
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
    """(F, D, g) of the elements in a row."""
    g = shape_gradients(rows, row)
    x = corners(rows, row, u, gather(u, own, row, 0))
    change = corner_vectors(rows, row, d, gather(d, own, row, 0))
    F = combine(1.0, rest_gradient(rows, g), 1.0, displacement_gradient(x, g))
    return F, displacement_gradient(change, g), g


@physics
def _put(records, row, k, a):
    """Store a vector as the k-th of a row."""
    store(records, row, 3 * k, a[0])
    store(records, row, 3 * k + 1, a[1])
    store(records, row, 3 * k + 2, a[2])
    return k


_pull_corners = each("pulls, row, M, g", "_put(pulls, row, i, matvec(M, g[i]))", _put, matvec, over="g")
"""Store M gₐ for every corner."""


class Spins(NamedTuple):
    """Angular velocities of the elements in a row under d into spins (rows, 3, lanes) [rad]."""

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
    """weight (F(t) - F - t D) gₐ for each corner a of the elements in a row, into pulls (rows, 3 k,
    lanes)."""

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
    """Angular velocities of all elements."""
    each_item(team, 0, 0, len(own), Spins(rows, own, u, d, spins))


@kernel
def measure_pulls(team, rows, own, u, d, weights, t, spins, pulls):
    """What the turning of all elements pulls their corners by."""
    each_item(team, 0, 0, len(own), Pulls(Spins(rows, own, u, d, spins), weights, t, pulls))


class Turning(NamedTuple):
    """What there is of one term of elements: itself by elements, weights (rows, 1, lanes) [J], memory for
    spins and pulls, which pulls (m k,) add up at the free vertices, and how many elements there are."""

    elements: Elements
    weights: np.ndarray
    spins: np.ndarray
    pulls: np.ndarray
    gathering: csr_array
    size: int


class RotationPath:
    """Makes paths for the free vertices of a problem in float64; free (f,): their ids in the order in which
    directions have them.

    Elements with a deformation gradient turn, unless turning costs energy; other terms hold what they tie
    together, by their stiffness at rest, and so does inertia.
    """

    def __init__(self, problem: Problem, free: np.ndarray | None = None) -> None:
        self.problem = problem
        self.free = np.flatnonzero(problem.model.free) if free is None else free
        number = np.full(problem.model.vertices, -1)
        number[self.free] = np.arange(len(self.free))
        pairs = list(zip(problem.model.terms, problem.layout.elements, strict=True))
        self._turning = [
            _turning(term, elements, number)
            for term, elements in pairs
            if isinstance(term, Elastic) and term.material.objective
        ]
        self._number = number
        self._inertia: np.ndarray | None = None
        self._direction = np.zeros((problem.model.vertices + 1, RECORD))

    def along(self, d: np.ndarray) -> Path:
        """The path from the problem's u in a direction d (f, 3) [m]."""
        p = self.problem
        self._direction[self.free, :3] = d
        angles = []
        for turning in self._turning:
            own, rows = turning.elements.own, turning.elements.rows
            p.device.run(measure_spins, 1, rows, own, p.u, self._direction, turning.spins)
            length = np.sqrt(np.square(turning.spins).sum(axis=1)).ravel()[: turning.size]
            angles.append(length)
        return Path(self, p.u[self.free, :3].astype(float), d.copy(), angles)

    def bend(self, t: float) -> np.ndarray:
        """y(t) (f, 3) [m] of the path that was made last; the problem's u must be where it began."""
        p = self.problem
        pull = np.zeros((len(self.free), 3))
        for turning in self._turning:
            own, rows = turning.elements.own, turning.elements.rows
            memory = turning.weights, float(t), turning.spins, turning.pulls
            p.device.run(measure_pulls, 1, rows, own, p.u, self._direction, *memory)
            by_row = turning.pulls.reshape(len(own), -1, 3, own.shape[2]).transpose(0, 3, 1, 2)
            pull += turning.gathering @ by_row.reshape(-1, 3)
        return self._laplace.solve(pull, ACCURACY)

    @cached_property
    def _stiffness(self) -> csr_array:
        """(f, f) [N/m] of all terms."""
        p = self.problem
        pairs = zip(p.model.terms, p.layout.elements, strict=True)
        parts = (_laplacian(term, elements, self._number, p) for term, elements in pairs)
        return sum(parts, start=csr_array((len(self.free),) * 2))

    @property
    def _laplace(self) -> Laplace:
        inertia = self.problem.loads.inertia[self.free]
        if self._inertia is None or not np.array_equal(inertia, self._inertia):
            self._inertia = inertia.copy()
            self._solver = Laplace(csr_array(self._stiffness + diags_array(inertia)))
        return self._solver


class Path:
    """x(t) from displacements `start` (f, 3) [m] along d."""

    def __init__(self, maker: RotationPath, start: np.ndarray, d: np.ndarray, angles: list) -> None:
        self._maker, self.start, self.d = maker, start, d
        every = np.concatenate(angles) if angles else np.zeros(1)
        self.turn = float(np.quantile(every, 0.99)) if len(every) else 0.0
        """How far nearly all elements turn at most, by t = 1 [rad]."""
        self._most = float(every.max(initial=0.0))

    def at(self, t: float) -> np.ndarray:
        """Displacements (f, 3) [m]."""
        line = self.start + t * self.d
        if not t * self._most > STRAIGHT:
            return line
        maker = self._maker
        maker.problem.u[maker.free, :3] = self.start
        return line + maker.bend(t)


def _mean_stiffness(term: Elastic) -> np.ndarray:
    """(m,) [Pa] what resists shear."""
    return np.broadcast_to(np.asarray(getattr(term.material, "mu", 1.0), float), len(term.volume))


def _turning(term: Elastic, elements: Elements, number: np.ndarray) -> Turning:
    rows, _, lanes = elements.own.shape
    m, k = term.vertices.shape
    weights = np.zeros(rows * lanes)
    weights[:m] = term.volume * _mean_stiffness(term)
    at = number[term.vertices].ravel()
    kept = np.flatnonzero(at >= 0)
    shape = (int(number.max(initial=-1)) + 1, rows * lanes * k)
    gathering = csr_array((np.ones(len(kept)), (at[kept], kept)), shape=shape)
    memory = np.zeros((rows, 3, lanes)), np.zeros((rows, 3 * k, lanes))
    return Turning(elements, weights.reshape(rows, 1, lanes), *memory, gathering, m)


def _laplacian(term: Term, elements: Elements, number: np.ndarray, problem: Problem) -> csr_array:
    """(f, f) [N/m] what a term adds: V μ gₐ·g_b of elements, a third of the trace of its blocks of others."""
    if isinstance(term, Elastic):
        weight = term.volume * _mean_stiffness(term)
        blocks = np.einsum("e,eai,ebi->eab", weight, term.gradients, term.gradients)
    else:
        at_rest = np.zeros_like(problem.u)
        full = term.hessian_blocks(elements, at_rest, "projected", problem.device.threads)
        blocks = np.einsum("eabii->eab", full) / 3
    at = number[term.vertices]
    row, column = np.broadcast_arrays(at[:, :, None], at[:, None, :])
    kept = (row >= 0) & (column >= 0)
    f = int(number.max(initial=-1)) + 1
    return coo_array((blocks[kept], (row[kept], column[kept])), shape=(f, f)).tocsr()
