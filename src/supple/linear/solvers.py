"""Linear solvers for Newton's symmetric systems H x = b."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from scipy.sparse import bsr_matrix, csc_matrix, csr_matrix, triu
from scipy.sparse.linalg import splu

from supple.linear.assembly import Assembly
from supple.linear.block_rows import Threes
from supple.linear.conjugate_gradients import conjugate_gradients
from supple.linear.multilevel import Multilevel, NotPositive, as_records
from supple.linear.pcg import solve
from supple.linear.stationary import dense_qr, gauss_seidel, stabilised_gradients


class LinearSolver(Protocol):
    @property
    def name(self) -> str:
        """As shown to the user."""

    def solve(self, H: Threes, b: np.ndarray, accuracy: float) -> np.ndarray:
        """x with |H x - b| ≤ accuracy |b|, in a norm of its own; direct solvers ignore the accuracy. Kernels
        see the matrix and both vectors, records (f, 4). May raise `NotPositive`."""


class OnHost(ABC):
    """Solvers that know matrices of SciPy's: `solve_here`."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def solve(self, H: Threes, b: np.ndarray, accuracy: float) -> np.ndarray:
        matrix = self._assembly.here(H)
        self._assembly.problem.device.pull(b)
        if not np.isfinite(matrix.data).all():  # on which libraries may crash
            raise NotPositive
        return as_records(self.solve_here(matrix, b[:, :3].ravel(), accuracy))

    @abstractmethod
    def solve_here(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        """x (3 f,)."""


@cache
def _pardiso_prototype() -> Any:
    """A Pardiso solver to copy: making one searches the file system for MKL, which takes 0.2 s and more."""
    from pypardiso import PyPardisoSolver

    return PyPardisoSolver(mtype=-2)  # symmetric, possibly indefinite


def _pardiso() -> Any:
    solver = copy(_pardiso_prototype())
    solver.pt, solver.iparm = solver.pt.copy(), solver.iparm.copy()
    return solver


class Direct(OnHost):
    """A sparse factorisation: MKL Pardiso where pypardiso is installed, SciPy's SuperLU elsewhere."""

    def __init__(self, assembly: Assembly) -> None:
        super().__init__(assembly)
        self._pardiso = _pardiso() if find_spec("pypardiso") else None
        self.name = "MKL Pardiso" if self._pardiso else "SuperLU"

    def solve_here(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
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
    """Conjugate gradients preconditioned with aggregates of vertices as rigid bodies. slow: whether the last
    system took more iterations than it may."""

    name = "multilevel CG"

    def __init__(self, assembly: Assembly, patience: int = 5000) -> None:
        self._assembly, self._patience, self.slow = assembly, patience, False
        self._hierarchy = assembly.problem.shared("multilevel", lambda: Multilevel(assembly))

    def solve(self, H: Threes, b: np.ndarray, accuracy: float) -> np.ndarray:
        M = self._hierarchy.at(H, self._assembly.positions)
        solution, _ = solve(H, b, M, accuracy, 0.0, self._patience)
        if solution.negative is not None:
            raise NotPositive
        self.slow = solution.iterations == self._patience
        return solution.x


class ConjugateGradients(OnHost):
    """Conjugate gradients preconditioned with the diagonal blocks."""

    name = "block-Jacobi CG"

    def __init__(self, assembly: Assembly, limit: int | None = None) -> None:
        super().__init__(assembly)
        self._threads = assembly.problem.device.threads
        self._limit = limit or 20 * assembly.size

    def solve_here(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        return conjugate_gradients(H, b, accuracy, self._limit, self._threads)[0]


class GaussSeidel(OnHost):
    """Sweeps over the rows of the matrix, as PBNG's are over vertices, but with the forces linearised [PBNG
    section 11.1.3]."""

    name = "Gauss-Seidel"

    def __init__(self, assembly: Assembly, limit: int | None = None) -> None:
        super().__init__(assembly)
        self._limit = limit or 20 * assembly.size

    def solve_here(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        return gauss_seidel(H, b, accuracy, self._limit)


class StabilisedGradients(OnHost):
    """Biconjugate gradients, stabilised, for matrices that are not positive definite."""

    name = "BiCGSTAB"

    def __init__(self, assembly: Assembly, limit: int | None = None) -> None:
        super().__init__(assembly)
        self._limit = limit or 20 * assembly.size

    def solve_here(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        return stabilised_gradients(H, b, accuracy, self._limit)


class DenseQR(OnHost):
    """QR of the whole matrix, for small systems."""

    name = "dense QR"

    def solve_here(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
        return dense_qr(H, b)


class AlgebraicMultigrid(OnHost):
    """Conjugate gradients preconditioned with smoothed aggregation that knows the rigid motions."""

    name = "AMG CG"

    def __init__(self, assembly: Assembly) -> None:
        if not find_spec("pyamg"):
            raise ValueError("linear_solver='amg' needs pyamg: pip install 'supple[amg]'")
        super().__init__(assembly)
        self._rigid = assembly.unheld(rigid_motions(assembly.rest))

    def solve_here(self, H: bsr_matrix, b: np.ndarray, accuracy: float) -> np.ndarray:
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


def rigid_motions(points: np.ndarray, centred: bool = False) -> np.ndarray:
    """(3n, 6) translations and rotations about the centre: the near-null space of elasticity. centred: points
    are given from there."""
    x, y, z = (points if centred else points - points.mean(axis=0)).T
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
    "bicgstab": StabilisedGradients,
    "qr": DenseQR,
}

COUNTED: dict[str, Callable[[Assembly, int], LinearSolver]] = {
    "multilevel": MultilevelGradients,
    "cg": ConjugateGradients,
    "gauss_seidel": GaussSeidel,
    "bicgstab": StabilisedGradients,
}
"""Those that can be given a number of iterations."""

PATIENCE = 500
"""Iterations of multilevel conjugate gradients that cost about as much as a factorisation."""

PARDISO_LIMIT, SUPERLU_LIMIT = 150_000, 30_000
"""Unknowns up to which hard systems are factorised."""


class Automatic:
    """Multilevel conjugate gradients, which need the least time nearly everywhere, until a system proves
    hard; from then on another solver."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly, self._first = assembly, MultilevelGradients(assembly, PATIENCE)
        self._other: LinearSolver | None = None

    @property
    def name(self) -> str:
        return self._first.name + (f", then {self._other.name}" if self._other else "")

    def solve(self, H: Threes, b: np.ndarray, accuracy: float) -> np.ndarray:
        if self._other is None:
            x = self._first.solve(H, b, accuracy)
            if not self._first.slow:
                return x
            self._other = _for_hard_systems(self._assembly)
        return self._other.solve(H, b, accuracy)


def _for_hard_systems(assembly: Assembly) -> LinearSolver:
    if assembly.size <= (PARDISO_LIMIT if find_spec("pypardiso") else SUPERLU_LIMIT):
        return Direct(assembly)
    return AlgebraicMultigrid(assembly) if find_spec("pyamg") else ConjugateGradients(assembly)


def linear_solver(name: str, assembly: Assembly, iterations: int | None = None) -> LinearSolver:
    """The one of a name, "auto" for what is right where nothing is known about the systems; with a number of
    iterations, if one is given."""
    if iterations is not None:
        return COUNTED[name](assembly, iterations)
    return Automatic(assembly) if name == "auto" else LINEAR_SOLVERS[name](assembly)
