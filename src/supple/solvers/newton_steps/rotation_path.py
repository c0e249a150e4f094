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

from supple.kernels import RECORD, kernel
from supple.linear import Assembly, Multilevel
from supple.linear.filling import host_elements
from supple.ordering import sort_corners
from supple.problem import Problem
from supple.problem.records import Follow
from supple.solvers.newton_steps.laplace import Laplace
from supple.solvers.newton_steps.moves import present
from supple.solvers.newton_steps.turning import (
    PARTS,
    gather_pulls,
    measure_pulls,
    measure_spins,
    measure_turns,
)
from supple.terms.elastic import Elastic
from supple.terms.term import Elements, Term

STRAIGHT = 3e-3
"""Rotations [rad] below which the path is a straight line.

A straight line stretches elements by half the square of the angle.
"""

HARDLY, LITTLE = 1e-6, 1e-2
"""Cost of stretching on a straight line, and on an inexact path, as a fraction of the gain of a step.

In a stiff body that hardly strains and rotates about a soft or thin region, even small rotations would cost
more.
"""

ACCURACY, FINEST = 1e-2, 1e-6
"""Relative accuracy of y, and the tightest accuracy requested.

The accuracy of y and the bound `STRAIGHT` are divided by the square root of the stiffness contrast: stiff
elements stretched as much as soft ones may be would outweigh the gain of the soft ones.
"""

SAMPLE = 16_384
"""Approximate number of elements sampled for the rotation of nearly all elements."""


class Turning(NamedTuple):
    """Data of one elastic term for rotation paths.

    Attributes:
        term: The term.
        elements: The term packed by elements.
        weights: (rows, 1, lanes) volume times shear modulus [J].
        spins: (rows, 3, lanes) work array of the spins.
        pulls: (rows, 3 k, lanes) work array of the corner forces.
        start, which: Incidence of free vertices and entries of `pulls`, compressed by rows.
        size: Number of elements.
        step: Stride of the sampled elements.
        sample: Rotations of the sampled elements [rad].
        most: (PARTS,) largest rotation in each block of elements [rad].
    """

    term: Elastic
    elements: Elements
    weights: np.ndarray
    spins: np.ndarray
    pulls: np.ndarray
    start: np.ndarray
    which: np.ndarray
    size: int
    step: int
    sample: np.ndarray
    most: np.ndarray


