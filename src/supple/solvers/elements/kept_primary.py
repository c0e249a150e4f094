"""XPBD with the primary residual [PXPBD eq. 13 without the omission of g, section 3.3, Fig. 3b].

XPBD drops g = W⁻¹ (x - x̃) - Σ λ ∇C(x), the difference between the positions and those that the multipliers
imply. With g, a visit of a constraint solves W⁻¹ Δx - ∇Cᵀ Δλ = -g and ∇C Δx + Δλ/k = -(C + λ/k), so that

    Δλ = -(C + λ/k - ∇C W g)/(∇C W ∇Cᵀ + 1/k),  Δx = W (∇Cᵀ Δλ - g).

g is summed over all constraints before each sweep; a visit resets it to 0 at its corners. The method is
unstable, here as in the paper. It is a baseline that motivates B-PXPBD and FP-PXPBD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from supple.kernels import load, store
from supple.problem import Problem
from supple.solvers.elements.corners import corners_of, put_corners, shifted, times, weighted_square
from supple.solvers.elements.elementwise import ElementRun
from supple.solvers.elements.projection import Places, new_memory
from supple.solvers.xpbd import Pair, update
from supple.terms import Term

if TYPE_CHECKING:
    from supple.solvers.xpbd import XPBD


class KeptPrimaryProjection(Pair):
    """Pair of constraints of each element, with the primary residual.

    Attributes:
        memory: λ of the two constraints of each element.
        options: (g,), padded vectors [N].
    """

    __slots__ = ()


@update.of(KeptPrimaryProjection)
def _update_kept(projection, x, W, shape, gradient, C, k, row, slot):
    """Return the corners after one update of a constraint; padding has k = 0 and W = 0."""
    (multipliers,), (primary,) = projection.memory, projection.options
    lam = load(multipliers, row, slot)
    g, _ = corners_of(projection.places, row, primary)
    square, along = weighted_square(W, gradient, gradient), weighted_square(W, gradient, g)
    step = -(k * (C - along) + lam) / (k * square + 1.0)
    store(multipliers, row, slot, lam + step)
    put_corners(projection.places, row, primary, times(0.0, g))
    return shifted(shifted(x, step, W, gradient), -1.0, W, g)


def kept_projection(term: Term, places: Places) -> KeptPrimaryProjection:
    """Create the projection of tetrahedra; the run adds the vectors of g."""
    if not term.fills:
        raise ValueError("xpbd with primary='kept' is for tetrahedra; primary='omitted' is for all")
    return KeptPrimaryProjection(places, new_memory(places, 2), ())


class KeptPrimaryRun(ElementRun):
    """XPBD run with g, for one state in dynamics."""

    def __init__(self, method: XPBD, problem: Problem) -> None:
        if problem.copies > 1 or not problem.loads.inertia.any():
            raise ValueError(
                "xpbd with primary='kept' is for one step of time at a time, of a dynamic scene; "
                "primary='omitted' is for equilibria and for copies, too"
            )
        self._primary = problem.zeros(problem.u.shape)
        super().__init__(method, problem)

    def sweep(self, projections: tuple, count: int) -> None:
        if projections is not self.projections:  # these only evaluate
            super().sweep(projections, count)
            return
        for _ in range(count):
            self._gather()
            kept = tuple(self._with_primary(q) for q in self.projections)
            super().sweep(kept, 1)

    def _with_primary(self, projection: Any) -> Any:
        if isinstance(projection, KeptPrimaryProjection):
            return projection._replace(options=(self._primary,))
        return projection

    def _gather(self) -> None:
        from supple.solvers.elements.primal_dual import residual_vectors  # imports all projections

        found = residual_vectors(self)
        if found is None:
            raise ValueError("xpbd with primary='kept' knows elements and attachments only, no contact")
        self._primary[: self.problem.model.vertices, :3] = np.where(np.isfinite(found[0]), found[0], 0.0)
        self.problem.device.push(self._primary)
