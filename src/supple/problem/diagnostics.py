"""Diagnostics of the states of a problem: cached residuals and energies, and inversions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.kernels import RECORD, kernel
from supple.problem.force_kernels import (
    Energy,
    Inversion,
    deform_elements,
    evaluate_balance,
    evaluate_elements,
    evaluate_potential,
)
from supple.problem.reductions import PARTS, add_up, cut
from supple.problem.residual import Balances
from supple.problem.rest_compliance import RestCompliance, allocate_statistics
from supple.terms import inversion

if TYPE_CHECKING:
    from supple.problem.problem import Problem


@dataclass
class Memo:
    """Results at one state.

    Attributes:
        u: Displacements of the state.
        terms: Packed terms at the evaluation.
        changes: `Loads.changes` at the evaluation.
        balances: Residuals of the batch.
        energies: Energies, and the sums of the magnitudes of their summands.
    """

    u: np.ndarray
    terms: tuple[Any, ...]
    changes: int
    balances: Balances | None = None
    energies: tuple[np.ndarray, np.ndarray] | None = None


def get_memo(problem: Problem, cached: Memo | None) -> tuple[Memo, bool]:
    """Return the cached results of the present state, or an empty entry.

    Returns:
        The entry, and True if it may be kept. Entries are kept only on the CPU, for states without contact,
        directional Dirichlet conditions and inertia, which are easy to compare.
    """
    p, u, loads = problem, problem.u, problem.loads
    plain = p.device.name == "cpu" and not (p.contacts or p.trust_region or p.model.dynamic_terms)
    if not plain or p.model.constraint_projection is not None or loads.inertia.any():
        return Memo(u, (), 0), False
    same = cached is not None and cached.terms is p.layout.terms and cached.changes == loads.changes
    if cached is None or not same or not np.array_equal(cached.u, u):
        cached = Memo(u.copy(), p.layout.terms, loads.changes)
    return cached, True


def norm(values: np.ndarray) -> float:
    """|values|, summed in a fixed order.

    BLAS would use its own threads, which stall on a busy machine.
    """
    return math.sqrt(float(np.square(values).sum()))


ENERGY_ROUNDING, STIFFNESS_ROUNDING = 500, 10
"""Bounds on the rounding error of energies, measured on all materials.

