"""Linear solvers for symmetric Newton systems H x = b, selected by name.

Gauss-Seidel, BiCGSTAB and dense QR serve comparisons of the papers: they are slower, and accept indefinite
matrices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numba import njit
from scipy.linalg import qr, solve_triangular
from scipy.sparse import bsr_matrix, csc_matrix, csr_matrix, triu
from scipy.sparse.linalg import bicgstab, splu

from supple.linear.assembly.hessian import Assembly
from supple.linear.block_jacobi_cg import conjugate_gradients, inverse_diagonal
from supple.linear.block_matrix import Blocks3x3
from supple.linear.gas_system import GasSystem, gas_stiffness
from supple.linear.multilevel.preconditioner import Multilevel, NotPositive, as_records
from supple.linear.multilevel_cg import solve


class LinearSolver(Protocol):
    """Interface of linear solvers."""

    @property
    def name(self) -> str:
        """Display name of the solver."""

    def solve(self, H: Blocks3x3, b: np.ndarray, accuracy: float) -> np.ndarray:
        """Solve H x = b up to |H x - b| ≤ accuracy |b|, in a norm chosen by the solver.

        Args:
            H: Block matrix in device memory.
            b: (f, 4) right-hand side, padded vectors in device memory.
            accuracy: Relative accuracy, ignored by direct solvers.

        Returns:
            (f, 4) solution.

        Raises:
            NotPositive: H is not positive definite.
        """


class HostSolver(ABC):
    """Base class of solvers that run on the host with SciPy matrices; subclasses define `solve_on_host`."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def solve(self, H: Blocks3x3, b: np.ndarray, accuracy: float) -> np.ndarray:
        matrix = self._assembly.to_host(H)
        self._assembly.problem.device.download(b)
        if not np.isfinite(matrix.data).all():  # libraries may crash otherwise
            raise NotPositive
        return as_records(self.solve_on_host(matrix, b[:, :3].ravel(), accuracy))

    @abstractmethod
    def solve_on_host(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        """Solve H x = b for vectors (3 f,)."""


@cache
def _pardiso_prototype() -> Any:
    """Pardiso solver to copy: each construction searches the file system for MKL, at least 0.2 s."""
    from pypardiso import PyPardisoSolver

    return PyPardisoSolver(mtype=-2)  # symmetric, possibly indefinite


def _pardiso() -> Any:
    """Return a new Pardiso solver: a copy of the prototype, whose construction is slow."""
    solver = copy(_pardiso_prototype())
    solver.pt, solver.iparm = solver.pt.copy(), solver.iparm.copy()
    return solver


class Direct(HostSolver):
    """Sparse factorization: MKL Pardiso if pypardiso is installed, otherwise SciPy's SuperLU."""

    def __init__(self, assembly: Assembly) -> None:
        super().__init__(assembly)
        self._pardiso = _pardiso() if find_spec("pypardiso") else None
        self.name = "MKL Pardiso" if self._pardiso else "SuperLU"

    def solve_on_host(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        if self._pardiso is None:
            options = {"SymmetricMode": True}
            return splu(
                csc_matrix(H), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options
            ).solve(b)
        upper = csr_matrix(triu(H, format="csr"))
        upper.sort_indices()
        x = self._pardiso.solve(upper, b)
        self._pardiso.free_memory(everything=True)
        return x


class MultilevelGradients:
    """Conjugate gradients with multilevel preconditioner; `slow` is True after a solve at the iteration
    limit."""

    name = "multilevel CG"

    def __init__(self, assembly: Assembly, patience: int = 5000) -> None:
        self._assembly, self._patience, self.slow = assembly, patience, False
        self._hierarchy = assembly.problem.get_shared("multilevel", lambda: Multilevel(assembly))

    def solve(self, H: Blocks3x3, b: np.ndarray, accuracy: float) -> np.ndarray:
        M = self._hierarchy.at(H, self._assembly.positions)
        solution, _ = solve(H, b, M, accuracy, 0.0, self._patience)
        if solution.negative is not None:
            raise NotPositive
        self.slow = solution.iterations == self._patience
        return solution.x


class ConjugateGradients(HostSolver):
    """Conjugate gradients with block-Jacobi preconditioner."""

    name = "block-Jacobi CG"

    def __init__(self, assembly: Assembly, limit: int | None = None) -> None:
        super().__init__(assembly)
        self._threads = assembly.problem.device.threads
        self._limit = limit or 20 * assembly.size

    def solve_on_host(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        return conjugate_gradients(H, b, accuracy, self._limit, self._threads)[0]


class GaussSeidel(HostSolver):
    """Gauss-Seidel sweeps over the block rows: PBNG's sweeps with linearized forces [PBNG section 11.1.3]."""

    name = "Gauss-Seidel"

    def __init__(self, assembly: Assembly, limit: int | None = None) -> None:
        super().__init__(assembly)
        self._limit = limit or 20 * assembly.size

    def solve_on_host(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        return gauss_seidel(H, b, accuracy, self._limit)


class BiCGStab(HostSolver):
    """Stabilized biconjugate gradients, suitable for indefinite matrices."""

    name = "BiCGSTAB"

    def __init__(self, assembly: Assembly, limit: int | None = None) -> None:
        super().__init__(assembly)
        self._limit = limit or 20 * assembly.size

    def solve_on_host(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        return solve_bicgstab(H, b, accuracy, self._limit)


class DenseQR(HostSolver):
    """Dense QR factorization, for small systems."""

    name = "dense QR"

    def solve_on_host(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        return dense_qr(H, b)


class AlgebraicMultigrid(HostSolver):
    """Conjugate gradients with smoothed aggregation (pyamg) as preconditioner, given the rigid-body modes."""

    name = "AMG CG"

    def __init__(self, assembly: Assembly) -> None:
        if not find_spec("pyamg"):
            raise ValueError("linear_solver='amg' needs pyamg: pip install 'supple[amg]'")
        super().__init__(assembly)
        self._rigid = assembly.unconstrained(rigid_motions(assembly.rest))

    def solve_on_host(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        from pyamg import smoothed_aggregation_solver

        hierarchy = smoothed_aggregation_solver(
            H,
            B=self._rigid,
            symmetry="symmetric",
            strength=None,
            smooth=("jacobi", {"omega": 4 / 3, "weighting": "local"}),
            improve_candidates=None,
            max_coarse=50,
            coarse_solver="splu",
        )
        return hierarchy.solve(b, tol=accuracy, accel="cg", maxiter=500)


def rigid_motions(points: np.ndarray, centered: bool = False) -> np.ndarray:
    """Translations and rotations about the center: the near-null space of elasticity.

    Args:
        points: (n, 3) positions [m].
        centered: True if the positions are already relative to the center.

    Returns:
        (3n, 6) modes.
    """
    x, y, z = (points if centered else points - points.mean(axis=0)).T
    motions = np.zeros((len(points), 3, 6))
    motions[:, range(3), range(3)] = 1
    motions[:, 0, 4], motions[:, 0, 5] = z, -y
    motions[:, 1, 3], motions[:, 1, 5] = -z, x
    motions[:, 2, 3], motions[:, 2, 4] = y, -x
    return motions.reshape(-1, 6)


LINEAR_SOLVERS: dict[str, Callable[[Assembly], LinearSolver]] = {
    "multilevel": MultilevelGradients,
    "direct": Direct,
    "amg": AlgebraicMultigrid,
    "cg": ConjugateGradients,
    "gauss_seidel": GaussSeidel,
    "bicgstab": BiCGStab,
    "qr": DenseQR,
}

ITERATIVE_SOLVERS: dict[str, Callable[[Assembly, int], LinearSolver]] = {
    "multilevel": MultilevelGradients,
    "cg": ConjugateGradients,
    "gauss_seidel": GaussSeidel,
    "bicgstab": BiCGStab,
}
"""Solvers that accept a fixed number of iterations."""

WOODBURY_TOLERANCE = 1e-4
"""Relative accuracy of the solutions combined in the Woodbury formula for sealed gas."""

FACTORIZATION_ITERATIONS = 500
"""Number of multilevel conjugate gradient iterations with about the cost of a factorization."""

PARDISO_LIMIT, SUPERLU_LIMIT = 150_000, 30_000
"""Largest number of unknowns for which hard systems are factorized, by Pardiso and by SuperLU."""


class Automatic:
    """Multilevel conjugate gradients, usually the fastest, until a system proves hard; afterwards another
    solver."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly, self._first = assembly, MultilevelGradients(assembly, FACTORIZATION_ITERATIONS)
        self._other: LinearSolver | None = None

    @property
    def name(self) -> str:
        return self._first.name + (f", then {self._other.name}" if self._other else "")

    def solve(self, H: Blocks3x3, b: np.ndarray, accuracy: float) -> np.ndarray:
        if self._other is None:
            x = self._first.solve(H, b, accuracy)
            if not self._first.slow:
                return x
            self._other = _for_hard_systems(self._assembly)
        return self._other.solve(H, b, accuracy)


def _for_hard_systems(assembly: Assembly) -> LinearSolver:
    """Choose the second solver: a factorization up to the size limit, otherwise algebraic multigrid or plain
    CG."""
    if assembly.size <= (PARDISO_LIMIT if find_spec("pypardiso") else SUPERLU_LIMIT):
        return Direct(assembly)
    return AlgebraicMultigrid(assembly) if find_spec("pyamg") else ConjugateGradients(assembly)


class GasGradients:
    """Multilevel conjugate gradients for bodies with sealed gas, preconditioned by the positive part of H."""

    name = "multilevel CG with gas"

    def __init__(self, assembly: Assembly, patience: int = 5000) -> None:
        self._assembly, self._patience = assembly, patience

    def solve(self, H: Blocks3x3, b: np.ndarray, accuracy: float) -> np.ndarray:
        self._assembly.problem.device.download(b)
        system = GasSystem(self._assembly, H)
        result = system.solve(b[:, :3].ravel(), accuracy, 0.0, self._patience, in_energy_norm=False)
        if result.negative is not None and not result.x.any():
            raise NotPositive
        return as_records(result.x)


class WithGas:
    """Extend a linear solver to sealed gas: (H + G K Gᵀ)⁻¹ b = y - Z (I + K Gᵀ Z)⁻¹ K Gᵀ y with H y = b
    and H Z = G [Woodbury 1950]."""

    def __init__(self, assembly: Assembly, solver: LinearSolver) -> None:
        self._assembly, self._solver = assembly, solver

    @property
    def name(self) -> str:
        return f"{self._solver.name} with gas"

    def solve(self, H: Blocks3x3, b: np.ndarray, accuracy: float) -> np.ndarray:
        assembly, accuracy = self._assembly, min(accuracy, WOODBURY_TOLERANCE)
        G, K = gas_stiffness(assembly)
        y, *Z = (self._solver.solve(H, r, accuracy)[:, :3].ravel() for r in (b, *map(as_records, G)))
        columns = np.stack(Z, axis=1)
        x = y - columns @ np.linalg.solve(np.eye(len(K)) + K[:, None] * (G @ columns), K * (G @ y))
        return as_records(x)


def linear_solver(name: str, assembly: Assembly, iterations: int | None = None) -> LinearSolver:
    """Create a linear solver.

    Args:
        name: Key of `LINEAR_SOLVERS`, or "auto" for a choice by observed convergence.
        assembly: Assembly of the Hessian.
        iterations: Fixed number of iterations, for solvers in `ITERATIVE_SOLVERS`.
    """
    if not assembly.problem.gases:
        return _sparse_solver(name, assembly, iterations)
    if name == "auto" or name == "multilevel":
        return GasGradients(assembly, *([] if iterations is None else [iterations]))
    return WithGas(assembly, _sparse_solver(name, assembly, iterations))


def _sparse_solver(name: str, assembly: Assembly, iterations: int | None) -> LinearSolver:
    """Create a linear solver for the sparse part of the Hessian."""
    if iterations is not None:
        return ITERATIVE_SOLVERS[name](assembly, iterations)
    return Automatic(assembly) if name == "auto" else LINEAR_SOLVERS[name](assembly)


LARGEST_QR = 6000
"""Largest number of unknowns n for dense QR: it takes 24 n² bytes and about n³ operations."""


@njit(cache=True)
def _sweep(indptr, indices, blocks, inverse, b, x):
    """xᵢ += Dᵢ⁻¹ (bᵢ - Σ Hᵢⱼ xⱼ) for all i in turn; returns |b - H x|² as measured during the sweep."""
    squared_residual = 0.0
    for i in range(len(inverse)):
        r0, r1, r2 = b[3 * i], b[3 * i + 1], b[3 * i + 2]
        for k in range(indptr[i], indptr[i + 1]):
            j, B = 3 * indices[k], blocks[k]
            r0 -= B[0, 0] * x[j] + B[0, 1] * x[j + 1] + B[0, 2] * x[j + 2]
            r1 -= B[1, 0] * x[j] + B[1, 1] * x[j + 1] + B[1, 2] * x[j + 2]
            r2 -= B[2, 0] * x[j] + B[2, 1] * x[j + 1] + B[2, 2] * x[j + 2]
        squared_residual += r0 * r0 + r1 * r1 + r2 * r2
        D = inverse[i]
        for a in range(3):
            x[3 * i + a] += D[a, 0] * r0 + D[a, 1] * r1 + D[a, 2] * r2
    return squared_residual


def gauss_seidel(H: bsr_matrix, b: np.ndarray, accuracy: float, sweeps: int) -> np.ndarray:
    """Solve H x = b by Gauss-Seidel sweeps over 3×3 blocks from x = 0.

    Args:
        H: Matrix of 3×3 blocks.
        b: (3 f,) right-hand side.
        accuracy: Tolerance of |H x - b| relative to |b|.
        sweeps: Maximum number of sweeps.
    """
    inverse, x, target = inverse_diagonal(H), np.zeros_like(b), accuracy**2 * (b @ b)
    for _ in range(sweeps):
        left = _sweep(H.indptr, H.indices, H.data, inverse, b, x)
        if left <= target or not np.isfinite(left):
            break
    return x


def solve_bicgstab(H: bsr_matrix, b: np.ndarray, accuracy: float, iterations: int) -> np.ndarray:
    """Solve H x = b by BiCGSTAB from x = 0 without preconditioner."""
    return np.asarray(bicgstab(H.tocsr(), b, rtol=accuracy, atol=0.0, maxiter=iterations)[0])


def dense_qr(H: bsr_matrix, b: np.ndarray) -> np.ndarray:
    """Solve H x = b by H = Q R."""
    if len(b) > LARGEST_QR:
        raise ValueError(
            f"linear_solver='qr' supports up to {LARGEST_QR:,} unknowns, got {len(b):,}; use 'direct' for "
            "larger systems"
        )
    Q, R = qr(H.toarray(), mode="economic")
    return solve_triangular(R, Q.T @ b)
