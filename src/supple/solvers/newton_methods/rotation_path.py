"""Curved search paths that rotate elements where the straight step d would shear them.

With the deformation gradient F of an element, its change D under d and a spin W (a skew matrix), F(t) =
e^{tW} (F + t (D - W F)) rotates and stretches at constant rates. The path is x(t) = x + t d + y(t). The
correction y fits the gradients of all elements to F(t) in the least-squares sense, weighted by volume and
stiffness: one Laplace problem with a constant matrix for each t. F'(0) = D for any W, hence x'(0) = d, and
descent along d implies descent along the path. A rigid rotation is followed exactly.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from supple.algebra.matrix3 import (
    add_diagonal,
    combine,
    dot,
    matmul,
    matvec,
    scale,
    scale_matrix,
    solve_spd,
    transpose,
)
from supple.kernels import (
    RECORD,
    device_function,
    do,
    each,
    gather,
    item_number,
    kernel,
    lane_stride,
    load,
    number_at,
    parallel_for,
    store,
    warp_max,
)
from supple.kernels.parallel.parallel_for import parallel_for_rows
from supple.linear import Assembly, Multilevel
from supple.linear.assembly.block_kernels import host_elements
from supple.ordering import sort_corners
from supple.problem import Problem
from supple.problem.vertex_kernels import MoveAlongLine
from supple.solvers.newton_methods.laplace import Laplace
from supple.solvers.newton_methods.line_search import copy_u
from supple.terms.base.elastic import (
    Elastic,
    corner_vectors,
    corners,
    displacement_gradient,
    rest_gradient,
    shape_gradients,
)
from supple.terms.base.term import Elements, Term

MIN_SQUARE_STRETCH = 0.1
"""Elements with |F|² below this value have hardly any orientation; their spin is reduced."""

DOUBLINGS = 5
"""Number of doublings of the angle.