They are relative to the magnitudes of the summands, and to the energy that elements store when stretched by
one rounding of their edges.
"""


class Diagnostics:
    """Diagnostics of the active batch members, summed in float64."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.edge, self._eps = problem.model.mean_edge, float(np.finfo(problem.dtype).eps)
        self._cuts = cut([(own.start, own.stop) for _, own in problem.model.body_vertices])
        self.invalidate()

    def invalidate(self) -> None:
        """Discard results after changes of batch size or materials."""
        for name in ("_sizes", "_statistics"):
            self.__dict__.pop(name, None)
        self.rest_compliance = RestCompliance(self.problem, self._cuts, self._measure)
        self._totals = Totals(self.problem)
        self._energy_scale = np.zeros(self.problem.batch_size)
        self._energies: np.ndarray | None = None
        self._memo: Memo | None = None

    def invalidate_stiffness(self) -> None:
        """Discard results after a change of stencils or of vertex batches."""
        self.rest_compliance.invalidate()
        self._energies = self._memo = None

    def balances(self) -> Balances:
        """Evaluate the residuals of the active batch members.

        Net forces are written to the vectors `States.net`, unless those of the present state are cached.
        """
        memo, is_cacheable = get_memo(self.problem, self._memo)
        self._memo = memo if is_cacheable else None
        if memo.balances is not None:
            return memo.balances
        self._energies = None
        self.problem.gases.sync()
        acts, active, statistics = self.problem.loads.acting, self.problem.device.active, self._statistics[1]
        softness = self.rest_compliance.softness(not acts.all())  # loaded bodies are never at rest
        self._measure(self.problem.u, self._sizes, softness, *self._statistics)
        self.problem.device.download(statistics)
        memo.balances = Balances(statistics, acts, self.edge, self._eps, active)
        return memo.balances

    @property
    def statistics(self) -> np.ndarray:
        """(batch, bodies, 5) statistics of the last evaluated forces, see `reduce_statistics`."""
        return self._statistics[1]

    def _measure(
        self,
        u: np.ndarray,
        sizes: np.ndarray,
        softness: np.ndarray,
        parts: np.ndarray,
        statistics: np.ndarray,
    ) -> None:
        """Evaluate forces at displacements u, and their statistics, see `reduce_statistics`."""
        p = self.problem
        memory = p.states.net, sizes, softness, self._cuts, parts, statistics
        if works := p.layout.deforms(u):
            p.device.run(deform_elements, len(works), works)
        p.device.run(evaluate_balance, 3, p.layout.terms, p.loads.rows, u, p.states.anchor, *memory)

    @cached_property
    def _sizes(self) -> np.ndarray:
        """Padded vectors of s and tr A."""
        p = self.problem
        return p.zeros((p.batch_size * (p.model.vertices + 1), RECORD))

    @cached_property
    def _statistics(self) -> tuple[np.ndarray, np.ndarray]:
        return allocate_statistics(self.problem, self._cuts, self.problem.batch_size)

    def last_energies(self) -> np.ndarray:
        """(batch,) E(u) at the last evaluated residual [J]."""
        if self._energies is None:
            self._energies = self.energies()
        return self._energies

    def energy_of(self, member: int) -> float:
        """E(u) of one batch member at the last evaluated residual [J]."""
        return float(self.last_energies()[member])

    def energies(self) -> np.ndarray:
        """(batch,) E(u) [J]."""
        p = self.problem
        memo, is_cacheable = get_memo(p, self._memo)
        self._memo = memo if is_cacheable else None
        if memo.energies is not None:
            energies, self._energy_scale = memo.energies
            return energies.copy()
        stored, outer = self.stored_energies(), np.zeros((p.batch_size, 2))
        if p.loads.any:
            outer = self._totals.total(
                evaluate_potential, 2, p.loads.rows.own, p.loads.rows, p.u, p.states.anchor
            )
        self._energy_scale = np.abs(stored).sum(axis=1) + np.abs(outer).sum(axis=1)
        energies = stored.sum(axis=1) + outer[:, 0]
        memo.energies = energies.copy(), self._energy_scale
        return energies

    def stored_energies(self) -> np.ndarray:
        """(batch, terms) energy of every term [J]."""
        stored = [self._totals.of(Energy(e.rows), e.own) for e in self.problem.layout.elements]
        for k, energy in self.problem.gases.energies().items():
            stored[k][:] = energy
        return np.concatenate(stored, axis=1) if stored else np.zeros((self.problem.batch_size, 0))

    def element_energies(self, term: int) -> np.ndarray:
        """(m,) energy of every element of a term [J]."""
        p = self.problem
        elements, count = p.layout.elements[term], len(p.model.terms[term].vertices)
        values = self._totals.evaluate(
            evaluate_elements, 1, elements.own, Energy(elements.rows), elements.own, p.u
        )
        p.device.download(values[0])
        energies = values[0][0].ravel()[:count].astype(float)
        if term not in p.gases.indices:
            return energies
        return np.full(count, p.gases.energies()[term] / count)

    def energy_rounding(self, member: int = 0) -> float:
        """Estimated rounding error of the last E(u) [J].

        It is relative to the magnitudes of the summands of E, and to the stiffness of the elements, since
        large parts of ψ cancel near the rest state.
        """
        return float(self.energy_roundings()[member])

    def energy_roundings(self) -> np.ndarray:
        """(batch,) estimated rounding errors of the last E(u) [J]."""
        return rounding_of(self, self._energy_scale)

    def inversions(self) -> np.ndarray:
        """(batch,) number of elements with negative volume."""
        solid = [
            elements
            for elements in self.problem.layout.elements
            if inversion.has_implementation(type(elements.rows))
        ]
        counts = [self._totals.of(Inversion(e.rows), e.own) for e in solid]
        return (
            np.rint(np.sum(counts, axis=0)[:, 0]).astype(int)
            if counts
            else np.zeros(self.problem.batch_size, int)
        )


