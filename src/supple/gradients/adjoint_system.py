"""Symmetric linear systems H x = b with the Hessian at a problem's u, definite or not."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix, csc_matrix
from scipy.sparse.linalg import minres, splu

from supple.gradients.gradient_report import NoGradientError
from supple.linear import (
    Assembly,
    Multilevel,
    NotPositive,
    Preconditioner,
    Solution,
    host_product,
    solve,
    solve_per_body,
)
from supple.linear.multilevel.preconditioner import as_records
from supple.problem import Problem
from supple.problem.diagnostics import stiffness_of

MAX_ITERATIONS = 2000
"""Iteration limit of conjugate gradients."""

MAX_REFINEMENTS = 3
"""Maximum number of iterative refinements."""

MAX_FACTORIZED = 60_000
"""Largest number of unknowns for the factorization of an indefinite matrix; beyond, MINRES."""

CURVATURE_TOLERANCE = 1e-12
"""Curvature regarded as 0, relative to the largest vertex stiffness."""

MAX_RESIDUAL = 1e-5
"""Relative residual above which a system counts as unsolved."""

PROBE_TOLERANCE = 1e-2
"""Tolerance of the solve with a random right-hand side that searches for negative curvature."""


class SystemSolution(NamedTuple):
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
        batch_size: Number of batch members.
        member_of_row: (f,) batch member of each row.
        stable: (batch,) True while no negative curvature was observed.
        curvature: (batch,) smallest observed p · H p / |p|² [N/m].
    """

    def __init__(self, problem: Problem, batch_size: int = 1) -> None:
        self.problem, self.batch_size = problem, batch_size
        self.assembly: Assembly = problem.get_shared("assembly", lambda: Assembly(problem))
        levels: Multilevel = problem.get_shared("multilevel", lambda: Multilevel(self.assembly))
        self.member_of_row = self.assembly.free // max(1, problem.model.vertices // batch_size)
        self.curvature, self.stable = np.full(batch_size, np.inf), np.ones(batch_size, bool)
        if not problem.balance().finite:
            raise NoGradientError(
                "The gradient does not exist: the forces of this state are infinite or NaN. "
                "Differentiate a converged result; smaller load steps may help."
            )
        self._max_stiffness = np.zeros(batch_size)
        np.maximum.at(
            self._max_stiffness, self.member_of_row, 3 * stiffness_of(problem.diagnostics)[self.assembly.free]
        )
        self.matrix = self.assembly.matrix("exact")
        self._preconditioner: Preconditioner | None = None
        try:
            self._preconditioner = levels.at(self.matrix, self.assembly.positions)
        except NotPositive:
            self.stable[:] = False

    def probe(self) -> None:
        """Search for negative curvature along the solution for a random right-hand side."""
        if self._preconditioner is not None:
            solution = self._conjugate_gradients(
                self.problem.get_shared("noise", self._noise), PROBE_TOLERANCE
            )
            self._record_curvature(
                self._download(solution.x if solution.negative is None else solution.negative)
            )

    def solve(self, b: np.ndarray, accuracy: float) -> SystemSolution:
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
            exact = np.zeros(self.batch_size)
            return SystemSolution(np.zeros_like(b), exact, "none needed", 0, exact > 0)
        solution = self._solve_iteratively(b, accuracy)
        if self.batch_size > 1:
            infinite = np.full(self.batch_size, np.inf)
            return solution or SystemSolution(np.zeros_like(b), infinite, "none", 0, infinite < 0)
        if solution is None or not solution.residual[0] <= MAX_RESIDUAL:
            solution = self._solve_directly(b.reshape(-1), accuracy)
        if solution.flat[0] or not solution.residual[0] <= MAX_RESIDUAL:
            raise NoGradientError(_error_message(solution))
        return solution

    def _noise(self) -> np.ndarray:
        """Fixed random right-hand side (f, 4), with components in all directions."""
        return as_records(np.random.default_rng(0).normal(size=self.assembly.size))

    def _conjugate_gradients(self, b: np.ndarray, accuracy: float) -> Solution:
        """Conjugate gradients for padded vectors b (f, 4)."""
        M = self._preconditioner
        assert M is not None
        if self.batch_size == 1:
            return solve(self.matrix, b, M, accuracy, 0.0, MAX_ITERATIONS)[0]
        return solve_per_body(self.matrix, b, M, accuracy, MAX_ITERATIONS, self.member_of_row)[0]

    def _solve_iteratively(self, b: np.ndarray, accuracy: float) -> SystemSolution | None:
        """Solve by conjugate gradients with iterative refinement; None for negative curvature."""
        x, remainder, iterations = np.zeros_like(b), b, 0
        size = self._lengths(b)
        size[size == 0] = 1.0
        for _ in range(MAX_REFINEMENTS if self._preconditioner is not None else 0):
            solution = self._conjugate_gradients(as_records(remainder.reshape(-1)), 0.1 * accuracy)
            iterations += solution.iterations
            if solution.negative is not None:
                self._record_curvature(self._download(solution.negative))
                return None
            x = x + self._download(solution.x)
            product = self._product(x)
            remainder = b - product
            if (self._lengths(remainder) <= accuracy * size).all():
                break
        if not iterations:
            return None
        residual = self._lengths(remainder) / size
        return SystemSolution(x, residual, "multilevel CG", iterations, self._record_curvature(x, product))

    def _solve_directly(self, right: np.ndarray, accuracy: float) -> SystemSolution:
        """Solve by a pivoted factorization, or by MINRES for large systems; single member only."""
        if len(right) > MAX_FACTORIZED:
            diagonal = 1 / np.maximum(np.abs(self._hessian.diagonal()), 1e-300)
            root = np.sqrt(diagonal)
            from scipy.sparse.linalg import LinearOperator

            scaled = LinearOperator(self._hessian.shape, lambda v: root * (self._hessian @ (root * v)))
            steps: list[int] = []
            x, _ = minres(
                scaled, root * right, rtol=accuracy, maxiter=20_000, callback=lambda _: steps.append(1)
            )
            x, name, iterations = root * x, "MINRES", len(steps)
        else:
            name, iterations = "SuperLU", 1
            try:
                x = splu(csc_matrix(self._hessian)).solve(right)
            except RuntimeError:  # exactly singular
                x = np.full_like(right, np.inf)
        with np.errstate(all="ignore"):
            product = self._hessian @ x
            residual = float(np.linalg.norm(product - right)) / float(np.linalg.norm(right))
            flat = self._record_curvature(x.reshape(-1, 3), product.reshape(-1, 3))
        residuals = np.array([residual if np.isfinite(residual) else np.inf])
        return SystemSolution(x.reshape(-1, 3), residuals, name, iterations, flat)

    @cached_property
    def _hessian(self) -> bsr_matrix:
        """H as a host matrix."""
        return self.assembly.to_host(self.matrix)

    def _download(self, records: np.ndarray) -> np.ndarray:
        """(f, 3) vectors on the host."""
        self.problem.device.download(records)
        return records[:, :3].copy()

    def _product(self, x: np.ndarray) -> np.ndarray:
        """H x (f, 3); requires the preconditioner."""
        assert self._preconditioner is not None
        return host_product(self.matrix, as_records(x.reshape(-1)), self._preconditioner)

    def _lengths(self, vectors: np.ndarray) -> np.ndarray:
        """(batch,) norms of vectors (f, 3) per batch member."""
        lengths: np.ndarray = np.sqrt(self._sums(vectors, vectors))
        return lengths

    def _sums(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(batch,) a · b per batch member."""
        return np.bincount(self.member_of_row, np.einsum("fi,fi->f", a, b), self.batch_size)

    def _record_curvature(self, p: np.ndarray, product: np.ndarray | None = None) -> np.ndarray:
        """Record the curvature along p (f, 3).

        Args:
            p: (f, 3) direction.
            product: H p, if known.

        Returns:
            (batch,) True if the energy is constant along p up to rounding.
        """
        product = self._product(p) if product is None else product
        with np.errstate(all="ignore"):
            square, work = self._sums(p, p), self._sums(p, product)
            is_finite = (square > 0) & (square < np.inf)
            curvature = np.where(is_finite, work / square, np.inf)
        self.curvature = np.minimum(self.curvature, curvature)
        self.stable &= curvature >= -CURVATURE_TOLERANCE * self._max_stiffness
        return ~(square < np.inf) | (
            is_finite & (np.abs(curvature) <= CURVATURE_TOLERANCE * self._max_stiffness)
        )


def _error_message(solution: SystemSolution) -> str:
    if solution.flat[0]:
        return (
            "The gradient does not exist: the function changes along a motion that costs no energy, "
            "such as the rigid motion of an unsupported body, or a buckling mode at its critical "
            "load. Pin the body, or use a function that is constant along this motion."
        )
    return (
        f"The gradient could not be computed: {solution.solver} ended with a residual of "
        f"{solution.residual[0]:.1e} after {solution.iterations:,} iterations; the system is close to "
        f"singular."
    )