For a rotation by π the series is evaluated at |v| ≤ π/64, where its first omitted term, s⁴/8!, is about the
rounding of float64.
"""

ROTATION_BLOCKS = 512
"""Number of blocks of elements; the largest rotation is computed for each."""


@device_function
def spin_of(F, D):
    """Return the angular velocity ω [rad] for which [ω]× F is closest to D.

    It solves (tr(B) I - B) ω = axial(D Fᵀ) with B = F Fᵀ.
    """
    B, N = matmul(F, transpose(F)), matmul(D, transpose(F))
    trace = B[0] + B[4] + B[8]
    t = (1.0 + 1e-12) * trace + max(MIN_SQUARE_STRETCH - trace, 0.0 * trace)
    axial = (N[7] - N[5], N[2] - N[6], N[3] - N[1])
    return solve_spd((t - B[0], t - B[4], t - B[8], -B[1], -B[2], -B[5]), axial)


@device_function
def skew(w):
    """Return [w]×."""
    zero = 0.0 * w[0]
    return (zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero)


@device_function
def rotation_exponential(w):
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


@device_function
def motion_at(rows, row, own, u, d):
    """Return (F, D, g) of the elements in a row."""
    g = shape_gradients(rows, row)
    x = corners(rows, row, u, gather(u, own, row, 0))
    change = corner_vectors(rows, row, d, gather(d, own, row, 0))
    F = combine(1.0, rest_gradient(rows, g), 1.0, displacement_gradient(x, g))
    return F, displacement_gradient(change, g), g


@device_function
def _store_vector(records, row, k, a):
    """Store vector k of a row."""
    store(records, row, 3 * k, a[0])
    store(records, row, 3 * k + 1, a[1])
    store(records, row, 3 * k + 2, a[2])
    return k


_store_corner_forces = each(
    "corner_forces, row, M, g",
    "_store_vector(corner_forces, row, i, matvec(M, g[i]))",
    _store_vector,
    matvec,
    over="g",
)
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
    _store_vector(work.spins, row, 0, spin_of(F, D))


class CornerForces(NamedTuple):
    """Compute weight (F(t) - F - t D) gₐ for each corner a of a row of elements: pulls (rows, 3 k, lanes)."""

    motion: Any
    weights: Any
    t: Any
    corner_forces: Any


@do.of(CornerForces)
def _corner_forces(work, row):
    motion, t = work.motion, work.t
    F, D, g = motion_at(motion.rows, row, motion.own, motion.u, motion.d)
    w = (load(motion.spins, row, 0), load(motion.spins, row, 1), load(motion.spins, row, 2))
    stretching = combine(1.0, D, -1.0, matmul(skew(w), F))
    rotated = matmul(rotation_exponential(scale(t, w)), combine(1.0, F, t, stretching))
    missing = combine(1.0, rotated, -1.0, combine(1.0, F, t, D))
    _store_corner_forces(work.corner_forces, row, scale_matrix(load(work.weights, row, 0), missing), g)


@kernel
def compute_spins(team, rows, own, u, d, spins):
    """Compute the angular velocities of all elements."""
    parallel_for(team, 0, 0, len(own), Spins(rows, own, u, d, spins))


@kernel
def compute_corner_forces(team, rows, own, u, d, weights, t, spins, corner_forces):
    """Compute the corner forces of all elements at t."""
    parallel_for(team, 0, 0, len(own), CornerForces(Spins(rows, own, u, d, spins), weights, t, corner_forces))


class SampleRotations(NamedTuple):
    """Rotation angles [rad] of every step-th element."""

    spins: Any
    step: Any
    sample: Any


@device_function
def _rotation_of(spins, e):
    lanes = spins.shape[2]
    row, lane = e // lanes, e % lanes
    x, y, z = spins[row, 0, lane], spins[row, 1, lane], spins[row, 2, lane]
    return math.sqrt(x * x + y * y + z * z)


@do.of(SampleRotations)
def _sample_rotation(work, k):
    work.sample[k] = _rotation_of(work.spins, k * work.step)


class MaxRotation(NamedTuple):
    """Largest rotation angle [rad] in a block of elements."""

    spins: Any
    count: Any
    most: Any


@do.of(MaxRotation)
def _max_rotation(work, item):
    part, begin = item_number(item), lane_stride(item)
    size = -(-work.count // ROTATION_BLOCKS)
    e, end = part * size + begin[0], min(work.count, (part + 1) * size)
    most = 0.0
    while e < end:
        most = max(most, _rotation_of(work.spins, e))
        e += begin[1]
    most = warp_max(item, most)
    if begin[0] == 0:
        work.most[part] = most


@kernel
def compute_rotations(team, spins, count, step, sample, most):
    """Compute rotation angles of a sample of elements, and the largest angle in each block."""
    parallel_for_rows(team, 0, 0, len(sample), SampleRotations(spins, step, sample))
    parallel_for(team, 1, 0, ROTATION_BLOCKS, MaxRotation(spins, count, most))


class SumCornerForces(NamedTuple):
    """Sum the corner forces of a row of the matrix.

    The entries of pulls (rows, 3 k, lanes) are which[start[row]] to which[start[row + 1] - 1].
    """

    start: Any
    which: Any
    corner_forces: Any
    out: Any


@do.of(SumCornerForces)
def _sum_corner_forces(work, row):
    lanes = work.corner_forces.shape[2]
    for c in range(3):
        total = work.out[row, c]
        for k in range(work.start[row], work.start[row + 1]):
            total += number_at(work.corner_forces, work.which[k] + c * lanes)
        work.out[row, c] = total


@kernel
def sum_corner_forces(team, start, which, corner_forces, out):
    """Add the corner forces of elements to out (f, 4) at the free vertices."""
    parallel_for_rows(team, 0, 0, len(out), SumCornerForces(start, which, corner_forces, out))


STRAIGHT_ANGLE = 3e-3
"""Rotations [rad] below which the path is a straight line.

A straight line stretches elements by half the square of the angle.
"""

STRAIGHT_COST, INEXACT_COST = 1e-6, 1e-2
"""Cost of stretching on a straight line, and on an inexact path, as a fraction of the gain of a step.

In a stiff body that hardly strains and rotates about a soft or thin region, even small rotations would cost
more.
"""

ACCURACY, MIN_ACCURACY = 1e-2, 1e-6
"""Relative accuracy of y, and the tightest accuracy requested.