class RotationPath:
    """Rotation paths of the free vertices of a problem in float64.

    Elements with a deformation gradient rotate, except those of materials whose energy is not objective and
    those embedded in a grid, whose steps are short. All other terms resist by their stiffness at rest, as
    does inertia.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self._device = problem, problem.device
        self.assembly: Assembly = problem.shared("assembly", lambda: Assembly(problem))
        number = np.full(problem.model.vertices, -1)
        number[self.assembly.free] = np.arange(len(self.assembly.free))
        terms: Any = problem.model.terms
        pairs = zip(terms, problem.layout.elements, strict=True)
        self._turning = [
            _turning(term, elements, number, problem)
            for term, elements in pairs
            if term.deforms and term.material.objective and hasattr(elements.rows, "corners")
        ]
        stiffness = np.concatenate([np.ones(0), *(_mean_stiffness(t.term) for t in self._turning)])
        least = max(float(stiffness.min(initial=np.inf)), np.finfo(float).tiny)
        contrast = float(stiffness.max(initial=0)) / least
        self._finer = min(max(math.sqrt(contrast), 1.0), ACCURACY / FINEST)
        self._straight = STRAIGHT / self._finer
        self._whole = float(sum(turning.weights.sum() for turning in self._turning))
        self._inertia: np.ndarray | None = None
        self._pull = self._device.zeros((len(self.assembly.free), RECORD), np.dtype(float))

    def along(self, d: np.ndarray, gain: float = math.inf) -> Path:
        """Return the path from the problem's u along d.

        Args:
            d: (n + 1, 4) direction [m], padded vectors in device memory.
            gain: Expected decrease of the energy for the step d [J], if known.
        """
        start = present(self.problem)
        for turning in self._turning:
            own, rows = turning.elements.own, turning.elements.rows
            self._device.run(measure_spins, 1, rows, own, start, d, turning.spins)
            turns = turning.size, turning.step, turning.sample, turning.most
            self._device.run(measure_turns, 2, turning.spins, *turns)
        for turning in self._turning:
            self._device.pull(turning.sample)
            self._device.pull(turning.most)
        turn = np.concatenate([turning.sample for turning in self._turning] or [np.zeros(1)])
        most = max((float(turning.most.max()) for turning in self._turning), default=0.0)
        usual = float(np.quantile(turn, 0.99)) if len(turn) else 0.0
        known = 0 < gain < math.inf and self._whole > 0
        straight, paid = (
            (4 * part * gain / self._whole) ** 0.25 if known else math.inf for part in (HARDLY, LITTLE)
        )
        return Path(self, start, d, usual, most, min(self._straight, straight), paid)

    def bend(self, path: Path, t: float) -> np.ndarray:
        """Return the correction y(t) of the latest path, padded vectors (n + 1, 4) [m].

        Computed to an accuracy ε, y costs as much energy as a straight line does for a rotation of √ε θ.
        """
        self._device.clear(self._pull)
        for turning in self._turning:
            own, rows = turning.elements.own, turning.elements.rows
            memory = turning.weights, float(t), turning.spins, turning.pulls
            self._device.run(measure_pulls, 1, rows, own, path.start, path.d, *memory)
            self._device.run(gather_pulls, 1, turning.start, turning.which, turning.pulls, self._pull)
        affordable = (path.paid / max(t * path.most, path.paid)) ** 2 if path.paid < math.inf else 1.0
        accuracy = max(min(ACCURACY / self._finer, affordable), FINEST)
        return self.assembly.spread(self._laplace.solve(self._pull, accuracy))

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
                kept = slots >= 0
                total += np.bincount(slots[kept], blocks[kept], len(total))
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
            hierarchy: Multilevel = p.shared("multilevel", lambda: Multilevel(self.assembly))
            levels = hierarchy.levels if hierarchy.basis is None else None
            self._solver = Laplace(L, self._device, levels)
        return self._solver


class Path:
    """Path x(t) from displacements `start` along d, both padded vectors (n + 1, 4) [m].

    Up to the angle `straight` [rad] of the element that rotates most, the path is a straight line. A rotation
    by θ then stretches elements by θ²/2, which costs Σ V μ (θ²/2)² [J].

    Attributes:
        turn: Rotation of nearly all elements at t = 1 [rad].
        most: Largest rotation of an element at t = 1 [rad].
        paid: Rotation [rad] whose cost on a straight line is a small fraction of the gain of the step.
    """

    def __init__(
        self, maker: RotationPath, start: np.ndarray, d: np.ndarray, turn: float, most: float,
        straight: float, paid: float,
    ) -> None:  # fmt: skip
        self._maker, self.start, self.d = maker, start, d
        self.turn, self.most, self._straight, self.paid = turn, most, straight, paid

    def go(self, t: float) -> None:
        """Move the problem's u to x(t)."""
        problem = self._maker.problem
        straight = not t * self.most > self._straight
        y = problem.zeros(self.start.shape) if straight else self._maker.bend(self, t)
        problem.device.on_records(Follow(problem.u, self.start, self.d, float(t), y))
        problem.following.keep_apart(self.start)


def _mean_stiffness(term: Elastic) -> np.ndarray:
    """(m,) shear modulus of each element [Pa]."""
    return np.broadcast_to(np.asarray(getattr(term.material, "mu", 1.0), float), len(term.volume))


def _turning(term: Elastic, elements: Elements, number: np.ndarray, problem: Problem) -> Turning:
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
    spins, pulls = problem.zeros((rows, 3, lanes)), problem.zeros((rows, 3 * k, lanes))
    step = max(1, m // SAMPLE)
    turns = np.zeros(-(-m // step)), np.zeros(PARTS)
    return Turning(
        term, elements, weights.reshape(rows, 1, lanes), spins, pulls, start, which, m, step, *turns
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
