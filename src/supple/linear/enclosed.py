"""Systems of bodies with sealed gas: H + Σ k g gᵀ, g = ∂V/∂x and k = γ P/V of every chamber.

The parts of one rank couple all vertices of a chamber. They are never assembled: products have them in
addition, and conjugate gradients need about one iteration more for each chamber.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix

from supple.linear.block_rows import Threes
from supple.linear.multilevel import Multilevel, NotPositive, Preconditioner

if TYPE_CHECKING:
    from supple.linear.assembly import Assembly

FLAT = 1e-14
"""p · Hp counts as negative below this part of r · Mr: rounding could have made it positive."""

WIDENINGS = 5
"""How often a preconditioner is made more cautious that is not positive."""


class Enclosed(NamedTuple):
    """H + Σ k g gᵀ: sparse: H (3 f, 3 f); gradients (chambers, 3 f): g [m²]; stiffness (chambers,): k."""

    sparse: bsr_matrix
    gradients: np.ndarray
    stiffness: np.ndarray

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        added = self.gradients.T @ (self.stiffness * (self.gradients @ x).T).T
        product: np.ndarray = self.sparse @ x + added
        return product

    @property
    def data(self) -> np.ndarray:
        """What has to be finite."""
        return np.concatenate([self.sparse.data.ravel(), self.gradients.ravel(), self.stiffness])

    def diagonal(self) -> np.ndarray:
        diagonal: np.ndarray = self.sparse.diagonal() + self.stiffness @ self.gradients**2
        return diagonal

    def toarray(self) -> np.ndarray:
        dense: np.ndarray = self.sparse.toarray() + self.gradients.T @ (
            self.stiffness[:, None] * self.gradients
        )
        return dense


Matrix = Enclosed | bsr_matrix


def enclosed(assembly: Assembly, H: bsr_matrix) -> Matrix:
    """A Hessian with what the gas in chambers adds at the problem's u; itself where there are none."""
    return Enclosed(H, *gas_stiffness(assembly)) if assembly.problem.gases else H


def gas_stiffness(assembly: Assembly) -> tuple[np.ndarray, np.ndarray]:
    """g = ∂V/∂u (chambers, 3 f) [m²] of the free vertices, and k = γ P/V (chambers,) [Pa/m³]."""
    chambers = assembly.problem.gases.stiffness()
    gradients = np.stack([assembly.unheld(g[assembly.free].ravel()) for g, _ in chambers])
    return gradients, np.array([k for _, k in chambers])


SHIFT = 1e-5
"""Part of their stiffness that vertices have in addition in the preconditioner: bodies that nothing holds
would move so far along a force that rounding of that leaves nothing of its shape."""


class Gradients(NamedTuple):
    """x (3 f,) ≈ H⁻¹ b; iterations; negative: a direction p with p · Hp ≤ 0 on which they ended, or None."""

    x: np.ndarray
    iterations: int
    negative: np.ndarray | None


class EnclosedSystem:
    """H x = b of a kind of Hessian with sealed gas, by conjugate gradients that are preconditioned with the
    positive part of H, or its bound: walls may have no positive Hessian where only the gas holds them."""

    def __init__(
        self, assembly: Assembly, matrix: Threes, without: Callable[[np.ndarray], np.ndarray] = lambda v: v
    ) -> None:
        """without: takes motions that are free out of a vector (3 f,)."""
        self._assembly, self._without = assembly, without
        self.matrix = enclosed(assembly, assembly.here(matrix))
        self._hierarchy: Multilevel = assembly.problem.shared("multilevel", lambda: Multilevel(assembly))
        self._kinds, self._widened = ["bound", "projected"], 0
        self._M: Preconditioner | None = None

    def solve(self, b: np.ndarray, accuracy: float, floor: float, iterations: int) -> Gradients:
        """x (3 f,) until √(r·Mr) ≤ accuracy times what it was at x = 0, or |r| ≤ floor. Raises NotPositive
        where no preconditioner is positive."""
        b = self._without(b)
        for _ in range(2 * WIDENINGS):
            M = self._M = self._M or self._preconditioner()
            found = _gradients(self.matrix, b, M, accuracy, floor, iterations, self._without)
            if found is not None:
                return found
            self._widened += 1
            M.widen()
            if self._widened == WIDENINGS:
                self._M = None
        raise NotPositive

    def _preconditioner(self) -> Preconditioner:
        self._widened = 0
        while self._kinds:
            try:
                return self._hierarchy.at(self._shifted(self._kinds.pop()), self._assembly.positions)
            except NotPositive:
                continue
        raise NotPositive


    def _shifted(self, kind: str) -> Threes:
        """A kind of Hessian with a stiff ground under it."""
        assembly, matrix = self._assembly, self._assembly.matrix(kind)
        device, diagonal = assembly.problem.device, assembly.pattern.diagonal
        device.pull(matrix.blocks)
        own = matrix.blocks[diagonal]
        shift = SHIFT * np.trace(own, axis1=1, axis2=2)
        matrix.blocks[diagonal] = own + shift[:, None, None] * np.eye(3)
        device.push(matrix.blocks)
        return matrix


def _gradients(
    H: Matrix,
    r: np.ndarray,
    M: Preconditioner,
    accuracy: float,
    floor: float,
    iterations: int,
    without: Callable[[np.ndarray], np.ndarray],
) -> Gradients | None:
    """As `EnclosedSystem.solve`; None where M is not positive."""
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
        if not curvature > FLAT * rz:
            return Gradients(x, k, p)
        x, r = x + rz / curvature * p, r - rz / curvature * q
        z = without(M(r))
        before, rz = rz, float(r @ z)
        if abs(rz) <= enough:
            return Gradients(x, k + 1, None)
        p = z + rz / before * p
    return Gradients(x, iterations, None)