The accuracy of y and the bound `STRAIGHT_ANGLE` are divided by the square root of the stiffness contrast:
stiff elements stretched as much as soft ones may be would outweigh the gain of the soft ones.
"""

SAMPLE_SIZE = 16_384
"""Approximate number of elements sampled for the rotation of nearly all elements."""


class RotatingTerm(NamedTuple):
    """Data of one elastic term for rotation paths.

    Attributes:
        term: The term.
        elements: The term packed by elements.
        weights: (rows, 1, lanes) volume times shear modulus [J].
        spins: (rows, 3, lanes) work array of the spins.
        corner_forces: (rows, 3 k, lanes) work array of the corner forces.
        start, which: Incidence of free vertices and entries of `corner_forces`, compressed by rows.
        size: Number of elements.
        step: Stride of the sampled elements.
        sample: Rotations of the sampled elements [rad].
        max_rotation: (PARTS,) largest rotation in each block of elements [rad].
    """

    term: Elastic
    elements: Elements
    weights: np.ndarray
    spins: np.ndarray
    corner_forces: np.ndarray
    start: np.ndarray
    which: np.ndarray
    size: int
    step: int
    sample: np.ndarray
    max_rotation: np.ndarray


class RotationPath:
    """Rotation paths of the free vertices of a problem in float64.

    Elements with a deformation gradient rotate, except those of materials whose energy is not objective and
    those embedded in a grid, whose steps are short. All other terms resist by their stiffness at rest, as
    does inertia.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self._device = problem, problem.device
        self.assembly: Assembly = problem.get_shared("assembly", lambda: Assembly(problem))
        free_index = np.full(problem.model.vertices, -1)
        free_index[self.assembly.free] = np.arange(len(self.assembly.free))
        terms: Any = problem.model.terms
        pairs = zip(terms, problem.layout.elements, strict=True)
        self._rotating_terms = [
            _make_rotating_term(term, elements, free_index, problem)
            for term, elements in pairs
            if term.deforms and term.material.objective and hasattr(elements.rows, "corners")
        ]
        stiffness = np.concatenate([np.ones(0), *(_mean_stiffness(t.term) for t in self._rotating_terms)])
        least = max(float(stiffness.min(initial=np.inf)), np.finfo(float).tiny)
        contrast = float(stiffness.max(initial=0)) / least
        self._finer = min(max(math.sqrt(contrast), 1.0), ACCURACY / MIN_ACCURACY)
        self._straight = STRAIGHT_ANGLE / self._finer
        self._total_stiffness = float(sum(rotating.weights.sum() for rotating in self._rotating_terms))
        self._inertia: np.ndarray | None = None
        self._forces = self._device.zeros((len(self.assembly.free), RECORD), np.dtype(float))

    def along(self, d: np.ndarray, gain: float = math.inf) -> Path:
        """Return the path from the problem's u along d.

        Args:
            d: (n + 1, 4) direction [m], padded vectors in device memory.
            gain: Expected decrease of the energy for the step d [J], if known.
        """
        start = copy_u(self.problem)
        for rotating in self._rotating_terms:
            own, rows = rotating.elements.own, rotating.elements.rows
            self._device.run(compute_spins, 1, rows, own, start, d, rotating.spins)
            samples = rotating.size, rotating.step, rotating.sample, rotating.max_rotation
            self._device.run(compute_rotations, 2, rotating.spins, *samples)
        for rotating in self._rotating_terms:
            self._device.download(rotating.sample)
            self._device.download(rotating.max_rotation)
        angles = np.concatenate([rotating.sample for rotating in self._rotating_terms] or [np.zeros(1)])
        max_rotation = max(
            (float(rotating.max_rotation.max()) for rotating in self._rotating_terms), default=0.0
        )
        usual = float(np.quantile(angles, 0.99)) if len(angles) else 0.0
        known = 0 < gain < math.inf and self._total_stiffness > 0
        straight, paid = (
            (4 * part * gain / self._total_stiffness) ** 0.25 if known else math.inf
            for part in (STRAIGHT_COST, INEXACT_COST)
        )
        return Path(self, start, d, usual, max_rotation, min(self._straight, straight), paid)

    def bend(self, path: Path, t: float) -> np.ndarray:
        """Return the correction y(t) of the latest path, padded vectors (n + 1, 4) [m].

        Computed to an accuracy ε, y costs as much energy as a straight line does for a rotation of √ε θ.
        """
        self._device.clear(self._forces)
        for rotating in self._rotating_terms:
            own, rows = rotating.elements.own, rotating.elements.rows
            memory = rotating.weights, float(t), rotating.spins, rotating.corner_forces
            self._device.run(compute_corner_forces, 1, rows, own, path.start, path.d, *memory)
            self._device.run(
                sum_corner_forces, 1, rotating.start, rotating.which, rotating.corner_forces, self._forces
            )
        affordable = (path.paid / max(t * path.max_rotation, path.paid)) ** 2 if path.paid < math.inf else 1.0
        accuracy = max(min(ACCURACY / self._finer, affordable), MIN_ACCURACY)
        return self.assembly.spread(self._laplace.solve(self._forces, accuracy))

    @cached_property
    def _stiffness(self) -> np.ndarray:
        """(blocks,) scalar stiffness of all terms [N/m] in the pattern of the assembly."""
        p, pattern = self.problem, self.assembly.pattern
        total = np.zeros(len(pattern.indices))
        terms: Any = p.model.terms
        for k, term in enumerate(terms):
            if term.deforms:
                weight = term.volume * _mean_stiffness(term)
                _add_laplacian(pattern.slots[k], term.gradients, weight, total)
            else:
                slots, blocks = pattern.slots[k].ravel(), _mean_blocks(term, p, k).ravel()
                in_pattern = slots >= 0
                total += np.bincount(slots[in_pattern], blocks[in_pattern], len(total))
        return total

    @property
    def _laplace(self) -> Laplace:
        p, pattern = self.problem, self.assembly.pattern
        inertia = p.loads.inertia
        if self._inertia is None or not np.array_equal(inertia, self._inertia):
            self._inertia = inertia.copy()
            values = self._stiffness.copy()
            values[pattern.diagonal] += inertia[self.assembly.free]
            shape = (pattern.rows, pattern.rows)
            L = csr_array((values, pattern.indices, pattern.indptr), shape)
            hierarchy: Multilevel = p.get_shared("multilevel", lambda: Multilevel(self.assembly))
            levels = hierarchy.levels if hierarchy.basis is None else None
            self._solver = Laplace(L, self._device, levels)
        return self._solver


