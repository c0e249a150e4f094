"""Primary and secondary residuals of methods with multipliers [PXPBD eq. 11, 12].

The primal residual g = W⁻¹ (x - x̃) - Σ λ ∇C(x) [N] measures the deviation of the positions from those
implied by the multipliers. The secondary residual h = C(x) + λ/k is the deviation of the constraints from the
values implied by the multipliers. XPBD reduces h but neglects g. Both vanish in a solution.

XPBD with the primal residual [PXPBD eq. 13 without the omission of g, section 3.3, Fig. 3b].

XPBD drops g = W⁻¹ (x - x̃) - Σ λ ∇C(x), the difference between the positions and those that the multipliers
imply. With g, a visit of a constraint solves W⁻¹ Δx - ∇Cᵀ Δλ = -g and ∇C Δx + Δλ/k = -(C + λ/k), so that

    Δλ = -(C + λ/k - ∇C W g)/(∇C W ∇Cᵀ + 1/k),  Δx = W (∇Cᵀ Δλ - g).

g is summed over all constraints before each sweep; a visit resets it to 0 at its corners. The method is
unstable, here as in the paper. It is a baseline that motivates B-PXPBD and FP-PXPBD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add
from supple.kernels import device_function, each, gather, generic, load, scatter, store, where
from supple.materials import constraint_pair
from supple.problem import Problem
from supple.solvers.block_xpbd import BlockProjection
from supple.solvers.elementwise.gather import (
    corners_of,
    element,
    gradients,
    load_vector,
    one_constraint,
    plus,
    scatter_corners,
    shifted,
    times,
    weighted_square,
)
from supple.solvers.elementwise.projection import PrescribedCoordinates, WeightedElements, new_memory, project
from supple.solvers.elementwise.run import ElementRun
from supple.solvers.elementwise.weak_constraints import CompliantWeak
from supple.solvers.pxpbd import BlendedProjection, BlendedRootProjection, BlendedSingleProjection
from supple.solvers.xpbd import (
    CompliantProjection,
    Pair,
    PairProjection,
    RootProjection,
    root_constraint,
    update,
)
from supple.terms import Term
from supple.terms.base.elastic import measure

if TYPE_CHECKING:
    from supple.solvers.elementwise.run import ElementRun
    from supple.solvers.xpbd import XPBD


class FullResidualProjection(Pair):
    """Pair of constraints of each element, with the primal residual.

    Attributes:
        memory: λ of the two constraints of each element.
        options: (g,), padded vectors [N].
    """

    __slots__ = ()


@update.of(FullResidualProjection)
def _update_full_residual(projection, x, W, shape, gradient, C, k, row, slot):
    """Return the corners after one update of a constraint; padding has k = 0 and W = 0."""
    (multipliers,), (primary,) = projection.memory, projection.options
    lam = load(multipliers, row, slot)
    g, _ = corners_of(projection.elements, row, primary)
    square, along = weighted_square(W, gradient, gradient), weighted_square(W, gradient, g)
    step = -(k * (C - along) + lam) / (k * square + 1.0)
    store(multipliers, row, slot, lam + step)
    scatter_corners(projection.elements, row, primary, times(0.0, g))
    return shifted(shifted(x, step, W, gradient), -1.0, W, g)


def full_residual_projection(term: Term, elements: WeightedElements) -> FullResidualProjection:
    """Create the projection of tetrahedra; the run adds the vectors of g."""
    if not term.fills:
        raise ValueError(
            "xpbd with primal_residual='kept' is for tetrahedra; primal_residual='omitted' is for all"
        )
    return FullResidualProjection(elements, new_memory(elements, 2), ())


class FullResidualRun(ElementRun):
    """XPBD run with g, for one state in dynamics."""

    def __init__(self, method: XPBD, problem: Problem) -> None:
        if problem.batch_size > 1 or not problem.loads.inertia.any():
            raise ValueError(
                "xpbd with primal_residual='kept' is for one step of time at a time, of a dynamic scene; "
                "primal_residual='omitted' is for equilibria and batches, too"
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
                "xpbd with primal_residual='kept' knows elements and attachments only, no contact"
            )
        self._primary[: self.problem.model.vertices, :3] = np.where(
            np.isfinite(residuals[0]), residuals[0], 0.0
        )
        self.problem.device.upload(self._primary)


class ResidualProjection(NamedTuple):
    """Residual evaluation for another projection.

    Attributes:
        projection: Projection whose residuals are computed.
        forces: Padded vectors, to which the forces λ ∇C at the corners are added [N].
        secondary: (batch, rows, 2, lanes) output h.
    """

    elements: Any
    projection: Any
    forces: Any
    secondary: Any


@generic
def accumulate_residuals(projection, row, u, forces, secondary):
    """Compute the residuals of the elements in one row, see `ResidualProjection`."""


@project.of(ResidualProjection)
def _project_residuals(residual, row, u):
    accumulate_residuals(residual.projection, row, u, residual.forces, residual.secondary)


_add_others = each(
    "forces, others, row, f",
    "scatter(forces, others, row, i, add(gather(forces, others, row, i), f[i + 1]))",
    scatter,
    add,
    gather,
    over="f",
    count=lambda f: len(f) - 1,
)


@device_function
def _add_forces(elements, row, forces, f):
    """Add the corner forces f of one row of elements to the padded vectors."""
    scatter(forces, elements.own, row, 0, add(gather(forces, elements.own, row, 0), f[0]))
    _add_others(forces, elements.rows.others, row, f)


@device_function
def _store_secondary(secondary, row, slot, C, lam, k):
    """h = C + λ/k, 0 in padding."""
    exists = k > 0.0
    h = C + lam / where(exists, k, 0.0 * k + 1.0)
    store(secondary, row, slot, where(exists, h, 0.0 * h))


@accumulate_residuals.of(PairProjection)
@accumulate_residuals.of(FullResidualProjection)
@accumulate_residuals.of(BlockProjection)
@accumulate_residuals.of(BlendedProjection)
def _pair_residuals(projection, row, u, forces, secondary):
    elements, multipliers = projection.elements, projection.memory[0]
    x, _, g, V, material = element(elements, row, u)
    C, D, k, C2, D2, k2 = constraint_pair(material, measure(elements.rows, x, g))
    lam, lam2 = load(multipliers, row, 0), load(multipliers, row, 1)
    a, b = gradients(elements, row, D, g), gradients(elements, row, D2, g)
    _add_forces(elements, row, forces, plus(times(lam, a), times(lam2, b)))
    _store_secondary(secondary, row, 0, C, lam, k * V)
    _store_secondary(secondary, row, 1, C2, lam2, k2 * V)


@accumulate_residuals.of(RootProjection)
@accumulate_residuals.of(BlendedRootProjection)
def _root_residuals(projection, row, u, forces, secondary):
    elements, multipliers = projection.elements, projection.memory[0]
    x, _, g, V, material = element(elements, row, u)
    C, D = root_constraint(material, measure(elements.rows, x, g))
    lam = load(multipliers, row, 0)
    _add_forces(elements, row, forces, times(lam, gradients(elements, row, D, g)))
    _store_secondary(secondary, row, 0, C, lam, V)


@accumulate_residuals.of(CompliantProjection)
@accumulate_residuals.of(BlendedSingleProjection)
def _single_residuals(projection, row, u, forces, secondary):
    elements, multipliers = projection.elements, projection.memory[0]
    x, _ = corners_of(elements, row, u)
    C, gradient, k = one_constraint(elements, row, x)
    lam = load(multipliers, row, 0)
    _add_forces(elements, row, forces, times(lam, gradient))
    _store_secondary(secondary, row, 0, C, lam, k)


@accumulate_residuals.of(CompliantWeak)
def _weak_residuals(projection, row, u, forces, secondary):
    """Add the forces of weak constraints.

    C is linear and its update exact, so h is 0 after a visit and not stored.
    """
    elements, (multipliers,) = projection.elements, projection.memory
    lam = load_vector(multipliers, row, 0)
    for slot in range(elements.weights.shape[1] - 1, 0, -1):
        w = load(elements.rows.weights, row, slot)
        old = gather(forces, elements.rows.others, row, slot - 1)
        new = (old[0] + w * lam[0], old[1] + w * lam[1], old[2] + w * lam[2])
        scatter(forces, elements.rows.others, row, slot - 1, new)
    w = load(elements.rows.weights, row, 0)
    old = gather(forces, elements.own, row, 0)
    scatter(forces, elements.own, row, 0, (old[0] + w * lam[0], old[1] + w * lam[1], old[2] + w * lam[2]))


def residuals(run: ElementRun) -> tuple[float, float] | None:
    """(|g| [N], |h|) of the first batch member in a time step.

    None for methods without multipliers, in pseudo-time, and with constraints of another kind.
    """
    vectors = residual_vectors(run)
    return None if vectors is None else (float(np.linalg.norm(vectors[0])), float(np.linalg.norm(vectors[1])))


def residual_vectors(run: ElementRun) -> tuple[np.ndarray, np.ndarray] | None:
    """g (n, 3) [N] and h of all constraints, None as for `residuals`."""
    projections = [q for q in run.projections if not isinstance(q, PrescribedCoordinates)]
    if not run.dynamic or not all(accumulate_residuals.has_implementation(type(q)) for q in projections):
        return None
    p = run.problem
    forces = p.zeros(p.u.shape)
    secondary = [p.zeros((*q.memory[0].shape[:2], 2, q.memory[0].shape[3])) for q in projections]
    run.sweep(
        tuple(
            ResidualProjection(q.elements, q, forces, h) for q, h in zip(projections, secondary, strict=True)
        ),
        1,
    )
    for array in (*secondary, p.u, p.states.anchor, forces):
        p.device.download(array)
    free = np.flatnonzero(p.model.free)
    current, anchor = (np.asarray(a[free, :3], float) for a in (p.u, p.states.anchor))
    inertia = p.loads.inertia[free, None]
    external = (p.loads.force if p.loads.force.ndim == 2 else p.loads.force[0])[free]
    g = np.zeros((p.model.vertices, 3))
    g[free] = inertia * (current - anchor) - external - forces[free, :3]
    h = np.concatenate([values[0].ravel().astype(float) for values in secondary])
    return p.model.unconstrained(g), h
