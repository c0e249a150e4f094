"""Symmetric systems H x = b with the Hessian at a problem's u, also where that is not positive definite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix, csc_matrix
from scipy.sparse.linalg import minres, splu

from supple.gradients.report import NoGradientError
from supple.linear import Assembly, Multilevel, NotPositive, Preconditioner, solve
from supple.linear.multilevel import as_records
from supple.problem import Problem

ITERATIONS = 2000
"""Allowed to conjugate gradients."""

REFINEMENTS = 3
"""How often what is left of b is solved for again."""

MOST_FACTORISED = 60_000
"""Unknowns up to which a matrix that is not positive definite is factorised; beyond, MINRES."""

SINGULAR = 1e-12
"""Part of the largest stiffness on the diagonal below which a curvature counts as 0."""

UNSOLVED = 1e-5
"""A residual, relative to b, with which nothing is to be had."""

PROBED = 1e-2
"""How far a random right-hand side is followed to find negative curvature."""


class Solved(NamedTuple):
    """x (f, 3) with |H x - b| = residual |b|, by whom, and in how many iterations."""

    x: np.ndarray
    residual: float
    solver: str
    iterations: int


class System:
    """H at the u that a problem has when this is made. stable: whether no direction of negative curvature has
    been seen; curvature [N/m]: the smallest p · H p / |p|² that has."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.assembly: Assembly = problem.shared("assembly", lambda: Assembly(problem))
        levels: Multilevel = problem.shared("multilevel", lambda: Multilevel(self.assembly))
        self.matrix = self.assembly.matrix("exact")
        self.hessian: bsr_matrix = self.assembly.here(self.matrix)
        self.stiffest = float(np.abs(self.hessian.diagonal()).max(initial=0.0))
        self.curvature, self.stable = np.inf, True
        self._preconditioner: Preconditioner | None = None
        if not np.isfinite(self.stiffest):
            raise NoGradientError("The gradient does not exist: the forces there are infinite or NaN.")
        try:
            self._preconditioner = levels.at(self.matrix, self.assembly.positions)
        except NotPositive:
            self.stable = False

    def probe(self) -> None:
        """Look for negative curvature in all directions."""
        if self._preconditioner is not None:
            noise = self.problem.shared("noise", self._noise)
            found, _ = solve(self.matrix, noise, self._preconditioner, PROBED, 0.0, ITERATIONS)
            self._see(self._here(found.x if found.negative is None else found.negative))

    def _noise(self) -> np.ndarray:
        """A right-hand side (f, 4) that has something of every direction, always the same."""
        return as_records(np.random.default_rng(0).normal(size=self.assembly.size))

    def solve(self, b: np.ndarray, accuracy: float) -> Solved:
        """For b (f, 3), in the order of the matrix."""
        right = b.reshape(-1)
        size = float(np.linalg.norm(right))
        if size == 0:
            return Solved(np.zeros_like(b), 0.0, "none needed", 0)
        found = self._iterated(right, size, accuracy) or self._direct(right, size, accuracy)
        self._see(found.x.reshape(-1))
        if self._is_flat(found.x.reshape(-1)) or not found.residual <= UNSOLVED:
            raise NoGradientError(self._sentence(found))
        return found

    def _iterated(self, right: np.ndarray, size: float, accuracy: float) -> Solved | None:
        """By conjugate gradients; None where these meet negative curvature."""
        x, left, iterations = np.zeros_like(right), right, 0
        for _ in range(REFINEMENTS if self._preconditioner is not None else 0):
            assert self._preconditioner is not None
            found, _ = solve(
                self.matrix, as_records(left), self._preconditioner, 0.1 * accuracy, 0.0, ITERATIONS
            )
            iterations += found.iterations
            if found.negative is not None:
                self._see(self._here(found.negative))
                return None
            x = x + self._here(found.x)
            left = right - self.hessian @ x
            if np.linalg.norm(left) <= accuracy * size:
                break
        residual = float(np.linalg.norm(left)) / size
        good = iterations > 0 and residual <= UNSOLVED
        return Solved(x.reshape(-1, 3), residual, "multilevel CG", iterations) if good else None

    def _direct(self, right: np.ndarray, size: float, accuracy: float) -> Solved:
        """By a factorisation with pivots, or by MINRES where that would be too large."""
        if len(right) > MOST_FACTORISED:
            diagonal = 1 / np.maximum(np.abs(self.hessian.diagonal()), 1e-300)
            root = np.sqrt(diagonal)
            from scipy.sparse.linalg import LinearOperator

            scaled = LinearOperator(self.hessian.shape, lambda v: root * (self.hessian @ (root * v)))
            counted: list[int] = []
            x, _ = minres(
                scaled, root * right, rtol=accuracy, maxiter=20_000, callback=lambda _: counted.append(1)
            )
            x, name, iterations = root * x, "MINRES", len(counted)
        else:
            name, iterations = "SuperLU", 1
            try:
                x = splu(csc_matrix(self.hessian)).solve(right)
            except RuntimeError:  # exactly singular
                x = np.full_like(right, np.inf)
        with np.errstate(all="ignore"):
            residual = float(np.linalg.norm(self.hessian @ x - right)) / size
        return Solved(x.reshape(-1, 3), residual if np.isfinite(residual) else np.inf, name, iterations)

    def _here(self, records: np.ndarray) -> np.ndarray:
        self.problem.device.pull(records)
        return records[:, :3].ravel()

    def _see(self, p: np.ndarray) -> None:
        """Remember the curvature along p (3 f,)."""
        square = float(p @ p)
        if 0 < square < np.inf:
            curvature = float(p @ (self.hessian @ p)) / square
            self.curvature = min(self.curvature, curvature)
            self.stable &= curvature >= -SINGULAR * self.stiffest

    def _is_flat(self, p: np.ndarray) -> bool:
        """Whether the energy does not change along p, but for rounding."""
        square = float(p @ p)
        if not square < np.inf:
            return True
        return abs(float(p @ (self.hessian @ p))) <= SINGULAR * self.stiffest * square

    def _sentence(self, found: Solved) -> str:
        if self._is_flat(found.x.reshape(-1)):
            return (
                "The gradient does not exist: the function changes along a motion that costs no energy, such "
                "as that of a body that nothing holds, or at a point where it begins to buckle. Pin the body,"
                " or take a function that does not change along with it."
            )
        return (
            f"The gradient could not be computed: {found.solver} ended with a residual of "
            f"{found.residual:.1e} after {found.iterations:,} iterations; the system is close to singular."
        )
