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
"""Turns [rad] below which a straight line does as well: it stretches elements by half the square of that."""

HARDLY, LITTLE = 1e-6, 1e-2
"""Part of what a step would gain that stretching elements on a straight line may cost, and on a path that is
not quite followed: in a stiff body that hardly strains, and turns about a soft or thin part, even small turns
cost more than that."""

ACCURACY, FINEST = 1e-2, 1e-6
"""Of y, relative to what it should even out; and the best that is asked for. Both this and what counts as
straight are finer by the root of the contrast of stiffnesses: stretched as much as soft elements may be,
stiff ones would outweigh all that these gain."""

SAMPLE = 16_384
"""Elements, about, that tell how far nearly all of them turn."""


class Turning(NamedTuple):
    """What there is of one term of elements: itself, and by elements; weights (rows, 1, lanes) [J]; memory of
    spins and pulls; which numbers of the pulls add up at the free vertices; how many elements there are; a
    sample of their turns, every step-th, and the largest of each part."""

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
    """Makes paths for the free vertices of a problem in float64.

    Elements with a deformation gradient turn, unless turning costs energy or a grid carries them, whose steps
    are short; other terms hold what they tie together, by their stiffness at rest, and so does inertia.
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
        """The path from the problem's u in a direction d, records (n + 1, 4) [m] where kernels see them;
        gain: what a step of that length would gain [J], if it is known."""
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
        """y(t), records (n + 1, 4) [m], of the path that was made last. Followed to an accuracy ε, it costs
        what a straight line does for a turn of √ε θ."""
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
        """(blocks,) [N/m] of all terms, in the pattern of the assembly."""
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
    """x(t) from displacements `start` along d, both records (n + 1, 4) [m]. turn: how far nearly all elements
    turn at most, by t = 1, most: how far any does, straight: how far they may on a straight line [rad], which
    costs Σ V μ (θ²/2)² [J], since it stretches elements by θ²/2; paid: the turn for which that would still be
    little of what the step gains."""

    def __init__(
        self, maker: RotationPath, start: np.ndarray, d: np.ndarray, turn: float, most: float,
        straight: float, paid: float,
    ) -> None:  # fmt: skip
        self._maker, self.start, self.d = maker, start, d
        self.turn, self.most, self._straight, self.paid = turn, most, straight, paid

    def go(self, t: float) -> None:
        """Take the problem's u to x(t)."""
        problem = self._maker.problem
        straight = not t * self.most > self._straight
        y = problem.zeros(self.start.shape) if straight else self._maker.bend(self, t)
        problem.device.on_records(Follow(problem.u, self.start, self.d, float(t), y))
        problem.following.keep_apart(self.start)


def _mean_stiffness(term: Elastic) -> np.ndarray:
    """(m,) [Pa] what resists shear."""
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
    """V μ gₐ·g_b of elements to the blocks slots (m, k, k), negative ones being none."""
    for e in range(len(slots)):
        for a in range(slots.shape[1]):
            for b in range(slots.shape[2]):
                if slots[e, a, b] >= 0:
                    product = 0.0
                    for i in range(3):
                        product += gradients[e, a, i] * gradients[e, b, i]
                    total[slots[e, a, b]] += weight[e] * product


def _mean_blocks(term: Term, problem: Problem, index: int) -> np.ndarray:
    """(m, k, k) [N/m] a third of the traces of a term's blocks at rest."""
    at_rest = np.zeros_like(problem.u)
    elements = host_elements(problem, index)
    full = term.hessian_blocks(elements, at_rest, "projected", problem.device.threads)
    return np.einsum("eabii->eab", full) / 3
