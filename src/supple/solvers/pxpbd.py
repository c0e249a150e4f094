"""Primal XPBD: variants that also reduce the residual of the positions [PXPBD Algorithms 1 and 2].

B-PXPBD, blended, mixes XPBD's update with a fixed-point update that restores x = x̃ + W Σ λ ∇C for the
visited constraint. Numbers are the steps of Algorithm 1:

    x ← x̃,  λ ← 0,  Δx_total ← 0                            elementwise/run.py, ElementRun._begin_step
    for each iteration, for each constraint d               elementwise/run.py, sweep_projections
        Δλ ← XPBD's  [1, eq. 16]                            xpbd.multiplier_step
        λ ← λ + Δλ  [4, eq. 16]                             `_blend`
        Δx_fp ← λ W ∇C - Δx_total  [2, eq. 22]
        Δx ← ζ W ∇C Δλ + (1 - ζ) Δx_fp  [eq. 21]
        x ← x + Δx  [3, eq. 19]
        Δx_total ← Δx_total + Δx  [5]
    v ← (x - xₙ)/Δt                                         solve/time_loop.py

Step 4 precedes step 2: λ in Δx_fp is the new one, as in eq. 20. The λ in the denominator of eq. 16 is a slip.

FP-PXPBD, first-Piola, stores the stress P of each element in place of multipliers. The forces -V P g are
linear in P, so x = x̃ - W Σ V P g [eq. 24] holds exactly at all times, for any energy. Steps of Algorithm 2:

    x ← x̃,  P ← 0                                           elementwise/run.py, ElementRun._begin_step
    for each iteration, for each element e                  elementwise/run.py, sweep_projections
        F̃ ← F + P G: F without the element's own stress     `_project_piola`
        for each local step of Newton's method
            h ← F + P(F) G - F̃  [1, eq. 29]                 `stress_step`
            δF ← solution of δF + (H : δF) G = -h  [3, eq. 34, 48, 49]
            P ← P(F) + H : δF  [6, linearized as in eq. 30],  F ← F + δF
        x ← x - W V ΔP g  [2, 4, 5 in one]                  `_project_piola`
    v ← (x - xₙ)/Δt                                         solve/time_loop.py

W = Δt²/m, and the papers' λ is ours times Δt². gᵢ is the shape gradient of corner i, G = V Γ with Γ = Σ Wᵢ gᵢ
gᵢᵀ, and H is ∂²ψ/∂F² or its bound; in the code, x are displacements, not positions (elementwise/gather.py).
Our own additions are a stable ζ (elementwise/blend_factor.py) and a fixed number of local steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from supple.algebra.matrix3 import (
    add_diagonal,
    cofactor,
    combine,
    contract,
    inverse_spd,
    matmul,
    minus9,
    plus9,
    scale_matrix,
)
from supple.kernels import device_function, inline_control, load, store
from supple.materials import bound_coefficients, stress
from supple.solvers.elementwise.blend_factor import (
    stiffness_across,
    stiffness_of_pair,
    stiffness_of_root,
    zeta_of,
    zeta_option,
)
from supple.solvers.elementwise.gather import (
    corners_of,
    element,
    gradients,
    load_corners,
    mobility,
    one_constraint,
    plus,
    scatter_corners,
    shifted,
    store_corners,
    times,
    weighted_square,
)
from supple.solvers.elementwise.projection import (
    Projection,
    WeightedElements,
    apply_stored_forces,
    new_memory,
    project,
    projects,
    require,
)
from supple.solvers.elementwise.run import ElementOptions
from supple.solvers.xpbd import (
    TwoConstraints,
    check_constraints,
    multiplier_step,
    root_constraint,
    update,
    use_root,
)
from supple.support.arguments import check_integer, check_number
from supple.support.keywords import suggest_keywords
from supple.terms import Term
from supple.terms.base.constraint import ConstraintRows
from supple.terms.base.elastic import ElasticRows, material_at, measure, rest_volume
from supple.terms.base.tensors import load_matrix


class BlendedProjection(TwoConstraints):
    """Blended pair of constraints of each element.

    Attributes:
        memory: λ (rows, 2, lanes), and the displacements (rows, 6 k, lanes) by which each of the two
            constraints has moved the k corners so far [m].
        options: ζ, the fraction of XPBD's update that is kept, as (1,), or () for the stable value
            (blend_factor.py).
    """

    __slots__ = ()


class BlendedRootProjection(Projection):
    """Elements with the single constraint C = √(2 ψ), blended.

    Attributes:
        memory: λ (rows, 1, lanes), and the displacements (rows, 3 k, lanes) by which it has moved the corners
            so far [m].
        options: ζ.
    """

    __slots__ = ()


class BlendedSingleProjection(Projection):
    """Blended single constraints; memory and options as for the root."""

    __slots__ = ()


stiffness_across.of(BlendedProjection)(stiffness_of_pair)
stiffness_across.of(BlendedRootProjection)(stiffness_of_root)


@device_function
def _blend(x, W, gradient, C, k, zeta, projection, row, slot):
    """Return the corners after one blended visit of a constraint [PXPBD Algorithm 1].

    In Δx = ζ W ∇C Δλ + (1 - ζ) Δx_fp, the terms along W ∇C are added first: ζ Δλ + (1 - ζ) λ, with the new λ.
    k is the V k of the box in xpbd.py.
    """
    multipliers, totals = projection.memory
    lam_old, dx_total = load(multipliers, row, slot), load_corners(x, totals, row, slot)
    d_lam = multiplier_step(C, k, lam_old, weighted_square(W, gradient, gradient), 1.0)
    lam = lam_old + d_lam
    dx = shifted(times(zeta - 1.0, dx_total), zeta * d_lam + (1.0 - zeta) * lam, W, gradient)
    store(multipliers, row, slot, lam)
    store_corners(totals, row, slot, plus(dx_total, dx))
    return plus(x, dx)


@update.of(BlendedProjection)
def _update_blended(projection, x, W, g, gradient, C, k, row, slot):
    rows = projection.elements.rows
    material, reach = material_at(rows, row), rest_volume(rows, row) * weighted_square(W, g, g)
    zeta = zeta_of(projection, material, measure(rows, x, g), reach)
    return _blend(x, W, gradient, C, k, zeta, projection, row, slot)


@project.of(BlendedRootProjection)
def _project_blended_root(projection, row, u):
    elements = projection.elements
    x, W, g, V, material = element(elements, row, u)
    F = measure(elements.rows, x, g)
    C, D = root_constraint(material, F)
    gradient = gradients(elements, row, D, g)
    zeta = zeta_of(projection, material, F, V * weighted_square(W, g, g))
    scatter_corners(elements, row, u, _blend(x, W, gradient, C, V, zeta, projection, row, 0))


@project.of(BlendedSingleProjection)
def _project_blended_single(projection, row, u):
    elements = projection.elements
    x, W = corners_of(elements, row, u)
    C, gradient, k = one_constraint(elements, row, x)
    zeta = projection.options[0][0]
    scatter_corners(elements, row, u, _blend(x, W, gradient, C, k, zeta, projection, row, 0))


class PiolaProjection(Projection):
    """Elements with their first Piola-Kirchhoff stress as variable.

    Attributes:
        memory: P (rows, 9, lanes) of each element [Pa].
        options: Local Newton steps per visit.
    """

    __slots__ = ()


@inline_control
def stress_step(material, F, F_free, G):
    """(P, F) after one step of Newton's method towards F + P(F) G = F̃.

    F_free is F̃, the deformation gradient without the element's own stress, and G = V Γ.

    This is PXPBD eq. 34 times M̂⁻¹ from the right, M̂ as below eq. 36: if all corners are free, Γ = Σ Wᵢ gᵢ
    gᵢᵀ is Δt² M̂⁻¹, and the residual of eq. 35 is Gᵉ = (F - F̃) M̂ + Δt² V P, so that

        δF M̂ + Δt² V (H : δF) = -Gᵉ   becomes   δF + (H : δF) G = -h,  h = Gᵉ M̂⁻¹ = F + P G - F̃.

    With H = a I + b cof ⊗ cof [eq. 48; a, b: `bound_coefficients`, 2μ and λ in the paper] it follows that δF
    = -(h + b s cof G) Z, Z = (I + a G)⁻¹, and s = cof : δF by Sherman-Morrison [eq. 49, which as printed
    lacks the factor λ Vᵉ Δt² of Wᵉ ⊗ Wᵉ]. In the paper's letters, cof is Wᵉ and Z is Zᵉ M̂; our G, h, b, W
    differ from its Gᵉ, hᵉ [eq. 25], bᵉ, Wᵉ. Pinned corners need no special case. The translation bᵉ [eq. 33]
    of steps 2 and 4 is not needed, because the change of P moves the corners. The new stress is not P at the
    new F, as in step 6, but the linearized one of eq. 30, P + a δF + b s cof, with which x = x̃ - W Σ V P g
    holds to rounding.
    """
    P = stress(material, F)
    a, b = bound_coefficients(material, F)
    h = plus9(minus9(F, F_free), matmul(P, G))
    Z = inverse_spd(add_diagonal(scale_matrix(a, G), 1.0))
    cof = cofactor(F)
    cof_GZ = matmul(matmul(cof, G), Z)
    hZ = matmul(h, Z)
    s = -contract(cof, hZ) / (1.0 + b * contract(cof, cof_GZ))
    dF = combine(-1.0, hZ, -b * s, cof_GZ)
    return plus9(P, combine(a, dF, b * s, cof)), plus9(F, dF)


@project.of(PiolaProjection)
def _project_piola(projection, row, u):
    """Newton's method on one element, with the stresses of its neighbors fixed [PXPBD Algorithm 2].

    Without its own stress, the element would have the deformation gradient F̃ = F + P G, G = V Γ. The unknown
    is F with F + P(F) G = F̃. If corners are constrained along some directions, G is only an upper bound of
    the compliance of F, and the step is somewhat shorter.
    """
    elements, (stresses,), (newton_steps,) = projection.elements, projection.memory, projection.options
    x, W, g, V, material = element(elements, row, u)
    G = scale_matrix(V, mobility(W, g))
    P_old = load_matrix(stresses, row)
    F = measure(elements.rows, x, g)
    F_free = plus9(F, matmul(P_old, G))
    P = P_old
    for _ in range(newton_steps):
        P, F = stress_step(material, F, F_free, G)
    for p in range(9):
        store(stresses, row, p, P[p])
    scatter_corners(elements, row, u, shifted(x, -V, W, gradients(elements, row, minus9(P, P_old), g)))


@apply_stored_forces.of(PiolaProjection)
def _apply_stresses(projection, row, u):
    """x ← x - W V P g: move the corners by the stresses stored in the previous step."""
    elements, (stresses,) = projection.elements, projection.memory
    x, W, g, V, _ = element(elements, row, u)
    scatter_corners(
        elements, row, u, shifted(x, -V, W, gradients(elements, row, load_matrix(stresses, row), g))
    )


@suggest_keywords
@dataclass(frozen=True)
class BPXPBD(ElementOptions):
    """Blended primal XPBD [PXPBD section 3.3.1].

    Args:
        zeta: Fraction of XPBD's update that is kept; 1 is XPBD. Larger values are more stable, smaller ones
            reduce the residual further. None is ½ as in the paper, and more in elements where ½ would be
            unstable (elementwise/blend_factor.py).
        constraints: As for XPBD.
        ordering: Parallel units: "colors" of single elements, "clusters" of up to cluster_size elements [BNH
            Algorithm 4], or "cells" of a block.
        vertex_order: "smallest_last" first sorts elements by that order of their vertices [BNH section 6.2];
            "mesh" keeps the order of the mesh.
        cluster_size: Largest number of elements in a cluster.
        attachments_first: Visit weak constraints before the elements instead of after them.
        pseudo_dt: Step size of pseudo-time [s].
        sweeps_per_step: Sweeps per step of pseudo-time.
        pseudo_time: "flow" starts every step without velocity; "dynamics" keeps velocities except for the
            fraction pseudo_damping, as in the paper.
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
def _blended(method: BPXPBD, term: Term, elements: WeightedElements) -> list:
    root, corners = use_root(method.name, method.constraints, term.material), elements.weights.shape[1]
    zeta = zeta_option(method, term.material, root)
    if root:
        return [BlendedRootProjection(elements, new_memory(elements, 1, 3 * corners), (zeta,))]
    return [BlendedProjection(elements, new_memory(elements, 2, 6 * corners), (zeta,))]


