"""FP-PXPBD, first-Piola primal XPBD for any energy [PXPBD: Y. Chen et al. 2024, Algorithm 2]:

    x ← x̃ = xₙ + Δt vₙ                                      Problem.begin_step (problem/problem.py)
            + W f_ext,  P ← 0                               ElementRun._begin_step (element_run.py)
    for each iteration, for each element e                  sweep_projections (elementwise/element_run.py)
        Γ ← Σ Wᵢ gᵢ gᵢᵀ                                     compliance_matrix (elementwise/gather.py)
        F̃ ← F + P V Γ: F without the element's own stress   `_project_piola`
        for each local step of Newton's method
            r ← F + ∂ψ/∂F(F) V Γ - F̃  [step 1, eq. 29]      `stress_step`
            δF ← solution of δF + (H : δF) V Γ = -r  [3, eq. 34, 48, 49]
            P ← ∂ψ/∂F(F) + H : δF  [6, linearized as in eq. 30],  F ← F + δF
        x ← x - W V ΔP g  [2, 4, 5 in one]                  `_project_piola`
        contact with obstacles, our own                     `ContactProjection`
                                                            (elementwise/contact_projection.py)
    v ← (x - xₙ)/Δt                                         TimeLoop._set_velocities (solve/time_loop.py)

Each element stores its stress P in place of multipliers; ΔP is its change by the visit. The forces -V P g
are linear in P, so x = x̃ - W Σ V P g [eq. 24] holds at all times, up to rounding, for any energy. gᵢ is the
shape gradient of corner i. H is never ∂²ψ/∂F² itself, but its positive definite approximation [eq. 48, 52].

`stress_step` is eq. 34 times M̂⁻¹ from the right, M̂ as below eq. 36: if all corners are free, Γ is Δt² M̂⁻¹,
and the residual of eq. 35 is Gᵉ = (F - F̃) M̂ + Δt² V ∂ψ/∂F(F), so that

    δF M̂ + Δt² V (H : δF) = -Gᵉ   becomes   δF + (H : δF) V Γ = -r,  r = Gᵉ M̂⁻¹.

H is a I + b cof ⊗ cof with the `bound_coefficients` a, b of the material: 2μ and λ of Corotated [eq. 48], μ
and λ + μ of NeoHookean [eq. 52 with λ + μ for λ]. It follows that δF = -(r + b s cof V Γ) Z, Z = (I + a V
Γ)⁻¹, and s = cof : δF by Sherman-Morrison [eq. 49, which as printed lacks the factor λ Vᵉ Δt² of Wᵉ ⊗ Wᵉ].

The translation bᵉ [eq. 33] of steps 2 and 4 is 0: with x = x̃ - W Σ V P g, the residual below eq. 31 is gᵉ =
Δt² Bᵉ (∂ψ/∂F(F) - Pᵉ), whose sum over the corners is 0 as that of Bᵉ, and local steps keep the center of
mass. (x̃ contains f_ext; f_ext in the fᵉ of eq. 26 is a slip.) Pinned corners need no special case. The new
stress is not ∂ψ/∂F at the new F, as in step 6, but the linearized one of eq. 30, with which x = x̃ - W Σ V P g
holds to rounding.

    PXPBD                               here, right column in the letters of this file
    M⁻¹                                 W/Δt², W = Δt²/m
    M̂ᵉ                                  Δt² Γ⁻¹
    Wᵉ = ∂det F/∂F                      cof F
    Zᵉ M̂                                Z
    Gᵉ M̂⁻¹                              r, `residual`

A visit makes `newton_steps` local steps, by default one, without the test of convergence of Algorithm 2; the
paper makes 1 to 5. In pseudo-time, a step starts with the stresses of the previous one, our own addition.
Elements with one constraint, such as springs, have no stress and are refused. Muscle [eq. 6-8]:
materials/muscle.py. Weak constraints and body contact: elementwise/weak_constraints.py. Grid-embedded
elements [section 5.5]: elementwise/grid_embedded.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
from supple.kernels import inline_control, store
from supple.materials import bound_coefficients, stress
from supple.solvers.elementwise.element_run import ElementOptions
from supple.solvers.elementwise.gather import (
    compliance_matrix,
    corner_gradients,
    load_element,
    scatter_corners,
    shift_corners,
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
from supple.support.arguments import check_integer
from supple.support.keywords import suggest_keywords
from supple.terms import Term
from supple.terms.base.elastic import ElasticRows, measure
from supple.terms.base.tensors import load_matrix


class PiolaProjection(Projection):
    """Elements with their first Piola-Kirchhoff stress as variable.

    Attributes:
        memory: P (rows, 9, lanes) of each element [Pa].
        options: Local Newton steps per visit.
    """

    __slots__ = ()


@project.of(PiolaProjection)
def _project_piola(projection, row, u):
    """Newton's method on one element, with the stresses of its neighbors fixed, see the box.

    If corners are constrained along some directions, Γ is only an upper bound of the compliance of F, and the
    step is somewhat shorter.
    """
    elements, (stresses,), (newton_steps,) = projection.elements, projection.memory, projection.options
    x, W, g, V, material = load_element(elements, row, u)
    V_Gamma = scale_matrix(V, compliance_matrix(W, g))
    P_old = load_matrix(stresses, row)
    F = measure(elements.rows, x, g)
    F_free = plus9(F, matmul(P_old, V_Gamma))
    P = P_old
    for _ in range(newton_steps):
        P, F = stress_step(material, F, F_free, V_Gamma)
    for p in range(9):
        store(stresses, row, p, P[p])
    scatter_corners(
        elements, row, u, shift_corners(x, -V, W, corner_gradients(elements, row, minus9(P, P_old), g))
    )


@inline_control
def stress_step(material, F, F_free, V_Gamma):
    """(P, F) after one step of Newton's method towards F + ∂ψ/∂F(F) V Γ = F̃ [PXPBD eq. 34, 48, 49].

    F_free is F̃, the deformation gradient without the element's own stress.
    """
    P = stress(material, F)
    a, b = bound_coefficients(material, F)
    residual = plus9(minus9(F, F_free), matmul(P, V_Gamma))
    Z = inverse_spd(add_diagonal(scale_matrix(a, V_Gamma), 1.0))
    cof = cofactor(F)
    cof_Gamma_Z = matmul(matmul(cof, V_Gamma), Z)
    residual_Z = matmul(residual, Z)
    s = -contract(cof, residual_Z) / (1.0 + b * contract(cof, cof_Gamma_Z))
    dF = combine(-1.0, residual_Z, -b * s, cof_Gamma_Z)
    return plus9(P, combine(a, dF, b * s, cof)), plus9(F, dF)


@apply_stored_forces.of(PiolaProjection)
def _apply_stresses(projection, row, u):
    """x ← x - W V P g: move the corners by the stresses stored in the previous step."""
    elements, (stresses,) = projection.elements, projection.memory
    x, W, g, V, _ = load_element(elements, row, u)
    scatter_corners(
        elements,
        row,
        u,
        shift_corners(x, -V, W, corner_gradients(elements, row, load_matrix(stresses, row), g)),
    )


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
        pseudo_time: "flow" starts every step without velocity; "dynamics" keeps velocities, as XPBD-QS [PBNG
            section 6.1], less the fraction pseudo_damping, our own.
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
def _elastic(method: FPXPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements of a material."""
    require(method.name, term.material, bound_coefficients)
    return [PiolaProjection(elements, new_memory(elements, 9), (method.newton_steps,))]