class Path:
    """Path x(t) from displacements `start` along d, both padded vectors (n + 1, 4) [m].

    Up to the angle `straight` [rad] of the element that rotates most, the path is a straight line. A rotation
    by θ then stretches elements by θ²/2, which costs Σ V μ (θ²/2)² [J].

    Attributes:
        typical_rotation: Rotation of nearly all elements at t = 1 [rad].
        max_rotation: Largest rotation of an element at t = 1 [rad].
        paid: Rotation [rad] whose cost on a straight line is a small fraction of the gain of the step.
    """

    def __init__(
        self, maker: RotationPath, start: np.ndarray, d: np.ndarray, typical_rotation: float,
        max_rotation: float, straight: float, paid: float,
    ) -> None:  # fmt: skip
        self._maker, self.start, self.d = maker, start, d
        self.typical_rotation, self.max_rotation, self._straight, self.paid = (
            typical_rotation,
            max_rotation,
            straight,
            paid,
        )

    def go(self, t: float) -> None:
        """Move the problem's u to x(t)."""
        problem = self._maker.problem
        straight = not t * self.max_rotation > self._straight
        y = problem.zeros(self.start.shape) if straight else self._maker.bend(self, t)
        problem.device.apply_to_vectors(MoveAlongLine(problem.u, self.start, self.d, float(t), y))
        problem.dynamic_terms.limit_step(self.start)


def _mean_stiffness(term: Elastic) -> np.ndarray:
    """(m,) shear modulus of each element [Pa]."""
    return np.broadcast_to(np.asarray(getattr(term.material, "mu", 1.0), float), len(term.volume))


def _make_rotating_term(
    term: Elastic, elements: Elements, number: np.ndarray, problem: Problem
) -> RotatingTerm:
    rows, _, lanes = elements.own.shape
    m, k = term.vertices.shape
    weights = np.zeros(rows * lanes)
    weights[:m] = term.volume * _mean_stiffness(term)
    at = number[term.vertices].ravel().astype(np.int32)
    start = np.zeros(number.max(initial=-1) + 2, np.int64)
    order = np.empty(int((at >= 0).sum()), np.int64)
    sort_corners(at, start, order)
    element, corner = np.divmod(order, k)
    row, lane = np.divmod(element, lanes)
    which = (row * 3 * k + 3 * corner) * lanes + lane
    spins, corner_forces = problem.zeros((rows, 3, lanes)), problem.zeros((rows, 3 * k, lanes))
    step = max(1, m // SAMPLE_SIZE)
    samples = np.zeros(-(-m // step)), np.zeros(ROTATION_BLOCKS)
    return RotatingTerm(
        term, elements, weights.reshape(rows, 1, lanes), spins, corner_forces, start, which, m, step, *samples
    )


@kernel
def _add_laplacian(slots, gradients, weight, total):
    """Add V μ gₐ·g_b of the elements to the entries `slots` (m, k, k); negative slots are skipped."""
    for e in range(len(slots)):
        for a in range(slots.shape[1]):
            for b in range(slots.shape[2]):
                if slots[e, a, b] >= 0:
                    product = 0.0
                    for i in range(3):
                        product += gradients[e, a, i] * gradients[e, b, i]
                    total[slots[e, a, b]] += weight[e] * product


def _mean_blocks(term: Term, problem: Problem, index: int) -> np.ndarray:
    """(m, k, k) one third of the traces of a term's blocks at rest [N/m]."""
    at_rest = np.zeros_like(problem.u)
    elements = host_elements(problem, index)
    full = term.hessian_blocks(elements, at_rest, "projected", problem.device.threads)
    return np.einsum("eabii->eab", full) / 3