@projects(BPXPBD, ConstraintRows)
def _blended_single(method: BPXPBD, term: Term, elements: WeightedElements) -> list:
    zeta = np.array([0.5 if method.zeta is None else method.zeta])
    return [
        BlendedSingleProjection(elements, new_memory(elements, 1, 3 * elements.weights.shape[1]), (zeta,))
    ]


@suggest_keywords
@dataclass(frozen=True)
class FPXPBD(ElementOptions):
    """First-Piola primal XPBD for any material [PXPBD section 3.3.3].

    In pseudo-time, a step starts with the stresses of the previous one, so one sweep per step suffices.

    Args:
        newton_steps: Local Newton steps per visit.
        ordering: Parallel units: "colors" of single elements, "clusters" of up to cluster_size elements [BNH
            Algorithm 4], or "cells" of a block.
        vertex_order: "smallest_last" first sorts elements by that order of their vertices [BNH section 6.2];
            "mesh" keeps the order of the mesh.
        cluster_size: Largest number of elements in a cluster.
        attachments_first: Visit weak constraints before the elements instead of after them.
        pseudo_dt: Step size of pseudo-time [s].
        sweeps_per_step: Sweeps per step of pseudo-time.
        pseudo_time: "flow" starts every step without velocity; "dynamics" keeps velocities except for the
            fraction pseudo_damping, as in the paper.
        pseudo_damping: Fraction of every velocity that is removed per step of "dynamics".
        iterations: Sweeps per step unless the call sets a limit.
    """

    name: ClassVar[str] = "fpxpbd"
    history_size: ClassVar[int] = 9
    keeps_forces: ClassVar[bool] = True

    sweeps_per_step: int = 1
    newton_steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("newton_steps", self.newton_steps)


@projects(FPXPBD, ElasticRows)
def _piola(method: FPXPBD, term: Term, elements: WeightedElements) -> list:
    require(method.name, term.material, bound_coefficients)
    return [PiolaProjection(elements, new_memory(elements, 9), (method.newton_steps,))]
