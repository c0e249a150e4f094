"""Lowest Hessian eigenmodes at an equilibrium; small eigenvalues indicate imminent buckling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from supple.config.backend import Backend
from supple.linear import Assembly, Matrix, Multilevel, NotPositive, add_gas_stiffness, pcg
from supple.model.model import Model, Step
from supple.postprocess.evaluate import restore_step
from supple.problem import Problem
from supple.solve.batch_solve import make_problem
from supple.solvers.newton_methods.active_set import active_set_problem

MAX_DENSE_SIZE = 600
"""Largest number of unknowns for which all eigenvalues are computed."""

PRECONDITIONER_SHIFT = 1e-9
"""Fraction of every vertex's stiffness that is added to the preconditioner, so that unconstrained bodies do
not make it singular."""

PRECONDITIONER_RESIDUAL = 1e-3
"""Relative residual after one application of the preconditioner."""

MAX_ITERATIONS = 200
"""Iteration limit; few problems need more than 30."""

EXACT, ROUNDINGS = 1e-5, 10
"""Convergence criteria of a mode p with residual r = H p - λ p: either √(r · H₊⁻¹ r / |λ|) is below the first
number, which bounds the relative error of λ despite stiff directions, or |r| is below this multiple of
rounding of the largest stiffness."""


@dataclass(frozen=True, eq=False)
class Mode:
    """Eigenmode of the Hessian.

    Attributes:
        eigenvalue: λ = p · H p / |p|² [N/m], negative if the energy decreases along the mode.
        vector: (n, 3) mode p with |p| = 1, zero along constrained directions.
    """

    eigenvalue: float
    vector: np.ndarray

    def __repr__(self) -> str:
        return f"Mode(eigenvalue={self.eigenvalue:.4g} N/m)"


def lowest_modes(model: Model, positions: np.ndarray, step: Step | None, count: int) -> tuple[Mode, ...]:
    """Compute the lowest eigenpairs of the Hessian by ascending eigenvalue.

    Vertices in contact with an obstacle stay on it.

    Args:
        model: Model.
        positions: (n, 3) positions [m].
        step: Step that led to the positions, or None.
        count: Number of modes.

    Raises:
        ValueError: The Hessian is infinite or NaN.
        RuntimeError: The iteration did not converge.
    """
    problem = _problem_at(model, positions, step)
    assembly = Assembly(problem)
    H = add_gas_stiffness(assembly, assembly.hessian("exact"))
    if not np.isfinite(H.data).all():
        raise ValueError("the lowest modes do not exist: the forces at these positions are infinite or NaN")
    count = min(count, assembly.size)
    few = assembly.size <= max(MAX_DENSE_SIZE, 6 * count)
    values, vectors = _solve_dense(assembly, H, count) if few else _solve_lobpcg(assembly, H, count)
    modes = []
    for value, vector in zip(values, vectors.T, strict=True):
        direction = np.zeros((problem.model.vertices, 3))
        direction[assembly.free] = vector.reshape(-1, 3)
        modes.append(Mode(float(value), direction))
    return tuple(modes)


def _problem_at(model: Model, positions: np.ndarray, step: Step | None) -> Problem:
    """Create a problem at given positions with active obstacle contacts constrained."""
    problem = make_problem(replace(model, dynamic_terms=(), velocities=None), True, Backend())
    restore_step(problem, model, step)
    problem.loads.set(model.force if step is None or step.force is None else step.force)
    problem.positions = positions
    if not problem.contacts:
        return problem
    problem.contacts.find(np.inf if step is None else step.time)
    return active_set_problem(problem)


def _solve_dense(assembly: Assembly, H: Matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Lowest eigenpairs by a dense eigenvalue solver, without constrained directions."""
    dense = H.toarray()
    free = assembly.unconstrained(np.eye(assembly.size))
    constrained = np.eye(assembly.size) - free
    max_stiffness = float(np.abs(dense).max(initial=0.0)) or 1.0
    dense = free @ dense @ free + 1e3 * assembly.size * max_stiffness * constrained
    count = min(count, round(float(np.trace(free))))
    return (
        eigh(0.5 * (dense + dense.T), subset_by_index=[0, count - 1])
        if count
        else (np.empty(0), dense[:, :0])
    )


def _solve_lobpcg(assembly: Assembly, H: Matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Lowest eigenpairs by LOBPCG [Knyazev 2001].

    Each iteration solves a Rayleigh-Ritz problem in the span of the modes, their preconditioned residuals and
    their last changes. The preconditioner is the inverse of the positive part of H.
    """
    solve, rounding = _preconditioner(assembly), ROUNDINGS * np.finfo(float).eps * np.abs(H.diagonal()).max()
    block = count + 4
    X = assembly.unconstrained(np.random.default_rng(0).normal(size=(assembly.size, block)))
    X = np.stack([solve(x) for x in X.T], axis=1)
    P = np.empty((assembly.size, 0))
    for _ in range(MAX_ITERATIONS):
        X = _orthonormal(X)
        values = np.einsum("ik,ik->k", X, H @ X)
        residual = assembly.unconstrained(H @ X - values * X)
        W = np.stack([solve(r) for r in residual.T], axis=1)
        error = np.einsum("ik,ik->k", residual, W)
        converged = (error <= EXACT**2 * np.abs(values)) | (np.linalg.norm(residual, axis=0) <= rounding)
        order = np.argsort(values)[:count]
        if converged[order].all():
            return values[order], X[:, order]
        basis = _orthonormal(np.concatenate([X, W, P], axis=1))
        _, mixed = eigh(basis.T @ (H @ basis), subset_by_index=[0, block - 1])
        new = basis @ mixed
        P, X = new - X @ (X.T @ new), new
    raise RuntimeError(
        f"the lowest modes did not converge in {MAX_ITERATIONS} iterations (the first eigenvalue is "
        f"at most {values[order[0]]:.4g} N/m). Eigenvalues close together converge slowly: request "
        f"more modes, e.g. count={2 * count}"
    )


def _orthonormal(X: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the span of vectors, without linearly dependent ones."""
    size = np.linalg.norm(X, axis=0)
    Q, R = np.linalg.qr(X[:, size > 0] / size[size > 0])
    return Q[:, np.abs(np.diag(R)) > 1e-12]


def _preconditioner(assembly: Assembly) -> Any:
    """Return a function r (3 f,) → approximately (H₊ + shift)⁻¹ r."""
    levels = Multilevel(assembly)
    for kind in ("projected", "bound"):
        positive = assembly.hessian(kind)
        own = positive.data[assembly.pattern.diagonal]
        shift = PRECONDITIONER_SHIFT * np.trace(own, axis1=1, axis2=2)
        positive.data[assembly.pattern.diagonal] = own + shift[:, None, None] * np.eye(3)
        try:
            M = levels.at(positive, assembly.positions)
        except NotPositive:
            continue
        return lambda r: assembly.unconstrained(pcg(positive, r, M, PRECONDITIONER_RESIDUAL).x)
    diagonal = np.abs(assembly.hessian("bound").diagonal())
    diagonal[diagonal == 0] = diagonal.max(initial=0.0) or 1.0
    return lambda r: assembly.unconstrained(r / diagonal)
