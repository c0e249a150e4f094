"""XPBD with the primal residual [PXPBD eq. 13, Fig. 3b]: an unstable baseline.

XPBD drops the primal residual g = W⁻¹ (x - x̃) - Σ λ ∇C(x), the difference between the positions and those
that the multipliers imply. With g, a visit of a constraint solves W⁻¹ Δx - ∇Cᵀ Δλ = -g and ∇C Δx + Δλ/k = -(C
+ λ/k):

    for each sweep                                       `FullResidualRun.sweep`
        g ← sum over all constraints                     `_compute_primary`, multiplier_residuals.py
        for each constraint                              `_update_full_residual`
            Δλ ← -(k (C - ∇C W g) + λ)/(k ∇C W ∇Cᵀ + 1)
            x ← x + W (∇Cᵀ Δλ - g),  g ← 0 at the corners

The method is unstable, here as in the paper [section 3.3]. It motivates B-PXPBD and FP-PXPBD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from supple.kernels import load, store
from supple.problem import Problem
from supple.solvers.elementwise.element_run import ElementRun
from supple.solvers.elementwise.gather import (
    corners_of,
    scatter_corners,
    shift_corners,
    times,
    weighted_dot,
)
from supple.solvers.elementwise.multiplier_residuals import (
    accumulate_residuals,
    pair_residuals,
    residual_vectors,
)
from supple.solvers.elementwise.projection import WeightedElements, new_memory
from supple.solvers.xpbd import XPBDPair, update_constraint
from supple.terms import Term

if TYPE_CHECKING:
    from supple.solvers.xpbd import XPBD


class FullResidualProjection(XPBDPair):
    """Pair of constraints of each element, with the primal residual.

    Attributes:
        memory: λ of the two constraints of each element.
        options: (g,), padded vectors [N].
    """

    __slots__ = ()


accumulate_residuals.of(FullResidualProjection)(pair_residuals)


@update_constraint.of(FullResidualProjection)
def _update_full_residual(projection, x, W, shape, gradient, C, k, row, slot):
    """Return the corners after one update of a constraint; padding has k = 0 and W = 0."""
    (multipliers,), (primary,) = projection.memory, projection.options
    lam = load(multipliers, row, slot)
    g, _ = corners_of(projection.elements, row, primary)
    mobility, gradient_W_g = weighted_dot(W, gradient, gradient), weighted_dot(W, gradient, g)
    d_lam = -(k * (C - gradient_W_g) + lam) / (k * mobility + 1.0)
    store(multipliers, row, slot, lam + d_lam)
    scatter_corners(projection.elements, row, primary, times(0.0, g))
    return shift_corners(shift_corners(x, d_lam, W, gradient), -1.0, W, g)


def full_residual_projection(term: Term, elements: WeightedElements) -> FullResidualProjection:
    """Create the projection of tetrahedra; the run adds the vectors of g."""
    if not term.fills:
        raise ValueError(
            "xpbd with primal_residual='kept' supports tetrahedra only; use primal_residual='omitted' "
            "for other elements"
        )
    return FullResidualProjection(elements, new_memory(elements, 2), ())


class FullResidualRun(ElementRun):
    """XPBD run with g, for one state in dynamics."""

    def __init__(self, method: XPBD, problem: Problem) -> None:
        if problem.batch_size > 1 or not problem.loads.inertia.any():
            raise ValueError(
                "xpbd with primal_residual='kept' supports single time steps of dynamic scenes only; use "
                "primal_residual='omitted' for equilibria and batches"
            )
        self._primary = problem.zeros(problem.u.shape)
        super().__init__(method, problem)

    def sweep(self, projections: tuple, count: int) -> None:
        if projections is not self.projections:  # these only evaluate
            super().sweep(projections, count)
            return
        for _ in range(count):
            self._compute_primary()
            sweep_projections = tuple(self._attach_primary(q) for q in self.projections)
            super().sweep(sweep_projections, 1)

    def _attach_primary(self, projection: Any) -> Any:
        if isinstance(projection, FullResidualProjection):
            return projection._replace(options=(self._primary,))
        return projection

    def _compute_primary(self) -> None:
        residuals = residual_vectors(self)
        if residuals is None:
            raise ValueError(
                "xpbd with primal_residual='kept' does not support contact; use primal_residual='omitted'"
            )
        self._primary[: self.problem.model.vertices, :3] = np.where(
            np.isfinite(residuals[0]), residuals[0], 0.0
        )
        self.problem.device.upload(self._primary)
