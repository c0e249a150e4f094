"""Systems of bodies with sealed gas: H + Σ k g gᵀ, g = ∂V/∂x and k = γ P/V of every chamber.

The rank-one blocks couple all vertices of a chamber and are never assembled. Matrix-vector products add them,
and the preconditioner includes them by the Woodbury identity where the accuracy matters: without them, its
norm of the residual would measure the gas instead of the walls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import bsr_matrix

from supple.linear.block_matrix import Blocks3x3
from supple.linear.multilevel.preconditioner import Multilevel, NotPositive, Preconditioner

if TYPE_CHECKING:
    from supple.linear.assembly.hessian import Assembly

MIN_CURVATURE = 1e-14
"""p · Hp counts as negative below this part of r · Mr: rounding could have made it positive."""

MAX_WIDENINGS = 5
"""Number of times that the smoother of an indefinite preconditioner is damped more strongly."""


class GasMatrix(NamedTuple):
    """H + Σ k g gᵀ.

    Attributes:
        sparse: H (3 f, 3 f).
        gradients: g = ∂V/∂u (chambers, 3 f) [m²].
        stiffness: k = γ P/V (chambers,) [Pa/m³].
    """

    sparse: bsr_matrix
    gradients: np.ndarray
    stiffness: np.ndarray

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        added = self.gradients.T @ (self.stiffness * (self.gradients @ x).T).T
        product: np.ndarray = self.sparse @ x + added
        return product

    @property
    def data(self) -> np.ndarray:
        """All numbers of the matrix, for checks of finiteness."""
        return np.concatenate([self.sparse.data.ravel(), self.gradients.ravel(), self.stiffness])

    def diagonal(self) -> np.ndarray:
        diagonal: np.ndarray = self.sparse.diagonal() + self.stiffness @ self.gradients**2
        return diagonal

    def toarray(self) -> np.ndarray:
        dense: np.ndarray = self.sparse.toarray() + self.gradients.T @ (
            self.stiffness[:, None] * self.gradients
        )
        return dense


Matrix = GasMatrix | bsr_matrix

Operator = Callable[[np.ndarray], np.ndarray]
"""Linear map of a vector (3 f,)."""


def add_gas_stiffness(assembly: Assembly, H: bsr_matrix) -> Matrix:
    """Add the rank-one stiffness of sealed gas at the problem's u to a Hessian."""
    return GasMatrix(H, *gas_stiffness(assembly)) if assembly.problem.gases else H


def gas_stiffness(assembly: Assembly) -> tuple[np.ndarray, np.ndarray]:
    """Return g = ∂V/∂u (chambers, 3 f) [m²] of the free vertices and k = γ P/V (chambers,) [Pa/m³]."""
    chambers = assembly.problem.gases.stiffness()
    gradients = np.stack([assembly.unconstrained(g[assembly.free].ravel()) for g, _ in chambers])
    return gradients, np.array([k for _, k in chambers])


DIAGONAL_SHIFT = 1e-5
"""Diagonal shift of the preconditioner, relative to the stiffness of each vertex. Without it, rounding of the
rigid motions of free bodies in single precision makes the preconditioner indefinite."""


class Gradients(NamedTuple):
    """Result of conjugate gradients.

    Attributes:
        x: Solution (3 f,) ≈ H⁻¹ b.
        iterations: Number of iterations.
        negative: Last direction p, if p · Hp ≤ 0, otherwise None.
    """

    x: np.ndarray
    iterations: int
    negative: np.ndarray | None


