"""Systems with the load stiffness of tractions that follow their surface: T x = b, T = H - K, K = ∂f/∂u.

T is not symmetric where the surface is open. GMRES [Saad and Schultz 1986] with the multilevel preconditioner
of H solves it; where that fails, a factorization of T does, up to a size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix, coo_array, csc_matrix
from scipy.sparse.linalg import splu

from supple.linear.gas_system import GasMatrix, Matrix, add_gas_stiffness, shift_matrix
from supple.linear.multilevel.preconditioner import Multilevel, NotPositive, Preconditioner

if TYPE_CHECKING:
    from supple.linear.assembly.hessian import Assembly

RESTART_LENGTH = 50
"""Krylov vectors that are kept."""

MAX_FACTORIZED = 45_000
"""Largest number of unknowns for a sparse factorization of T."""

MAX_GMRES_ITERATIONS = 150
"""Most iterations of GMRES where a factorization is possible."""


class FollowerSolution(NamedTuple):
    """Result of `FollowerSystem.solve`.

    Attributes:
        x: Solution (3 f,).
        iterations: Number of iterations, 0 for a factorization.
    """

    x: np.ndarray
    iterations: int


class FollowerSystem:
    """Linear system of the tangent T = H - K at the problem's u, with that of sealed gas in H.

    Attributes:
        matrix: T.
        without: Projection that removes free rigid motions from a vector (3 f,), or None if there are none.
    """

    def __init__(self, assembly: Assembly) -> None:
        """Assemble the system; raises NotPositive if H is not finite."""
        self._assembly = assembly
        self.without: Callable[[np.ndarray], np.ndarray] | None = None
        H = assembly.hessian("exact")
        if not np.isfinite(H.data).all():
            raise NotPositive
        self.matrix = _subtract(add_gas_stiffness(assembly, H), load_stiffness(assembly))
        self._hierarchy: Multilevel = assembly.problem.get_shared("multilevel", lambda: Multilevel(assembly))
        self._M: Preconditioner | None = None
        self._direct = False

    def solve(self, b: np.ndarray, accuracy: float, iterations: int) -> FollowerSolution:
        """Solve T x = b until |M (b - T x)| ≤ accuracy |M b|.

        Raises:
            NotPositive: The system could not be solved to that accuracy.
        """
        project = self.without or (lambda v: v)
        T, done = self.matrix, 0
        factorizes = self.without is None and isinstance(T, bsr_matrix) and len(b) <= MAX_FACTORIZED
        if not self._direct:
            most = min(iterations, MAX_GMRES_ITERATIONS) if factorizes else iterations
            M = self._M = self._M or self._preconditioner()
            x, done, left = gmres(T, project(b), lambda v: project(M(v)), accuracy, most)
            if left <= accuracy:
                return FollowerSolution(x, done)
        if not factorizes:
            raise NotPositive
        self._direct = True
        try:
            x = splu(csc_matrix(T)).solve(b)  # type: ignore[arg-type]
        except RuntimeError as singular:
            raise NotPositive from singular
        if not np.isfinite(x).all():
            raise NotPositive
        return FollowerSolution(x, done)

    def _preconditioner(self) -> Preconditioner:
        """Preconditioner of H, or of H with a diagonal shift if there are free rigid motions."""
        assembly = self._assembly
        for kind in ("exact", "projected", "bound"):
            try:
                matrix = assembly.matrix(kind) if self.without is None else shift_matrix(assembly, kind)
                return self._hierarchy.at(matrix, assembly.positions)
            except NotPositive:
                continue
        raise NotPositive


def _subtract(H: Matrix, K: bsr_matrix) -> Matrix:
    if isinstance(H, GasMatrix):
        return H._replace(sparse=H.sparse - K)
    return H - K


def load_stiffness(assembly: Assembly) -> bsr_matrix:
    """K (3 f, 3 f) [N/m] of the free vertices at the problem's u, without constrained directions."""
    problem, free = assembly.problem, assembly.free
    number = np.full(problem.model.vertices, -1)
    number[free] = np.arange(len(free))
    rows, columns, blocks = [], [], []
    for triangles, each in problem.follower_loads.stiffness():
        corners = number[triangles]
        for a in range(3):
            for b in range(3):
                inside = (corners[:, a] >= 0) & (corners[:, b] >= 0)
                rows.append(corners[inside, a])
                columns.append(corners[inside, b])
                blocks.append(each[inside, b])
    i, j, K = (np.concatenate(parts) for parts in (rows, columns, blocks))
    axes = np.arange(3)
    indices = np.broadcast_arrays(3 * i[:, None, None] + axes[:, None], 3 * j[:, None, None] + axes)
    size = (assembly.size, assembly.size)
    sparse = coo_array((K.ravel(), tuple(p.ravel() for p in indices)), shape=size).tocsr()
    P = _unconstrained_projector(assembly)
    return bsr_matrix(sparse if P is None else P @ sparse @ P, blocksize=(3, 3))


def _unconstrained_projector(assembly: Assembly) -> bsr_matrix | None:
    """Projection (3 f, 3 f) onto the unconstrained directions; None if no direction is constrained."""
    model, free = assembly.problem.model, assembly.free
    if model.constraint_projection is None:
        return None
    every = np.broadcast_to(np.eye(3)[:, None], (3, model.vertices, 3))
    blocks = np.ascontiguousarray(model.unconstrained(every)[:, free].transpose(1, 2, 0))
    return bsr_matrix((blocks, np.arange(len(free)), np.arange(len(free) + 1)))


def gmres(
    T: Matrix, b: np.ndarray, M: Callable[[np.ndarray], np.ndarray], accuracy: float, iterations: int
) -> tuple[np.ndarray, int, float]:
    """Solve M T x = M b by restarted GMRES from x = 0.

    Args:
        T: Matrix.
        b: Right-hand side.
        M: Preconditioner.
        accuracy: Tolerance of |M (b - T x)| relative to |M b|.
        iterations: Iteration limit.

    Returns:
        x, the number of iterations, and the remaining residual |M (b - T x)| / |M b|.
    """
    x, r = np.zeros_like(b), M(b)
    first = size = _norm(r)
    done = 0
    while size > accuracy * first and done < iterations:
        count = min(RESTART_LENGTH, iterations - done)
        V, h = np.zeros((count + 1, len(b))), np.zeros((count + 1, count))
        V[0] = r / size
        for k in range(count):
            w = M(T @ V[k])
            for _ in range(2):  # twice is enough
                along = V[: k + 1] @ w
                w -= along @ V[: k + 1]
                h[: k + 1, k] += along
            h[k + 1, k] = _norm(w)
            done += 1
            y, left = _least_squares(h[: k + 2, : k + 1], size)
            if left <= 0.9 * accuracy * first or not h[k + 1, k] > 0:
                break
            V[k + 1] = w / h[k + 1, k]
        x = x + y @ V[: len(y)]
        r = M(b - T @ x)
        before, size = size, _norm(r)
        if not size < before:
            break
    return x, done, size / first if first else 0.0


def _least_squares(h: np.ndarray, size: float) -> tuple[np.ndarray, float]:
    """y that minimizes |size e₁ - h y|, and that minimum."""
    right = np.zeros(len(h))
    right[0] = size
    y = np.linalg.lstsq(h, right, rcond=None)[0]
    return y, _norm(right - h @ y)


def _norm(v: np.ndarray) -> float:
    return float(np.sqrt(np.square(v).sum()))
