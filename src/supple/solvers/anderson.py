"""Anderson acceleration of a sweep [Walker and Ni 2011; Peng et al. 2018 for projective dynamics].

A sweep takes x to g(x), and f = g(x) - x vanishes in equilibrium. From the last m differences ΔF of f and ΔG
of g, the next x is g - ΔG c, where c minimises |f - ΔF c|. It needs no estimate of the convergence rate.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.kernels import (
    copy_of,
    enter,
    inside,
    lane_total,
    leave,
    number,
    offset_of,
    physics,
    proceed,
    records,
    strides,
)
from supple.solvers.acceleration import accelerate
from supple.solvers.problem import Balance, Problem

PARTS = 64
"""Parts in which sums over all vertices are formed, so that their order never changes."""

GROWTH = 2.0
"""How much |f| may grow from one sweep to the next before the history is dropped."""

DESCENT = 1e-3
"""By which part of itself the energy must fall from one look to the next to count as descending."""

REGULARISATION = 1e-10
"""Added to the diagonal of ΔFᵀΔF, relative to its trace."""


class AndersonRows(NamedTuple):
    """phases: how many follow a sweep; age (copies,): sweeps since the history was begun; window (copies,):
    how many differences may be used; x, f and g of the last sweep, records; df and dg (m, records, 4):
    differences; parts (copies, PARTS, 2 m + 1): partial sums of ΔFᵀΔF, ΔFᵀf and |f|²; gram (copies, m, m +
    1): ΔFᵀΔF and ΔFᵀf; squares (copies, 2): |f|² of this and of the last sweep; factor (copies, m, m): L; mix
    (copies, m): c."""

    phases: Any
    age: Any
    window: Any
    x: Any
    f: Any
    g: Any
    df: Any
    dg: Any
    parts: Any
    gram: Any
    squares: Any
    factor: Any
    mix: Any


@accelerate.of(AndersonRows)
def _anderson(acceleration, team, phase, iteration, u):
    _remember(acceleration, team, phase, u)
    _sum_up(acceleration, team, phase + 1)
    _minimise(acceleration, team, phase + 2)
    _mix(acceleration, team, phase + 3, u)


@physics
def _remember(a, team, phase, u):
    """f, ΔF and ΔG of this sweep, and its part of ΔFᵀ(ΔF, f)."""
    m, count = len(a.df), records(team, u)
    size = -(-count // PARTS)
    part = enter(team, phase, 0, PARTS)
    while inside(part, PARTS):
        first, step = strides(part)
        slot = a.age[copy_of(part)] % m
        start = offset_of(part) + number(part) * size
        end = offset_of(part) + min(count, number(part) * size + size)
        i, square = start + first, 0.0
        while i < end:
            for axis in range(3):
                g = u[i, axis]
                f = g - a.x[i, axis]
                square += 1.0 * f * f  # 1.0 makes it float64
                a.df[slot, i, axis], a.dg[slot, i, axis] = f - a.f[i, axis], g - a.g[i, axis]
                a.f[i, axis], a.g[i, axis] = f, g
            i += step
        square = lane_total(part, square)
        if first == 0:
            a.parts[copy_of(part), number(part), 2 * m] = square
        for column in range(m):
            square, product = 0.0, 0.0
            i = start + first
            while i < end:
                for axis in range(3):
                    d = 1.0 * a.df[column, i, axis]
                    square += d * a.df[slot, i, axis]
                    product += d * a.f[i, axis]
                i += step
            square, product = lane_total(part, square), lane_total(part, product)
            if first == 0:
                a.parts[copy_of(part), number(part), column] = square
                a.parts[copy_of(part), number(part), m + column] = product
        part = proceed(team, phase, part, 0, PARTS)
    leave(team, phase, 0, PARTS)


@physics
def _sum_up(a, team, phase):
    """The new row and column of ΔFᵀΔF, and ΔFᵀf."""
    m = len(a.df)
    item = enter(team, phase, 0, 1)
    while inside(item, 1):
        copy = copy_of(item)
        slot = a.age[copy] % m
        k, step = strides(item)
        while k <= 2 * m:
            total = 0.0
            for part in range(PARTS):
                total += a.parts[copy, part, k]
            if k < m:
                a.gram[copy, slot, k] = total
                a.gram[copy, k, slot] = total
            elif k < 2 * m:
                a.gram[copy, k - m, m] = total
            else:
                a.squares[copy, 0] = total
            k += step
        item = proceed(team, phase, item, 0, 1)
    leave(team, phase, 0, 1)


@physics
def _minimise(a, team, phase):
    """c = (ΔFᵀΔF + ε I)⁻¹ ΔFᵀf by L Lᵀ over the latest differences; none after f has grown much, which begins
    a new history."""
    m = len(a.df)
    item = enter(team, phase, 0, 1)
    while inside(item, 1):
        if strides(item)[0] == 0:
            copy = copy_of(item)
            age, L, c = a.age[copy], a.factor, a.mix
            if a.squares[copy, 0] > GROWTH * GROWTH * a.squares[copy, 1]:
                age = 0
            known = min(age, a.window[copy])
            for i in range(m):
                c[copy, i] = 0.0
            trace = 1e-300
            for i in range(known):
                trace += a.gram[copy, (age - i) % m, (age - i) % m]
            for i in range(known):
                p = (age - i) % m
                for j in range(i + 1):
                    q = (age - j) % m
                    value = a.gram[copy, p, q]
                    for k in range(j):
                        value -= L[copy, i, k] * L[copy, j, k]
                    if i == j:
                        L[copy, i, i] = math.sqrt(max(value, 0.0) + REGULARISATION * trace)
                    else:
                        L[copy, i, j] = value / L[copy, j, j]
                value = a.gram[copy, p, m]
                for k in range(i):
                    value -= L[copy, i, k] * c[copy, (age - k) % m]
                c[copy, p] = value / L[copy, i, i]
            for back in range(known):
                i = known - 1 - back
                value = c[copy, (age - i) % m]
                for k in range(i + 1, known):
                    value -= L[copy, k, i] * c[copy, (age - k) % m]
                c[copy, (age - i) % m] = value / L[copy, i, i]
            a.age[copy] = age + 1
            a.squares[copy, 1] = a.squares[copy, 0]
        item = proceed(team, phase, item, 0, 1)
    leave(team, phase, 0, 1)


@physics
def _mix(a, team, phase, u):
    """x = g - ΔG c."""
    m, count = len(a.df), records(team, u)
    size = -(-count // PARTS)
    part = enter(team, phase, 0, PARTS)
    while inside(part, PARTS):
        first, step = strides(part)
        copy = copy_of(part)
        i = offset_of(part) + number(part) * size + first
        end = offset_of(part) + min(count, number(part) * size + size)
        while i < end:
            for axis in range(3):
                x = u[i, axis]
                for column in range(m):
                    if a.mix[copy, column] != 0.0:  # an unused difference may hold NaN
                        x -= a.mix[copy, column] * a.dg[column, i, axis]
                u[i, axis] = x
                a.x[i, axis] = x
            i += step
        part = proceed(team, phase, part, 0, PARTS)
    leave(team, phase, 0, PARTS)


def _new_history(copies: int, window: int, u: np.ndarray) -> tuple[np.ndarray, AndersonRows]:
    """Memory for the best u and for the rows."""
    return np.zeros_like(u), AndersonRows(
        phases=4,
        age=np.zeros(copies, np.int64),
        window=np.zeros(copies, np.int64),
        x=np.zeros_like(u),
        f=np.zeros_like(u),
        g=np.zeros_like(u),
        df=np.zeros((window, *u.shape), u.dtype),
        dg=np.zeros((window, *u.shape), u.dtype),
        parts=np.zeros((copies, PARTS, 2 * window + 1)),
        gram=np.zeros((copies, window, window + 1)),
        squares=np.zeros((copies, 2)),
        factor=np.zeros((copies, window, window)),
        mix=np.zeros((copies, window)),
    )


class Anderson:
    """The history of up to `window` sweeps, and a safeguard: where the energy has risen since the last look,
    u goes back to where it was least, and a new history begins with half the window, which grows again."""

    def __init__(self, window: int, problem: Problem) -> None:
        self.problem = problem
        self.restarts = np.zeros(problem.copies, int)
        self.descending = np.zeros(problem.copies, bool)
        self._least = np.full(problem.copies, np.inf)
        self._best, self._rows = problem.shared(
            f"Anderson history of {window} sweeps", lambda: _new_history(problem.copies, window, problem.u)
        )
        self._rows.age[:], self._rows.window[:], self._rows.squares[:] = 0, window, np.inf
        for array in (self._rows.age, self._rows.window, self._rows.squares):
            problem.push(array)
        for array in (self._rows.x, self._best):
            problem.assign(array, problem.u)

    def notes(self, copy: int = 0) -> list[str]:
        if not self.restarts[copy]:
            return []
        return [f"Anderson acceleration started over {self.restarts[copy]} times because the energy rose"]

    def rows(self, iterations: int) -> AndersonRows:
        """The acceleration of the next sweeps."""
        return self._rows

    def observe(self, balance: Balance, copy: int = 0) -> bool:
        """Remember the best u, or go back to it and start over; True when it went back."""
        energy = self.problem.energy_of(copy)
        window = self._rows.window
        self.descending[copy] = energy < self._least[copy] - DESCENT * abs(energy)
        if balance.finite and (
            energy <= self._least[copy] or energy <= self._least[copy] + self.problem.energy_rounding(copy)
        ):
            self.problem.assign(self._best, self.problem.u, copy)
            self._least[copy] = min(energy, self._least[copy])
            if window[copy] < len(self._rows.df):
                window[copy] += 1
                self.problem.push(window)
            return False
        for array in (self.problem.u, self._rows.x):
            self.problem.assign(array, self._best, copy)
        self.problem.pull(self._rows.age)
        self._rows.age[copy] = 0
        window[copy] //= 2
        for array in (self._rows.age, window):
            self.problem.push(array)
        self.restarts[copy] += 1
        return True
