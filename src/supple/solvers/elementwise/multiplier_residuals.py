"""Primary and secondary residuals of methods with multipliers [PXPBD eq. 11, 12].

The primal residual g = W⁻¹ (x - x̃) - Σ λ ∇C(x) [N] measures the deviation of the positions from those
implied by the multipliers. The secondary residual h = C(x) + λ/k is the deviation of the constraints from the
values implied by the multipliers. XPBD reduces h but neglects g. Both vanish in a solution.

    g, h of all constraints                      `residual_vectors`
        for each element: λ ∇C, h                `accumulate_residuals`
        g ← W⁻¹ (x - x̃) - Σ λ ∇C                 `residual_vectors`
    |g|, |h|                                     `residuals`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add
from supple.kernels import device_function, each, gather, generic, load, scatter, store, where
from supple.materials import constraint_pair
from supple.solvers.block_xpbd import BlockProjection
from supple.solvers.bpxpbd import BlendedProjection, BlendedRootProjection, BlendedSingleProjection
from supple.solvers.elementwise.gather import (
    corner_gradients,
    corners_of,
    load_constraint,
    load_element,
    load_vector,
    plus,
    times,
)
from supple.solvers.elementwise.projection import PrescribedCoordinates, project
from supple.solvers.elementwise.weak_constraints import CompliantWeak
from supple.solvers.xpbd import RootProjection, SingleProjection, XPBDPairProjection, root_constraint
from supple.terms.base.elastic import measure

if TYPE_CHECKING:
    from supple.solvers.elementwise.element_run import ElementRun


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


@accumulate_residuals.of(XPBDPairProjection)
@accumulate_residuals.of(BlockProjection)
@accumulate_residuals.of(BlendedProjection)
def pair_residuals(projection, row, u, forces, secondary):
    """Add λ₁ ∇C₁ + λ₂ ∇C₂, and store h of both constraints."""
    elements, multipliers = projection.elements, projection.memory[0]
    x, _, g, V, material = load_element(elements, row, u)
    C1, dC1, modulus1, C2, dC2, modulus2 = constraint_pair(material, measure(elements.rows, x, g))
    lam1, lam2 = load(multipliers, row, 0), load(multipliers, row, 1)
    a1, a2 = corner_gradients(elements, row, dC1, g), corner_gradients(elements, row, dC2, g)
    _add_forces(elements, row, forces, plus(times(lam1, a1), times(lam2, a2)))
    _store_secondary(secondary, row, 0, C1, lam1, modulus1 * V)
    _store_secondary(secondary, row, 1, C2, lam2, modulus2 * V)


@accumulate_residuals.of(RootProjection)
@accumulate_residuals.of(BlendedRootProjection)
def _root_residuals(projection, row, u, forces, secondary):
    elements, multipliers = projection.elements, projection.memory[0]
    x, _, g, V, material = load_element(elements, row, u)
    C, dC_dF = root_constraint(material, measure(elements.rows, x, g))
    lam = load(multipliers, row, 0)
    _add_forces(elements, row, forces, times(lam, corner_gradients(elements, row, dC_dF, g)))
    _store_secondary(secondary, row, 0, C, lam, V)


@accumulate_residuals.of(SingleProjection)
@accumulate_residuals.of(BlendedSingleProjection)
def _single_residuals(projection, row, u, forces, secondary):
    elements, multipliers = projection.elements, projection.memory[0]
    x, _ = corners_of(elements, row, u)
    C, gradient, k = load_constraint(elements, row, x)
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
