"""B-PXPBD, blended primal XPBD [PXPBD: Y. Chen et al. 2024, Algorithm 1]:

    x ← x̃ = xₙ + Δt vₙ                                      Problem.begin_step (problem/problem.py)
            + W f_ext,  λ ← 0,  Δx_total ← 0                ElementRun._begin_step (element_run.py)
    for each iteration, for each constraint d               sweep_projections (elementwise/element_run.py)
                                                            `_project_pair` (xpbd.py): both of an element
                                                            in turn, each by `update_constraint`
        ζ ← option, or a stable value                       `_update_blended`
        Δλ̃ ← XPBD's  [step 1, eq. 16]                       multiplier_step (xpbd.py)
        λ ← λ + Δλ̃  [4, eq. 16]                             `_blended_visit`
        Δx_fp ← λ W ∇C - Δx_total  [2, eq. 22]
        Δx ← ζ W ∇C Δλ̃ + (1 - ζ) Δx_fp  [eq. 21]
        x ← x + Δx  [3, eq. 19]
        Δx_total ← Δx_total + Δx  [5]
        contact with obstacles, our own                     `ContactProjection`
                                                            (elementwise/contact_projection.py)
    v ← (x - xₙ)/Δt                                         TimeLoop._set_velocities (solve/time_loop.py)

An update mixes XPBD's with a fixed-point update that restores x = x̃ + W Σ λ ∇C for the visited constraint.
Thus it also reduces the residual of the positions [eq. 11].

    PXPBD                               here, right column in the letters of this file
    M⁻¹                                 W/Δt², W = Δt²/m
    λ, Δλ̃                               Δt² λ, Δt² Δλ̃ (`d_lam`)
    a_d, compliance                     1/k
    Δx_d^total                          dx_total of each constraint
    ζ                                   zeta; by default the paper's ½, more in elements where ½ would be
                                        unstable (elementwise/blend_factor.py)

Slips of the paper: x̃ below eq. 12 lacks a factor Δt of M⁻¹ f_ext, and the Hessians of eq. 13 a minus sign.
Algorithm 1 prints eq. 20 in step 3; eq. 19 is meant. Eq. 22 corrects the visited constraint only, eq. 20 all
that share its vertices. Step 4 precedes step 2: λ in Δx_fp is the new one, as in eq. 20. The λ in the
denominator of eq. 16 is a slip. Section 3.3.1 says to increase ζ against instability and to raise it against
stagnation; the latter must be to lower it.

Our own additions are the stable ζ and blended updates of single constraints: springs, and √(2 ψ + 1e-12 μ) of
materials without a pair, or of all with constraints="root" (`_project_blended_root`). The paper has √ψ for
XPBD only, as an unstable example [section 5.3].

Muscle [eq. 6-8]: materials/muscle.py. Residuals [eq. 11, 12]: elementwise/multiplier_residuals.py. Weak
constraints and body contact: elementwise/weak_constraints.py. Grid-embedded elements [section 5.5]:
elementwise/grid_embedded.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from supple.kernels import device_function, load, store
from supple.solvers.elementwise.blend_factor import (
    stiffness_across,
    stiffness_of_pair,
    stiffness_of_root,
    zeta_of,
    zeta_option,
)
from supple.solvers.elementwise.element_run import ElementOptions
from supple.solvers.elementwise.gather import (
    corner_gradients,
    corners_of,
    load_constraint,
    load_corners,
    load_element,
    plus,
    scatter_corners,
    shift_corners,
    store_corners,
    times,
    weighted_dot,
)
from supple.solvers.elementwise.projection import (
    Projection,
    WeightedElements,
    new_memory,
    project,
    projects,
)
from supple.solvers.xpbd import (
    PairProjection,
    check_constraints,
    multiplier_step,
    root_constraint,
    update_constraint,
    use_root,
)
from supple.support.arguments import check_number
from supple.support.keywords import suggest_keywords
from supple.terms import Term
from supple.terms.base.constraint import ConstraintRows
from supple.terms.base.elastic import ElasticRows, material_at, measure, rest_volume


class BlendedProjection(PairProjection):
    """Blended pair of constraints of each element.

    Attributes:
        memory: λ (rows, 2, lanes), and the displacements (rows, 6 k, lanes) by which each of the two
            constraints has moved the k corners so far [m].
        options: ζ, the fraction of XPBD's update that is kept, an array of one number, or () for the stable
            value (blend_factor.py).
    """

    __slots__ = ()


stiffness_across.of(BlendedProjection)(stiffness_of_pair)


@update_constraint.of(BlendedProjection)
def _update_blended(projection, x, W, g, gradient, C, k, row, slot):
    rows = projection.elements.rows
    material, element_compliance = material_at(rows, row), rest_volume(rows, row) * weighted_dot(W, g, g)
    zeta = zeta_of(projection, material, measure(rows, x, g), element_compliance)
    return _blended_visit(x, W, gradient, C, k, zeta, projection, row, slot)


@device_function
def _blended_visit(x, W, gradient, C, k, zeta, projection, row, slot):
    """Return the corners after one visit of a constraint, the body of the inner loop of the box.

    In Δx = ζ W ∇C Δλ̃ + (1 - ζ) Δx_fp, the terms along W ∇C are added first: ζ Δλ̃ + (1 - ζ) λ, with the new λ.
    """
    multipliers, totals = projection.memory
    lam_old, dx_total = load(multipliers, row, slot), load_corners(x, totals, row, slot)
    d_lam = multiplier_step(C, k, lam_old, weighted_dot(W, gradient, gradient), 1.0)
    lam = lam_old + d_lam
    dx = shift_corners(times(zeta - 1.0, dx_total), zeta * d_lam + (1.0 - zeta) * lam, W, gradient)
    store(multipliers, row, slot, lam)
    store_corners(totals, row, slot, plus(dx_total, dx))
    return plus(x, dx)


class BlendedRootProjection(Projection):
    """Elements with the single constraint C = √(2 ψ), blended.

    Attributes:
        memory: λ (rows, 1, lanes), and the displacements (rows, 3 k, lanes) by which it has moved the corners
            so far [m].
        options: ζ.
    """

    __slots__ = ()


stiffness_across.of(BlendedRootProjection)(stiffness_of_root)


@project.of(BlendedRootProjection)
def _project_blended_root(projection, row, u):
    """Update the square-root energy constraint of any material."""
    elements = projection.elements
    x, W, g, V, material = load_element(elements, row, u)
    F = measure(elements.rows, x, g)
    C, dC_dF = root_constraint(material, F)
    gradient = corner_gradients(elements, row, dC_dF, g)
    zeta = zeta_of(projection, material, F, V * weighted_dot(W, g, g))
    scatter_corners(elements, row, u, _blended_visit(x, W, gradient, C, V, zeta, projection, row, 0))


class BlendedSingleProjection(Projection):
    """Blended single constraints; memory and options as for the root."""

    __slots__ = ()


@project.of(BlendedSingleProjection)
def _project_blended_single(projection, row, u):
    """Update an element that consists of one constraint."""
    elements = projection.elements
    x, W = corners_of(elements, row, u)
    C, gradient, k = load_constraint(elements, row, x)
    zeta = projection.options[0][0]
    scatter_corners(elements, row, u, _blended_visit(x, W, gradient, C, k, zeta, projection, row, 0))


@suggest_keywords
@dataclass(frozen=True)
class BPXPBD(ElementOptions):
    """Blended primal XPBD [PXPBD section 3.3.1].

    Args:
        zeta: Fraction of XPBD's update that is kept; 1 is XPBD. Larger values are more stable, smaller ones
            reduce the residual further. None is ½ as in the paper, and more in elements where ½ would be
            unstable (elementwise/blend_factor.py); springs take ½.
        constraints: As for XPBD.
        ordering: Parallel units: "colors" of single elements, "clusters" of up to cluster_size elements [BNH
            Algorithm 4], or "cells" of a block.
        vertex_order: "smallest_last" first sorts elements by that order of their vertices [BNH section 6.2];
            "mesh" keeps the order of the mesh.
        cluster_size: Largest number of elements in a cluster.
        attachments_first: Visit weak constraints before the elements instead of after them.
        pseudo_dt: Step size of pseudo-time [s].
        sweeps_per_step: Sweeps per step of pseudo-time.
        pseudo_time: "flow" starts every step without velocity; "dynamics" keeps velocities, as XPBD-QS [PBNG
            section 6.1], less the fraction pseudo_damping, our own.
        pseudo_damping: Fraction of every velocity that is removed per step of "dynamics".
        iterations: Sweeps per step unless the call sets a limit.
    """

    name: ClassVar[str] = "bpxpbd"
    history_size: ClassVar[int] = 26

    zeta: float | None = None
    constraints: Literal["auto", "pair", "root"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.zeta is not None:
            check_number("zeta", self.zeta, at_least=0, at_most=1)
        check_constraints(self.constraints)


@projects(BPXPBD, ElasticRows)
def _elastic(method: BPXPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements of a material: both constraints in turn, or √(2 ψ)."""
    root, corners = use_root(method.name, method.constraints, term.material), elements.weights.shape[1]
    zeta = zeta_option(method, term.material, root)
    if root:
        return [BlendedRootProjection(elements, new_memory(elements, 1, 3 * corners), (zeta,))]
    return [BlendedProjection(elements, new_memory(elements, 2, 6 * corners), (zeta,))]


@projects(BPXPBD, ConstraintRows)
def _single_constraints(method: BPXPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements with one constraint."""
    zeta = np.array([0.5 if method.zeta is None else method.zeta])
    return [
        BlendedSingleProjection(elements, new_memory(elements, 1, 3 * elements.weights.shape[1]), (zeta,))
    ]
