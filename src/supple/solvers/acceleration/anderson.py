"""Anderson acceleration of a sweep [Walker and Ni 2011; Peng et al. 2018 for projective dynamics].

A sweep takes x to g(x), and f = g(x) - x vanishes in equilibrium. With the differences Δfᵢ = fᵢ - fᵢ₋₁ and
Δgᵢ of the last sweeps, the next x is g - Σ cᵢ Δgᵢ, where c minimises |f - Σ cᵢ Δfᵢ|. It needs no estimate of
the convergence rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from supple.checks import whole_number
from supple.kernels import RECORD
from supple.problem import Balance, Balances, Problem
from supple.solvers.acceleration.acceleration import Acceleration, AccelerationRun
from supple.solvers.acceleration.anderson_kernels import PARTS, ROWS, AndersonMemory
from supple.words import counted

LONGEST_WINDOW = 30
"""One thread eliminates a system of this size after every sweep; longer windows have not been tried."""


@dataclass(frozen=True)
class Anderson(Acceleration):
    """Combines the last `window` sweeps; needs no estimate of anything."""

    kind: ClassVar[str] = "anderson"

    window: int = 10

    def __post_init__(self) -> None:
        whole_number("window", self.window, at_most=LONGEST_WINDOW)

    def begin(self, problem: Problem) -> AndersonRun:
        return AndersonRun(self.window, problem)

    def memory(self, vertices: int, number: int) -> int:
        columns, rows = _sizes(self.window)
        sums = columns * (PARTS + columns + rows + 1)
        return (2 * columns + 2) * RECORD * (vertices + 1) * number + 8 * sums


def _sizes(window: int) -> tuple[int, int]:
    """m and m' of the memory."""
    return 4 * (window // 4 + 1), ROWS * (window // ROWS + 1)


def _new_memory(problem: Problem, window: int) -> tuple[np.ndarray, AndersonMemory]:
    """For the best u, and for earlier sweeps."""
    copies, shape, (columns, rows) = problem.copies, problem.u.shape, _sizes(window)
    return problem.zeros(shape), AndersonMemory(
        phases=3,
        slot=np.zeros(copies, np.int64),
        known=np.zeros(copies, np.int64),
        window=np.zeros(copies, np.int64),
        x=problem.zeros(shape),
        f=problem.zeros((columns, *shape)),
        g=problem.zeros((columns, *shape)),
        parts=np.zeros((copies, PARTS, columns)),
        products=np.zeros((copies, columns, columns)),
        system=np.zeros((copies, rows, columns)),
        mix=np.zeros((copies, columns)),
    )


RISEN = 2.0
"""How many times its least the residual may be before earlier sweeps are forgotten, with friction."""


class AndersonRun(AccelerationRun):
    """Up to `window` earlier sweeps, and a safeguard: where the energy has risen since the last look,
    u goes back to where it was least, and the window begins anew with half its length, which grows again.
    Friction has no energy that must fall: there the residual is looked at, and u stays."""

    def __init__(self, window: int, problem: Problem) -> None:
        self.problem, self._window = problem, window
        self.restarts = np.zeros(problem.copies, int)
        self._least = np.full(problem.copies, np.inf)
        self._best, self._memory = problem.shared(
            f"Anderson memory of {window} sweeps", lambda: _new_memory(problem, window)
        )
        self._better = self._widened = False
        self._memory.slot[:], self._memory.known[:], self._memory.window[:] = 0, 0, window
        for array in (self._memory.slot, self._memory.known, self._memory.window):
            problem.device.push(array)
        for array in (self._memory.x, self._best):
            problem.device.assign(array, problem.u)

    def notes(self, copy: int = 0) -> list[str]:
        if not self.restarts[copy]:
            return []
        times = counted(int(self.restarts[copy]), "time")
        why = "residual" if self.problem.following.rough else "energy"
        return [f"Anderson acceleration started over {times} because the {why} rose"]

    @property
    def follows(self) -> tuple[np.ndarray, ...]:
        return (self._memory.x,)

    def ahead(self, iterations: int) -> AndersonMemory:
        self._see_to_it()
        return self._memory

    def _see_to_it(self) -> None:
        """Do for all copies at once what looks at each have left to do, before they move on. Those that went
        back are where they were best, and those that have ended stay where they are."""
        if self._better:
            self.problem.device.assign(self._best, self.problem.u)
        if self._widened:
            self.problem.device.push(self._memory.window)
        self._better = self._widened = False

    def observe(self, balance: Balance, copy: int = 0) -> bool:
        """Remember the best u, or go back to it and start over; True when it went back."""
        if self.problem.following.rough:
            return self._observe_friction(balance, copy)
        return bool(self._observe_energies(np.array([balance.finite]), np.array([copy]))[0])

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        if self.problem.following.rough:
            return super().observe_all(balances, active)
        moved = np.zeros(self.problem.copies, bool)
        moved[active] = self._observe_energies(balances.finite[active], active)
        return moved

    def _observe_energies(self, finite: np.ndarray, copies: np.ndarray) -> np.ndarray:
        """(k,) which of these copies went back; finite (k,): whether their forces are."""
        measures, window = self.problem.measures, self._memory.window
        energy, least = measures.energies_seen()[copies], self._least[copies]
        risen = ~(finite & (energy <= least))
        if risen.any():
            allowed = np.broadcast_to(measures.energy_roundings(), self._least.shape)[copies]
            risen &= ~(finite & (energy <= least + allowed))
        good = copies[~risen]
        self._least[good] = np.minimum(energy, least)[~risen]
        narrow = good[window[good] < self._window]
        window[narrow] += 1
        self._better |= len(good) > 0
        self._widened |= len(narrow) > 0
        if self.problem.copies == 1:  # others may move it
            self._see_to_it()
        for copy in copies[risen].tolist():
            for array in (self.problem.u, self._memory.x):
                self.problem.device.assign(array, self._best, copy)
            self._start_over(copy)
        return risen

    def _start_over(self, copy: int) -> None:
        """With half the window."""
        known, window = self._memory.known, self._memory.window
        self.problem.device.pull(known)
        known[copy] = 0
        window[copy] //= 2
        for array in (known, window):
            self.problem.device.push(array)
        self.restarts[copy] += 1

    def _observe_friction(self, balance: Balance, copy: int) -> bool:
        """Start over where the residual has risen much."""
        window = self._memory.window
        if not balance.residual <= RISEN * self._least[copy]:
            self._least[copy] = balance.residual
            self._start_over(copy)
        elif window[copy] < self._window:
            window[copy] += 1
            self.problem.device.push(window)
        self._least[copy] = min(balance.residual, self._least[copy])
        return False
