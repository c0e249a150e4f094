"""Symmetric systems H x = b with the Hessian at a problem's u, also where that is not positive definite."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix, csc_matrix
from scipy.sparse.linalg import minres, splu

from supple.gradients.report import NoGradientError
from supple.linear import (
    Assembly,
    Multilevel,
    NotPositive,
    Preconditioner,
    Solution,
    product_here,
    solve,
    solve_apart,
)
from supple.linear.multilevel import as_records
from supple.problem import Problem
from supple.problem.measures import stiffness_of

ITERATIONS = 2000
"""Allowed to conjugate gradients."""

REFINEMENTS = 3
"""How often what is left of b is solved for again."""

MOST_FACTORISED = 60_000
"""Unknowns up to which a matrix that is not positive definite is factorised; beyond, MINRES."""

SINGULAR = 1e-12
"""Part of the largest stiffness of a vertex below which a curvature counts as 0."""

UNSOLVED = 1e-5
"""A residual, relative to b, with which nothing is to be had."""

PROBED = 1e-2
"""How far a random right-hand side is followed to find negative curvature."""


class Solved(NamedTuple):
    """x (f, 3) with |H x - b| = residual |b|, of each copy (copies,), by whom, and in how many iterations;
    flat (copies,): where the energy does not change along x, but for rounding."""

    x: np.ndarray
    residual: np.ndarray
    solver: str
    iterations: int
    flat: np.ndarray


class System:
    """H at the u that a problem has when this is made. copies: of how many that have nothing to do with each
    other, one after the other, the problem consists, each of which is solved for as if it were alone; of
    (f,): the one that a row belongs to. stable (copies,): whether no direction of negative curvature has been
    seen; curvature [N/m]: the smallest p · H p / |p|² that has."""

    def __init__(self, problem: Problem, copies: int = 1) -> None:
        self.problem, self.copies = problem, copies
        self.assembly: Assembly = problem.shared("assembly", lambda: Assembly(problem))
        levels: Multilevel = problem.shared("multilevel", lambda: Multilevel(self.assembly))
        self.of = self.assembly.free // max(1, problem.model.vertices // copies)
        self.curvature, self.stable = np.full(copies, np.inf), np.ones(copies, bool)
        if not problem.balance().finite:
            raise NoGradientError("The gradient does not exist: the forces there are infinite or NaN.")
        self._stiffest = np.zeros(copies)
        np.maximum.at(self._stiffest, self.of, 3 * stiffness_of(problem.measures)[self.assembly.free])
        self.matrix = self.assembly.matrix("exact")
        self._preconditioner: Preconditioner | None = None
        try:
            self._preconditioner = levels.at(self.matrix, self.assembly.positions)
        except NotPositive:
            self.stable[:] = False

    def probe(self) -> None:
        """Look for negative curvature in all directions."""
        if self._preconditioner is not None:
            found = self._gradients(self.problem.shared("noise", self._noise), PROBED)
            self._see(self._here(found.x if found.negative is None else found.negative))

    def solve(self, b: np.ndarray, accuracy: float) -> Solved:
        """For b (f, 3), in the order of the matrix. Raises NoGradientError where the only copy cannot be
        solved for; of several, the residuals are infinite where they could not be."""
        if not b.any():
            exact = np.zeros(self.copies)
            return Solved(np.zeros_like(b), exact, "none needed", 0, exact > 0)
        found = self._iterated(b, accuracy)
        if self.copies > 1:
            nowhere = np.full(self.copies, np.inf)
            return found or Solved(np.zeros_like(b), nowhere, "none", 0, nowhere < 0)
        if found is None or not found.residual[0] <= UNSOLVED:
            found = self._direct(b.reshape(-1), accuracy)
        if found.flat[0] or not found.residual[0] <= UNSOLVED:
            raise NoGradientError(_sentence(found))
        return found

    def _noise(self) -> np.ndarray:
        """A right-hand side (f, 4) that has something of every direction, always the same."""
        return as_records(np.random.default_rng(0).normal(size=self.assembly.size))

    def _gradients(self, b: np.ndarray, accuracy: float) -> Solution:
        """Conjugate gradients for records b (f, 4)."""
        M = self._preconditioner
        assert M is not None
        if self.copies == 1:
            return solve(self.matrix, b, M, accuracy, 0.0, ITERATIONS)[0]
        return solve_apart(self.matrix, b, M, accuracy, ITERATIONS, self.of)[0]

    def _iterated(self, b: np.ndarray, accuracy: float) -> Solved | None:
        """By conjugate gradients; None where these meet negative curvature."""
        x, left, iterations = np.zeros_like(b), b, 0
        size = self._lengths(b)
        size[size == 0] = 1.0
        for _ in range(REFINEMENTS if self._preconditioner is not None else 0):
            found = self._gradients(as_records(left.reshape(-1)), 0.1 * accuracy)
            iterations += found.iterations
            if found.negative is not None:
                self._see(self._here(found.negative))
                return None
            x = x + self._here(found.x)
            product = self._product(x)
            left = b - product
            if (self._lengths(left) <= accuracy * size).all():
                break
        if not iterations:
            return None
        residual = self._lengths(left) / size
        return Solved(x, residual, "multilevel CG", iterations, self._see(x, product))

    def _direct(self, right: np.ndarray, accuracy: float) -> Solved:
        """By a factorisation with pivots, or by MINRES where that would be too large, of one copy."""
        if len(right) > MOST_FACTORISED:
            diagonal = 1 / np.maximum(np.abs(self._hessian.diagonal()), 1e-300)
            root = np.sqrt(diagonal)
            from scipy.sparse.linalg import LinearOperator

            scaled = LinearOperator(self._hessian.shape, lambda v: root * (self._hessian @ (root * v)))
            counted: list[int] = []
            x, _ = minres(
                scaled, root * right, rtol=accuracy, maxiter=20_000, callback=lambda _: counted.append(1)
            )
            x, name, iterations = root * x, "MINRES", len(counted)
        else:
            name, iterations = "SuperLU", 1
            try:
                x = splu(csc_matrix(self._hessian)).solve(right)
            except RuntimeError:  # exactly singular
                x = np.full_like(right, np.inf)
        with np.errstate(all="ignore"):
            product = self._hessian @ x
            residual = float(np.linalg.norm(product - right)) / float(np.linalg.norm(right))
            flat = self._see(x.reshape(-1, 3), product.reshape(-1, 3))
        known = np.array([residual if np.isfinite(residual) else np.inf])
        return Solved(x.reshape(-1, 3), known, name, iterations, flat)

    @cached_property
    def _hessian(self) -> bsr_matrix:
        """H here, for those who need all of it."""
        return self.assembly.here(self.matrix)

    def _here(self, records: np.ndarray) -> np.ndarray:
        """(f, 3)."""
        self.problem.device.pull(records)
        return records[:, :3].copy()

    def _product(self, x: np.ndarray) -> np.ndarray:
        """H x (f, 3), where there is a preconditioner."""
        assert self._preconditioner is not None
        return product_here(self.matrix, as_records(x.reshape(-1)), self._preconditioner)

    def _lengths(self, vectors: np.ndarray) -> np.ndarray:
        """(copies,) of what each copy has of vectors (f, 3)."""
        lengths: np.ndarray = np.sqrt(self._sums(vectors, vectors))
        return lengths

    def _sums(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(copies,) a · b of each copy."""
        return np.bincount(self.of, np.einsum("fi,fi->f", a, b), self.copies)

    def _see(self, p: np.ndarray, product: np.ndarray | None = None) -> np.ndarray:
        """Remember the curvature along p (f, 3), of which H p is known or made; where the energy does not
        change along it, but for rounding (copies,)."""
        product = self._product(p) if product is None else product
        with np.errstate(all="ignore"):
            square, bent = self._sums(p, p), self._sums(p, product)
            known = (square > 0) & (square < np.inf)
            curvature = np.where(known, bent / square, np.inf)
        self.curvature = np.minimum(self.curvature, curvature)
        self.stable &= curvature >= -SINGULAR * self._stiffest
        return ~(square < np.inf) | (known & (np.abs(curvature) <= SINGULAR * self._stiffest))


def _sentence(found: Solved) -> str:
    if found.flat[0]:
        return (
            "The gradient does not exist: the function changes along a motion that costs no energy, such "
            "as that of a body that nothing holds, or at a point where it begins to buckle. Pin the body,"
            " or take a function that does not change along with it."
        )
    return (
        f"The gradient could not be computed: {found.solver} ended with a residual of "
        f"{found.residual[0]:.1e} after {found.iterations:,} iterations; the system is close to singular."
    )
