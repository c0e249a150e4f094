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
        self._start_residual: np.ndarray | None = None
        self._resumed, self._plain_left = np.zeros((2, problem.copies), int)
        self._plain_looks = np.ones(problem.copies, int)
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
    def caution(self) -> tuple[np.ndarray, ...] | None:
        if not self._confined_friction:
            return None
        return self._memory.window.copy(), self._resumed, self._plain_left, self._plain_looks

    def resume(self, caution: tuple[np.ndarray, ...] | None) -> None:
        if caution is not None and self._confined_friction:
            self._memory.window[:], self._resumed, self._plain_left, self._plain_looks = caution
            self.problem.device.push(self._memory.window)

    @property
    def _confined_friction(self) -> bool:
        return bool(self.problem.room) and self.problem.following.rough

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
        residual = np.array([balance.residual])
        return bool(self._observe_energies(np.array([balance.finite]), residual, np.array([copy]))[0])

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        if self.problem.following.rough:
            return super().observe_all(balances, active)
        moved = np.zeros(self.problem.copies, bool)
        moved[active] = self._observe_energies(balances.finite[active], balances.residual[active], active)
        return moved

    def start_at(self, balances: Balances) -> None:
        """Know the residuals where the solve starts, or where stencils were exchanged; without friction not
        with barrier contact and followers, which change the energy on the way."""
        if not self.problem.room and not self.problem.model.followers:
            self._start_residual = balances.residual.copy()
        elif self._confined_friction:
            self._least[:] = balances.residual

    def _observe_energies(self, finite: np.ndarray, residual: np.ndarray, copies: np.ndarray) -> np.ndarray:
        """(k,) which of these copies went back; finite (k,): whether their forces are; residual (k,) [N]."""
        measures, window = self.problem.measures, self._memory.window
        energy = measures.energies_seen()[copies]
        if self._start_residual is not None:
            if (residual > self._start_residual[copies]).any():
                self._least = self._start_energies()
            self._start_residual = None
        least = self._least[copies]
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

    def _start_energies(self) -> np.ndarray:
        """(copies,) E(u) [J] where the solve started, infinite where it is not finite."""
        p = self.problem
        here = p.zeros(p.u.shape)
        p.device.assign(here, p.u)
        p.device.assign(p.u, self._best)
        energies = p.measures.energies()
        p.device.assign(p.u, here)
        return np.where(np.isfinite(energies), energies, np.inf)

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
        """Start over where the residual has risen much; with barrier contact from the u where it was least,
        with plain sweeps for a number of looks that doubles each time."""
        window, confined = self._memory.window, self._confined_friction
        plain = confined and window[copy] == 0
        risen = not balance.residual <= RISEN * self._least[copy] and not plain
        if risen:
            self._start_over(copy)
        elif plain:
            self._plain_left[copy] -= 1
            if self._plain_left[copy] <= 0:
                self._resize(copy, max(1, self._resumed[copy]))
        elif window[copy] < self._window:
            self._resize(copy, window[copy] + 1)
        if risen and confined:
            self._resumed[copy], self._plain_left[copy] = window[copy], self._plain_looks[copy]
            self._plain_looks[copy] *= 2
            self._resize(copy, 0)
            for array in (self.problem.u, self._memory.x):
                self.problem.device.assign(array, self._best, copy)
            return True
        if risen or plain or balance.residual <= self._least[copy]:
            self._least[copy] = balance.residual
            self.problem.device.assign(self._best, self.problem.u, copy)
        return False

    def _resize(self, copy: int, window: int) -> None:
        self._memory.window[copy] = window
        self.problem.device.push(self._memory.window)
