"""Symmetric linear systems H x = b with the Hessian at a problem's u, definite or not."""

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
from supple.linear.multilevel.hierarchy import as_records
from supple.problem import Problem
from supple.problem.diagnostics import stiffness_of

ITERATIONS = 2000
"""Iteration limit of conjugate gradients."""

REFINEMENTS = 3
"""Maximum number of iterative refinements."""

MOST_FACTORIZED = 60_000
"""Largest number of unknowns for the factorization of an indefinite matrix; beyond, MINRES."""

SINGULAR = 1e-12
"""Curvature regarded as 0, relative to the largest vertex stiffness."""

UNSOLVED = 1e-5
"""Relative residual above which a system counts as unsolved."""

PROBED = 1e-2
"""Tolerance of the solve with a random right-hand side that searches for negative curvature."""


class Solved(NamedTuple):
    """Solution of a system.

    Attributes:
        x: (f, 3) solution.
        residual: (batch,) |H x - b|/|b| of each batch member.
        solver: Name of the linear solver.
        iterations: Number of iterations.
        flat: (batch,) True if the energy is constant along x up to rounding.
    """

    x: np.ndarray
    residual: np.ndarray
    solver: str
    iterations: int
    flat: np.ndarray


class System:
    """Linear system with H at the problem's u at construction.

    The problem may consist of independent batch members, each of which is solved to its own tolerance.

    Attributes:
        copies: Number of batch members.
        of: (f,) batch member of each row.
        stable: (batch,) True while no negative curvature was observed.
        curvature: (batch,) smallest observed p · H p / |p|² [N/m].
    """

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
        """Search for negative curvature along the solution for a random right-hand side."""
        if self._preconditioner is not None:
            found = self._gradients(self.problem.shared("noise", self._noise), PROBED)
            self._see(self._here(found.x if found.negative is None else found.negative))

    def solve(self, b: np.ndarray, accuracy: float) -> Solved:
        """Solve H x = b.

        Args:
            b: (f, 3) right-hand side, in matrix order.
            accuracy: Relative residual.

        Returns:
            Solution; in a batch, unsolved members have infinite residuals.

        Raises:
            NoGradientError: The system of a single member cannot be solved.
        """
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
        """Fixed random right-hand side (f, 4), with components in all directions."""
        return as_records(np.random.default_rng(0).normal(size=self.assembly.size))

    def _gradients(self, b: np.ndarray, accuracy: float) -> Solution:
        """Conjugate gradients for padded vectors b (f, 4)."""
        M = self._preconditioner
        assert M is not None
        if self.copies == 1:
            return solve(self.matrix, b, M, accuracy, 0.0, ITERATIONS)[0]
        return solve_apart(self.matrix, b, M, accuracy, ITERATIONS, self.of)[0]

    def _iterated(self, b: np.ndarray, accuracy: float) -> Solved | None:
        """Solve by conjugate gradients with iterative refinement; None for negative curvature."""
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
        """Solve by a pivoted factorization, or by MINRES for large systems; single member only."""
        if len(right) > MOST_FACTORIZED:
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
        """H as a host matrix."""
        return self.assembly.here(self.matrix)

    def _here(self, records: np.ndarray) -> np.ndarray:
        """(f, 3) vectors on the host."""
        self.problem.device.download(records)
        return records[:, :3].copy()

    def _product(self, x: np.ndarray) -> np.ndarray:
        """H x (f, 3); requires the preconditioner."""
        assert self._preconditioner is not None
        return product_here(self.matrix, as_records(x.reshape(-1)), self._preconditioner)

    def _lengths(self, vectors: np.ndarray) -> np.ndarray:
        """(batch,) norms of vectors (f, 3) per batch member."""
        lengths: np.ndarray = np.sqrt(self._sums(vectors, vectors))
        return lengths

    def _sums(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(batch,) a · b per batch member."""
        return np.bincount(self.of, np.einsum("fi,fi->f", a, b), self.copies)

    def _see(self, p: np.ndarray, product: np.ndarray | None = None) -> np.ndarray:
        """Record the curvature along p (f, 3).

        Args:
            p: (f, 3) direction.
            product: H p, if known.

        Returns:
            (batch,) True if the energy is constant along p up to rounding.
        """
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