class GasSystem:
    """Linear system with sealed gas, solved by preconditioned conjugate gradients.

    The preconditioner is that of the positive part of H, or of its bound: walls that only the gas supports
    may have an indefinite H.
    """

    def __init__(
        self, assembly: Assembly, matrix: Blocks3x3, without: Callable[[np.ndarray], np.ndarray] = lambda v: v
    ) -> None:
        """Assemble the system.

        Args:
            assembly: Assembly of the problem.
            matrix: Sparse part of the Hessian, copied.
            without: Projection that removes free rigid motions from a vector (3 f,).
        """
        self._assembly, self._without = assembly, without
        self.matrix = add_gas_stiffness(assembly, assembly.to_host(matrix))
        self._hierarchy: Multilevel = assembly.problem.get_shared("multilevel", lambda: Multilevel(assembly))
        self._variants, self._widen_count = ["bound", "projected"], 0
        self._M: Preconditioner | None = None

    def solve(
        self, b: np.ndarray, accuracy: float, floor: float, iterations: int, in_energy_norm: bool = True
    ) -> Gradients:
        """Solve H x = b until √(r·Mr) falls to `accuracy` times its initial value, or |r| to `floor`.

        Args:
            b: Right side (3 f,) [N].
            accuracy: Relative accuracy of x.
            floor: Norm of the residual that suffices [N]; 0 for none.
            iterations: Iteration limit.
            in_energy_norm: True to include the gas in M, so that √(r·Mr) is about the error of x in the
                energy norm. Without it, x may lack directions along which slack walls have almost no
                stiffness, along which Newton steps are too long.

        Raises:
            NotPositive: No preconditioner is positive definite.
        """
        b = self._without(b)
        for _ in range(2 * MAX_WIDENINGS):
            M = self._M = self._M or self._preconditioner()
            apply: Operator = M
            if in_energy_norm and isinstance(self.matrix, GasMatrix):
                apply = with_gas(M, self.matrix)
            solution = _gradients(self.matrix, b, apply, accuracy, floor, iterations, self._without)
            if solution is not None:
                return solution
            self._widen_count += 1
            M.widen()
            if self._widen_count == MAX_WIDENINGS:
                self._M = None
        raise NotPositive

    def _preconditioner(self) -> Preconditioner:
        self._widen_count = 0
        while self._variants:
            try:
                matrix = shift_matrix(self._assembly, self._variants.pop())
                return self._hierarchy.at(matrix, self._assembly.positions)
            except NotPositive:
                continue
        raise NotPositive


def shift_matrix(assembly: Assembly, kind: str) -> Blocks3x3:
    """Assemble a Hessian variant with shifted diagonal blocks."""
    matrix = assembly.matrix(kind)
    device, diagonal = assembly.problem.device, assembly.pattern.diagonal
    device.download(matrix.blocks)
    own = matrix.blocks[diagonal]
    shift = DIAGONAL_SHIFT * np.trace(own, axis1=1, axis2=2)
    matrix.blocks[diagonal] = own + shift[:, None, None] * np.eye(3)
    device.upload(matrix.blocks)
    return matrix


def with_gas(M: Operator, matrix: GasMatrix) -> Operator:
    """Add the stiffness of the gas to a preconditioner M ≈ H⁻¹ of the walls.

    By the Woodbury identity, (M⁻¹ + G Gᵀ)⁻¹ = M - M G (I + Gᵀ M G)⁻¹ Gᵀ M with G = (√k₁ g₁, √k₂ g₂, ...).
    Returns M itself if rounding makes the small matrix indefinite.
    """
    G = np.sqrt(matrix.stiffness)[:, None] * matrix.gradients
    moved = np.stack([M(g) for g in G])
    small = G @ moved.T
    try:
        factor = cho_factor(0.5 * (small + small.T) + np.eye(len(G)))
    except (LinAlgError, ValueError):  # not positive definite, or not finite
        return M

    def apply(r: np.ndarray) -> np.ndarray:
        product: np.ndarray = M(r) - cho_solve(factor, moved @ r) @ moved
        return product

    return apply


def _gradients(
    H: Matrix,
    r: np.ndarray,
    M: Operator,
    accuracy: float,
    floor: float,
    iterations: int,
    without: Callable[[np.ndarray], np.ndarray],
) -> Gradients | None:
    """Conjugate gradients of `GasSystem.solve`; None if M is not positive definite."""
    x, z = np.zeros_like(r), without(M(r))
    p, rz = z, float(r @ z)
    enough = accuracy**2 * rz
    for k in range(iterations):
        if not r.any() or (floor > 0 and math.sqrt(float(r @ r)) <= floor):
            return Gradients(x, k, None)
        if not rz > 0:
            return None
        q = without(H @ p)
        curvature = float(p @ q)
        if not curvature > MIN_CURVATURE * rz:
            return Gradients(x, k, p)
        x, r = x + rz / curvature * p, r - rz / curvature * q
        z = without(M(r))
        before, rz = rz, float(r @ z)
        if abs(rz) <= enough:
            return Gradients(x, k + 1, None)
        p = z + rz / before * p
    return Gradients(x, iterations, None)
