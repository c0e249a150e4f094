"""Anderson acceleration of sweeps [Walker and Ni 2011; Peng et al. 2018 for projective dynamics].

A sweep maps x to g(x), and f = g(x) - x vanishes at equilibrium. With the differences Δfᵢ = fᵢ - fᵢ₋₁ and Δgᵢ
of the last sweeps, the next x is g - Σ cᵢ Δgᵢ, where c minimizes |f - Σ cᵢ Δfᵢ|. No estimate of the
convergence rate is required.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from supple.kernels import RECORD
from supple.problem import Balance, Balances, Problem
from supple.solvers.acceleration.acceleration import Acceleration, AccelerationRun
from supple.solvers.acceleration.anderson_kernels import ROW_BLOCK, SUM_BLOCKS, AndersonMemory
from supple.support.arguments import check_integer
from supple.support.keywords import suggest_keywords
from supple.support.text import pluralize

MAX_WINDOW = 30
"""Largest window tested; one thread eliminates a system of this size after every sweep."""


@suggest_keywords
@dataclass(frozen=True)
class Anderson(Acceleration):
    """Anderson acceleration over the last `window` sweeps; requires no estimate of the convergence rate.

    Args:
        window: Number of earlier sweeps, from 1 to 30.
    """

    kind: ClassVar[str] = "anderson"

    window: int = 10

    def __post_init__(self) -> None:
        check_integer("window", self.window, at_most=MAX_WINDOW)

    def begin(self, problem: Problem) -> AndersonRun:
        return AndersonRun(self.window, problem)

    def memory(self, vertices: int, number: int) -> int:
        columns, rows = _sizes(self.window)
        sums = columns * (SUM_BLOCKS + columns + rows + 1)
        return (2 * columns + 2) * RECORD * (vertices + 1) * number + 8 * sums


def _sizes(window: int) -> tuple[int, int]:
    """Return the sizes m and m' of `AndersonMemory`."""
    return 4 * (window // 4 + 1), ROW_BLOCK * (window // ROW_BLOCK + 1)


def _new_memory(problem: Problem, window: int) -> tuple[np.ndarray, AndersonMemory]:
    """Allocate the best u and the memory of earlier sweeps."""
    batch_size, shape, (columns, rows) = problem.batch_size, problem.u.shape, _sizes(window)
    return problem.zeros(shape), AndersonMemory(
        phases=3,
        slot=np.zeros(batch_size, np.int64),
        known=np.zeros(batch_size, np.int64),
        window=np.zeros(batch_size, np.int64),
        x=problem.zeros(shape),
        f=problem.zeros((columns, *shape)),
        g=problem.zeros((columns, *shape)),
        parts=np.zeros((batch_size, SUM_BLOCKS, columns)),
        products=np.zeros((batch_size, columns, columns)),
        system=np.zeros((batch_size, rows, columns)),
        mix=np.zeros((batch_size, columns)),
    )


RESIDUAL_GROWTH = 2.0
"""With friction, growth of the residual over its minimum at which earlier sweeps are discarded."""


class AndersonRun(AccelerationRun):
    """Anderson acceleration of one problem, with a safeguard.

    If the energy has increased since the last check, u returns to the state of lowest energy, and the window
    restarts at half its length and grows again. Frictional forces have no energy that must decrease: with
    friction the residual is checked instead, and u is kept.
    """

    def __init__(self, window: int, problem: Problem) -> None:
        self.problem, self._window = problem, window
        self.restarts = np.zeros(problem.batch_size, int)
        self._least = np.full(problem.batch_size, np.inf)
        self._start_residual: np.ndarray | None = None
        self._resumed, self._plain_left = np.zeros((2, problem.batch_size), int)
        self._plain_checks = np.ones(problem.batch_size, int)
        self._best, self._memory = problem.get_shared(
            f"Anderson memory of {window} sweeps", lambda: _new_memory(problem, window)
        )
        self._better = self._widened = False
        self._memory.slot[:], self._memory.known[:], self._memory.window[:] = 0, 0, window
        for array in (self._memory.slot, self._memory.known, self._memory.window):
            problem.device.upload(array)
        for array in (self._memory.x, self._best):
            problem.device.assign(array, problem.u)

    def notes(self, member: int = 0) -> list[str]:
        if not self.restarts[member]:
            return []
        times = pluralize(int(self.restarts[member]), "time")
        why = "residual" if self.problem.dynamic_terms.has_friction else "energy"
        return [f"Anderson acceleration restarted {times} because the {why} rose"]

    @property
    def safeguard(self) -> tuple[np.ndarray, ...] | None:
        if not self._has_barrier_friction:
            return None
        return self._memory.window.copy(), self._resumed, self._plain_left, self._plain_checks

    def resume(self, safeguard: tuple[np.ndarray, ...] | None) -> None:
        if safeguard is not None and self._has_barrier_friction:
            self._memory.window[:], self._resumed, self._plain_left, self._plain_checks = safeguard
            self.problem.device.upload(self._memory.window)

    @property
    def _has_barrier_friction(self) -> bool:
        return bool(self.problem.trust_region) and self.problem.dynamic_terms.has_friction

    @property
    def copies_of_u(self) -> tuple[np.ndarray, ...]:
        return (self._memory.x,)

    def prepare_sweeps(self, iterations: int) -> AndersonMemory:
        self._apply_deferred()
        return self._memory

    def _apply_deferred(self) -> None:
        """Apply the updates deferred by checks to all batch members at once, before the next sweep.

        Members that were reset already are at their best state, and finished members do not move.
        """
        if self._better:
            self.problem.device.assign(self._best, self.problem.u)
        if self._widened:
            self.problem.device.upload(self._memory.window)
        self._better = self._widened = False

    def observe(self, balance: Balance, member: int = 0) -> bool:
        """Keep the best u, or return to it and restart the window; return True after a reset."""
        if self.problem.dynamic_terms.has_friction:
            return self._observe_friction(balance, member)
        residual = np.array([balance.residual])
        return bool(self._observe_energies(np.array([balance.finite]), residual, np.array([member]))[0])

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        if self.problem.dynamic_terms.has_friction:
            return super().observe_all(balances, active)
        moved = np.zeros(self.problem.batch_size, bool)
        moved[active] = self._observe_energies(balances.finite[active], balances.residual[active], active)
        return moved

    def start_at(self, balances: Balances) -> None:
        """Record residuals at the start of a solve or after an exchange of stencils.

        They are not used without friction if barrier contact or follower loads change the energy during the
        solve.
        """
        if not self.problem.trust_region and not self.problem.model.dynamic_terms:
            self._start_residual = balances.residual.copy()
        elif self._has_barrier_friction:
            self._least[:] = balances.residual

    def _observe_energies(self, finite: np.ndarray, residual: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Check the energies of batch members; return (k,) True for members that were reset.

        Args:
            finite: (k,) True if the forces are finite.
            residual: (k,) residuals [N].
            members: (k,) batch members.
        """
        measures, window = self.problem.diagnostics, self._memory.window
        energy = measures.last_energies()[members]
        if self._start_residual is not None:
            if (residual > self._start_residual[members]).any():
                self._least = self._start_energies()
            self._start_residual = None
        least = self._least[members]
        risen = ~(finite & (energy <= least))
        if risen.any():
            allowed = np.broadcast_to(measures.energy_roundings(), self._least.shape)[members]
            risen &= ~(finite & (energy <= least + allowed))
        good = members[~risen]
        self._least[good] = np.minimum(energy, least)[~risen]
        narrow = good[window[good] < self._window]
        window[narrow] += 1
        self._better |= len(good) > 0
        self._widened |= len(narrow) > 0
        if self.problem.batch_size == 1:  # u may be moved by others
            self._apply_deferred()
        for member in members[risen].tolist():
            for array in (self.problem.u, self._memory.x):
                self.problem.device.assign(array, self._best, member)
            self._start_over(member)
        return risen

    def _start_energies(self) -> np.ndarray:
        """(batch,) E(u) [J] at the start of the solve, infinite if not finite."""
        p = self.problem
        current = p.zeros(p.u.shape)
        p.device.assign(current, p.u)
        p.device.assign(p.u, self._best)
        energies = p.diagnostics.energies()
        p.device.assign(p.u, current)
        return np.where(np.isfinite(energies), energies, np.inf)

    def _start_over(self, member: int) -> None:
        """Discard earlier sweeps and halve the window."""
        known, window = self._memory.known, self._memory.window
        self.problem.device.download(known)
        known[member] = 0
        window[member] //= 2
        for array in (known, window):
            self.problem.device.upload(array)
        self.restarts[member] += 1

    def _observe_friction(self, balance: Balance, member: int) -> bool:
        """Restart if the residual has grown by `RESIDUAL_GROWTH`; return True if u was reset.

        With barrier contact, u returns to the state of the smallest residual, and unaccelerated sweeps follow
        for a number of checks that doubles each time.
        """
        window, confined = self._memory.window, self._has_barrier_friction
        plain = confined and window[member] == 0
        risen = not balance.residual <= RESIDUAL_GROWTH * self._least[member] and not plain
        if risen:
            self._start_over(member)
        elif plain:
            self._plain_left[member] -= 1
            if self._plain_left[member] <= 0:
                self._resize(member, max(1, self._resumed[member]))
        elif window[member] < self._window:
            self._resize(member, window[member] + 1)
        if risen and confined:
            self._resumed[member], self._plain_left[member] = window[member], self._plain_checks[member]
            self._plain_checks[member] *= 2
            self._resize(member, 0)
            for array in (self.problem.u, self._memory.x):
                self.problem.device.assign(array, self._best, member)
            return True
        if risen or plain or balance.residual <= self._least[member]:
            self._least[member] = balance.residual
            self.problem.device.assign(self._best, self.problem.u, member)
        return False

    def _resize(self, member: int, window: int) -> None:
        self._memory.window[member] = window
        self.problem.device.upload(self._memory.window)