def rounding_of(diagnostics: Diagnostics, scale: np.ndarray, part: float = 1.0) -> np.ndarray:
    """Estimated rounding error of energies.

    Args:
        diagnostics: Diagnostics of the problem.
        scale: Sums of the magnitudes of the summands [J].
        part: Fraction of the stiffness of all elements that contributes.
    """
    stiffness = part * STIFFNESS_ROUNDING * diagnostics.edge**2 * diagnostics.rest_compliance.norms
    return np.asarray(diagnostics._eps * (ENERGY_ROUNDING * scale + stiffness))


def stiffness_of(diagnostics: Diagnostics) -> np.ndarray:
    """⅓ tr A (n,) [N/m] of the first batch member at the last evaluated forces."""
    problem, sizes = diagnostics.problem, diagnostics._sizes
    problem.device.download(sizes)
    return sizes[: problem.model.vertices, 1].astype(float) / 3


def rest_stiffness_of(diagnostics: Diagnostics) -> np.ndarray:
    """tr A (n,) [N/m] of the first batch member at rest without inertia; 0 for pinned vertices."""
    return diagnostics.rest_compliance.stiffness[0]


@kernel
def add_values(team, values, parts, sums):
    add_up(team, 0, values, parts, sums)


Memory = tuple[np.ndarray, np.ndarray, np.ndarray]


class Totals:
    """Sums of kernel results over the active batch members, in float64; work memory is reused."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._memory: dict[tuple[int, int], Memory] = {}

    def of(self, quantity: Any, own: np.ndarray) -> np.ndarray:
        """(batch, 1) sum of a quantity over elements."""
        return self.total(evaluate_elements, 1, own, quantity, own, self._problem.u)

    def total(self, kernel: Callable[..., None], fields: int, own: np.ndarray, *args: Any) -> np.ndarray:
        """(batch, fields) sums of the values that a kernel writes for all lanes of `own`."""
        *_, sums = self.evaluate(kernel, fields, own, *args)
        self._problem.device.download(sums)
        return sums.copy()

    def sum_values(self, values: np.ndarray) -> np.ndarray:
        """(batch, fields) sums of values (batch, rows, fields, lanes) in device memory."""
        batch_size, _, fields, _ = values.shape
        key = id(values), fields
        if key not in self._memory:
            self._memory[key] = values, np.zeros((batch_size, fields, PARTS)), np.zeros((batch_size, fields))
        *_, sums = self._memory[key]
        self._problem.device.run(add_values, 2, *self._memory[key])
        self._problem.device.download(sums)
        return sums.copy()

    def evaluate(self, kernel: Callable[..., None], fields: int, own: np.ndarray, *args: Any) -> Memory:
        """Run a kernel and sum its values.

        Args:
            kernel: Kernel that writes values and sums.
            fields: Values per lane.
            own: Vertices or elements, one row per packed row of values.
            args: Further arguments of the kernel.

        Returns:
            Values (batch, rows, fields, lanes), sums of blocks, and sums (batch, fields).
        """
        p = self._problem
        memory = self._memory.get((id(own), fields))
        if memory is None:
            values = p.zeros((p.batch_size, len(own), fields, p.device.lanes))
            sums = np.zeros((p.batch_size, fields, PARTS)), np.zeros((p.batch_size, fields))
            memory = self._memory[id(own), fields] = values, *sums
        p.device.run(kernel, 3, *args, *memory)
        return memory
