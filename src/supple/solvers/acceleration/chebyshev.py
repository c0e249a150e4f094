"""Chebyshev semi-iterative acceleration of sweeps [PBNG section 7.3, Wang 2015]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, scale, sub
from supple.kernels import RECORD, member_of, record_at, records, store_record, vector_offset
from supple.problem import Balance, Problem
from supple.problem.vertex_kernels import apply_operation, for_each
from supple.solvers.acceleration.acceleration import Acceleration, AccelerationRun, accelerate
from supple.support.arguments import check_integer, check_number
from supple.support.keywords import suggest_keywords
from supple.support.text import pluralize

RESTART_GROWTH = 4.0
"""Growth of the residual over its minimum at which the acceleration restarts. A choice."""

WEIGHTS_AHEAD = 512
"""Number of sweeps for which weights are computed at once."""


class ChebyshevMemory(NamedTuple):
    """Data of Chebyshev acceleration in device memory.

    Attributes:
        phases: Number of phases after a sweep.
        weights: (batch, WEIGHTS_AHEAD) weight ω of each sweep.
        first: Index of the next weight.
        gamma: (batch,) relaxation γ.
        current: Padded vectors xˡ.
        previous: Padded vectors xˡ⁻¹.
    """

    phases: Any
    weights: Any
    first: Any
    gamma: Any
    current: Any
    previous: Any


class Extrapolate(NamedTuple):
    """x ← ω (γ (x_sweep - xˡ) + xˡ - xˡ⁻¹) + xˡ⁻¹ with the ω of a sweep, then xˡ⁻¹ ← xˡ and xˡ ← x."""

    memory: Any
    sweep: Any
    u: Any


@apply_operation.of(Extrapolate)
def _extrapolate(operation, item, i):
    memory, u, k = operation.memory, operation.u, i + vector_offset(item)
    omega, gamma = memory.weights[member_of(item), operation.sweep], memory.gamma[member_of(item)]
    swept, current, before = record_at(u, k), record_at(memory.current, k), record_at(memory.previous, k)
    step = add(scale(gamma, sub(swept, current)), sub(current, before))
    x = add(scale(omega, step), before)
    store_record(memory.previous, k, current)
    store_record(memory.current, k, x)
    store_record(u, k, x)


@accelerate.of(ChebyshevMemory)
def _chebyshev(acceleration, team, phase, iteration, u):
    extrapolate = Extrapolate(acceleration, acceleration.first + iteration, u)
    for_each(team, phase, (records(team, u),), (extrapolate,))
    return phase + 1


@suggest_keywords
@dataclass(frozen=True)
class Chebyshev(Acceleration):
    """Chebyshev extrapolation of sweeps [PBNG section 7.3, Wang 2015].

    The paper uses ρ = 0.95, γ = 1.7 and first_iteration = 0; the defaults reduce the residual of its twisted
    block a hundred times further within 160 sweeps.

    Args:
        rho: Estimated convergence rate ρ of the sweeps, at least 0 and less than 1; 0 disables the
            extrapolation.
        gamma: Relaxation factor γ, between 0 and 2.
        first_iteration: Sweep from which extrapolation begins.
    """

    kind: ClassVar[str] = "chebyshev"

    rho: float = 0.99
    gamma: float = 1.5
    first_iteration: int = 10

    def __post_init__(self) -> None:
        check_number("rho", self.rho, at_least=0, below=1)
        check_number("gamma", self.gamma, above=0, below=2)
        check_integer("first_iteration", self.first_iteration, at_least=0)

    def begin(self, problem: Problem) -> ChebyshevRun:
        return ChebyshevRun(self, problem)

    def memory(self, vertices: int, number: int) -> int:
        return 3 * RECORD * (vertices + 1) * number + 8 * WEIGHTS_AHEAD


@suggest_keywords
@dataclass(frozen=True)
class PaperChebyshev(Chebyshev):
    """Chebyshev with the paper's ρ = 0.95 and γ = 1.7 from the first sweep on [PBNG section 7.3].

    Args:
        rho: Estimated convergence rate ρ of the sweeps, at least 0 and less than 1.
        gamma: Relaxation factor γ, between 0 and 2.
        first_iteration: Sweep from which extrapolation begins.
    """

    kind: ClassVar[str] = "paper_chebyshev"

    rho: float = 0.95
    gamma: float = 1.7
    first_iteration: int = 0


class ChebyshevRun(AccelerationRun):
    """Chebyshev acceleration of one problem, with a safeguard for each batch member.

    The weights from sweep `first_iteration` on are ω₁ = 1, ω₂ = 2/(2 - ρ²), ωₗ₊₁ = 4/(4 - ρ² ωₗ). If the
    residual is not finite or grows by `RESTART_GROWTH`, u returns to its best state and the weights
    restart with ρ further from 1. With ρ = 0, no acceleration, a finite residual may grow freely.
    """

    label = "Chebyshev"

    def __init__(self, options: Chebyshev, problem: Problem) -> None:
        self.problem, self.first_iteration = problem, options.first_iteration
        batch_size, u = problem.batch_size, problem.u
        self.rho, self.gamma = (
            np.full(batch_size, float(options.rho)),
            np.full(batch_size, float(options.gamma)),
        )
        self.restarts = np.zeros(batch_size, int)
        self._sweep = np.zeros(batch_size, int)
        self._best_residual = np.full(batch_size, np.inf)
        self._weights, self._used = np.ones((batch_size, 0)), 0
        self._known: dict[float, list[float]] = {}
        self.current, self.previous, self._best = (problem.zeros(u.shape) for _ in range(3))
        for array in (self.current, self.previous, self._best):
            problem.device.assign(array, u)

    def notes(self, member: int = 0) -> list[str]:
        if not self.restarts[member]:
            return []
        times = pluralize(int(self.restarts[member]), "time")
        return [f"{self.label} acceleration restarted {times} because the residual rose"]

    def prepare_sweeps(self, iterations: int) -> ChebyshevMemory:
        if self._used + iterations > self._weights.shape[1]:
            count = max(WEIGHTS_AHEAD, iterations)
            if count > self._weights.shape[1]:
                self._weights = np.ones((len(self.rho), count))
            for state in set(zip(self.rho, self._sweep, strict=True)):
                same_state = (self.rho == state[0]) & (self._sweep == state[1])
                self._weights[same_state] = self._omegas(*state, self._weights.shape[1])
            self.problem.device.upload(self._weights)
            self._used = 0
        memory = ChebyshevMemory(1, self._weights, self._used, self.gamma, self.current, self.previous)
        self._used += iterations
        self._sweep += iterations
        return memory

    def _omegas(self, rho: float, sweep: int, count: int) -> list[float]:
        """Return ω of `count` sweeps from `sweep` on."""
        known = self._known.setdefault(rho, [1.0] * (self.first_iteration + 1) + [2 / (2 - rho * rho)])
        while len(known) < sweep + count:
            known.append(4 / (4 - rho * rho * known[-1]))
        return known[sweep : sweep + count]

    def observe(self, balance: Balance, member: int = 0) -> bool:
        """Keep the best u, or return to it and restart the weights; return True after a reset."""
        if balance.finite and balance.residual < self._best_residual[member]:
            self.problem.device.assign(self._best, self.problem.u, member)
            self._best_residual[member] = balance.residual
            return False
        harmless = (
            balance.residual < RESTART_GROWTH * self._best_residual[member]
            or self._sweep[member] <= self.first_iteration
        )
        if balance.finite and (harmless or self.rho[member] == 0):
            return False
        for array in (self.problem.u, self.current, self.previous):
            self.problem.device.assign(array, self._best, member)
        self._sweep[member] = 0
        self._used = self._weights.shape[1]  # weights must be recomputed
        self._reduce_acceleration(member)
        self.restarts[member] += 1
        return True

    def _reduce_acceleration(self, member: int) -> None:
        self.rho[member] = max(0.0, 1 - 4 * (1 - self.rho[member]))
        if self.gamma[member] > 1:
            self.gamma[member] = 0.5 * (self.gamma[member] + 1.0)
        self.problem.device.upload(self.gamma)
