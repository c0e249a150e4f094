"""XPBD [Macklin et al. 2016] with continuum constraints [BNH: Ton-That et al. 2023, Algorithms 1 and 2]:

    x ← xₙ + Δt vₙ                                          Problem.begin_step (problem/problem.py)
        + W f_ext,  λ ← 0                                   ElementRun._begin_step (element_run.py)
    for each iteration, for each element, color by color    sweep_projections (elementwise/element_run.py)
        for each constraint C of the element                `_project_pair`; √(2 ψ): `_project_root`;
                                                            springs: `_project_single`
            C, modulus, ∇C at x                             constraint_pair of the material, corner_gradients
            update of the constraint                        `update_constraint`: `_update_pair`, which calls
                                                            `_solve_constraint`; √(2 ψ), springs: directly
                Δλ ← -(k C + λ)/(k ∇C W ∇Cᵀ + 1)            `multiplier_step`
                λ ← λ + Δλ,  x ← x + W ∇Cᵀ Δλ               `_solve_constraint`
        contact with obstacles, our own                     `ContactProjection`
                                                            (elementwise/contact_projection.py)
    v ← (x - xₙ)/Δt                                         TimeLoop._set_velocities (solve/time_loop.py)
    equilibria: steps of pseudo-time until rest             ElementRun._next_step (elementwise/element_run.py)
        pseudo_time="flow", the default, our own: vₙ = 0 in every step
        pseudo_time="dynamics": XPBD-QS [PBNG section 6.1]

ψ = Σ modulus/2 C², with the modulus in [Pa] for dimensionless C, and k = V modulus = 1/α. Each constraint has
a multiplier λ, such that λ ∇C is the force that it exerts; at convergence, λ = -k C [BNH eq. 4, PBNG eq. 23].
One visit solves k C(x + Δx) + λ + Δλ = 0 with Δx = W ∇Cᵀ Δλ and ∇C frozen. This omits two parts of the
linearization [PXPBD eq. 13]: the constraint Hessians Σ λ ∂²C, and the primary residual g [PXPBD eq. 11],
since forces λ ∇C of earlier visits, its own included, keep their old directions. The residual of XPBD
stagnates without g [PXPBD section 3.3].

    BNH                                 here, right column in the letters of this file
    xᵗ                                  xₙ
    ω_e                                 V
    α, α̃ = α/Δt²                        1/k, 1/(k Δt²)
    M⁻¹                                 W/Δt², W = Δt²/m
    λ                                   Δt² λ
    A = ∇C M⁻¹ ∇Cᵀ + α̃                  (k ∇C W ∇Cᵀ + 1)/(k Δt²)
    C^H, C^D, α^H, α^D [eq. 8, 9]       C, 1/k of the `constraint_pair` of materials/neo_hookean.py, with the
                                        Lamé parameter λ̂ = λ + μ for λ [PBNG eq. 8]
    C₁, C₂ [PXPBD eq. 5]                those of materials/corotated.py
    h = Δt/numSubSteps [Algorithm 1]    Δt: `simulate` divides steps into substeps

Algorithm 1 makes one pass over the constraints per substep; further iterations are those of eq. 5. Algorithm
2 orders all constraints by color; here, one visit updates both constraints of an element in turn. Materials
without a pair, and all with constraints="root", take the single constraint √(2 ψ + 1e-12 μ) instead
(`root_constraint`); PXPBD section 5.3 has √ψ. The 1e-12 μ is our own addition, as is `MIN_MOBILITY`, for hard
constraints only.

C may be nonzero in the undeformed body, as in the neo-Hookean pair: λ = -k C there, and the forces cancel
only while both gradients keep their values. Frozen gradients then cause an error that is a fraction of the
whole elastic force. A step that is iterated to convergence has this error at any load, however small. Few
sweeps in short steps hide it.

Weak constraints and body contact: elementwise/weak_constraints.py. Grid-embedded elements [PXPBD section
5.5]: elementwise/grid_embedded.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

from supple.algebra.matrix3 import scale_matrix
from supple.kernels import device_function, generic, load, store, where
from supple.materials import MATERIALS, constraint_pair, psi, shear_modulus, stress
from supple.problem import Problem
from supple.solvers.elementwise.element_run import ElementOptions, ElementRun
from supple.solvers.elementwise.gather import (
    corner_gradients,
    corners_of,
    load_constraint,
    load_element,
    scatter_corners,
    shift_corners,
    weighted_dot,
)
from supple.solvers.elementwise.projection import (
    Projection,
    WeightedElements,
    new_memory,
    project,
    projects,
    require,
)
from supple.support.arguments import check_choice, check_flag
from supple.support.keywords import suggest_keywords
from supple.terms import Term
from supple.terms.base.constraint import ConstraintRows
from supple.terms.base.elastic import ElasticRows, measure

MIN_MOBILITY = 1e-3
"""Smallest mobility Σ W|∇C|² of a hard constraint, relative to its value away from rest."""

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
"""Identity matrix, row by row."""

REST_TOLERANCE = 1e-3
"""Values |C| of strain-like constraints below this one count as 0."""

MAX_SWEEPS_WITHOUT_REMARK = 3
"""Most sweeps per step without a remark on pairs that do not vanish at rest."""


# Elements with two constraints, updated in turn.


class PairProjection(Projection):
    """Elements with two constraints, updated sequentially by `update_constraint`."""

    __slots__ = ()


@generic
def update_constraint(projection, x, W, g, gradient, C, k, row, slot):
    """Update one constraint of an element; return the new corners.

    Args:
        projection: Projection of the method.
        x: Displacements of the corners.
        W: W of the corners.
        g: Shape gradients, which determine the mobility of the element.
        gradient: ∇C at the corners.
        C: Constraint.
        k: Stiffness V κ.
        row: Row of elements.
        slot: Index of the constraint's multiplier in the element.
    """


@project.of(PairProjection)
def _project_pair(projection, row, u):
    """Update both constraints of an element in turn: BNH Algorithm 2 with one visit per pair.

    The graph that is colored has one node per pair, not one per constraint.
    """
    elements = projection.elements
    x, W, g, V, material = load_element(elements, row, u)
    C, dC_dF, modulus = constraint_pair(material, measure(elements.rows, x, g))[:3]
    x = update_constraint(
        projection, x, W, g, corner_gradients(elements, row, dC_dF, g), C, modulus * V, row, 0
    )
    C, dC_dF, modulus = constraint_pair(material, measure(elements.rows, x, g))[3:]
    x = update_constraint(
        projection, x, W, g, corner_gradients(elements, row, dC_dF, g), C, modulus * V, row, 1
    )
    scatter_corners(elements, row, u, x)


class XPBDPair(PairProjection):
    """Constraint pair of XPBD or block XPBD, with a report remark on pairs that do not vanish at rest."""

    __slots__ = ()

    def remark(self, sweeps: int) -> str:
        kind: Any = type(self.elements.rows.material)
        if sweeps <= MAX_SWEEPS_WITHOUT_REMARK or vanishes_at_rest(kind):
            return ""
        return (
            f"the constraints of {kind.__name__} are not zero at rest: with many sweeps per step, here "
            f"{sweeps}, the error exceeds the effect of small loads; use shorter steps of few sweeps, or "
            "pbng or fpxpbd"
        )


class XPBDPairProjection(XPBDPair):
    """Constraint pair of each element, updated sequentially.

    Attributes:
        memory: λ of both constraints, (rows, 2, lanes).
        options: (compliant,), 1.0, or 0.0 for hard constraints, without compliance.
    """

    __slots__ = ()


@update_constraint.of(XPBDPairProjection)
def _update_pair(projection, x, W, g, gradient, C, k, row, slot):
    return _solve_constraint(x, W, gradient, C, k, projection, row, slot, weighted_dot(W, g, g))


@device_function
def _solve_constraint(x, W, gradient, C, k, projection, row, slot, reference_mobility):
    """Apply one XPBD update of a constraint; return the new corners.

    Args:
        x: Displacements of the corners.
        W: W of the corners.
        gradient: ∇C at the corners.
        C: Constraint.
        k: Stiffness V κ.
        projection: Projection with λ and `compliant`.
        row: Row of elements.
        slot: Index of the constraint's multiplier λ in the element.
        reference_mobility: Σ W|∇C|² away from rest. In the undeformed body, gradients vanish while a C with
            an ε under its root does not; a fraction of this mobility keeps hard constraints from overshooting
            there.
    """
    (multipliers,), (compliant,) = projection.memory, projection.options
    lam = load(multipliers, row, slot)
    mobility = weighted_dot(W, gradient, gradient) + (1.0 - compliant) * MIN_MOBILITY * reference_mobility
    d_lam = multiplier_step(C, k, lam, mobility, compliant)
    store(multipliers, row, slot, lam + d_lam)
    return shift_corners(x, d_lam, W, gradient)


@device_function
def multiplier_step(C, k, lam, mobility, compliant):
    """Δλ = -(k C + λ)/(k Σ W|∇C|² + 1) [BNH Algorithm 1, GPBD eq. 11].

    λ is the papers' λ over Δt², so that λ ∇C is a force. Without compliance, k → ∞ gives -C/Σ W|∇C|², the
    update of PBD [PBNG section 6.1]. (PBNG eq. 26 prints -C + α/Δt² C for -(C + α/Δt² λ).)
    """
    denominator = k * mobility + compliant
    nonzero = denominator > 0.0
    return -(k * C + compliant * lam) / where(nonzero, denominator, 0.0 * denominator + 1.0)


# The square root of the energy as the only constraint of an element.


class RootProjection(Projection):
    """Elements with the single constraint C = √(2 ψ).

    Attributes:
        memory: λ, (rows, 1, lanes).
        options: (compliant,), 1.0 or 0.0.
    """

    __slots__ = ()


@project.of(RootProjection)
def _project_root(projection, row, u):
    """Update the square-root energy constraint of any material.

    PXPBD section 5.3 finds it unstable; here, with 2 ψ raised by 1e-12 μ, it jitters.
    """
    elements = projection.elements
    x, W, g, V, material = load_element(elements, row, u)
    C, dC_dF = root_constraint(material, measure(elements.rows, x, g))
    gradient = corner_gradients(elements, row, dC_dF, g)
    reference = shear_modulus(material) * weighted_dot(W, g, g)
    scatter_corners(elements, row, u, _solve_constraint(x, W, gradient, C, V, projection, row, 0, reference))


@device_function
def root_constraint(material, F):
    """C = √(2 ψ + ε) [√Pa] and ∂C/∂F = P/C; ε = 1e-12 μ avoids P/C = 0/0 at rest.

    With k = V, this is the energy of PXPBD section 5.3, whose C = √ψ has the factor 2 in its compliance
    instead.
    """
    energy = psi(material, F)
    C = math.sqrt(2.0 * max(energy, 0.0 * energy) + 1e-12 * shear_modulus(material))
    return C, scale_matrix(1.0 / C, stress(material, F))


# Elements that consist of one constraint, such as springs.


class SingleProjection(Projection):
    """Elements that consist of one constraint.

    Attributes:
        memory: λ, (rows, 1, lanes).
        options: (compliant,), 1.0 or 0.0.
    """

    __slots__ = ()


@project.of(SingleProjection)
def _project_single(projection, row, u):
    """Update an element that consists of one constraint [BNH Algorithm 1]."""
    elements = projection.elements
    x, W = corners_of(elements, row, u)
    C, gradient, k = load_constraint(elements, row, x)
    scatter_corners(elements, row, u, _solve_constraint(x, W, gradient, C, k, projection, row, 0, 0.0 * C))


@suggest_keywords
@dataclass(frozen=True)
class XPBD(ElementOptions):
    """XPBD with continuum constraints.

    Args:
        constraints: "pair", two per element [BNH eq. 8-9 for neo-Hookean, PXPBD eq. 5 for corotated]; "root",
            the square root of the energy, for any material; "auto", the pair if the material has one.
        compliant: False makes every constraint of an element hard, as stiff as the sweeps allow, whatever the
            stiffness of the material: PBD as the limit of XPBD [PBNG section 6.1], a baseline. Attachments
            keep their stiffness.
        primal_residual: "kept" includes the primal residual of the positions (elementwise/full_residual.py)
            [PXPBD eq. 13, Fig. 3b]: an unstable baseline, for materials with a pair, in dynamics only.
            "omitted" is XPBD.
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

    name: ClassVar[str] = "xpbd"
    history_size: ClassVar[int] = 2

    constraints: Literal["auto", "pair", "root"] = "auto"
    compliant: bool = True
    primal_residual: Literal["omitted", "kept"] = "omitted"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_constraints(self.constraints)
        check_flag("compliant", self.compliant)
        check_choice("primal_residual", self.primal_residual, ("omitted", "kept"))
        if self.primal_residual == "kept" and (not self.compliant or self.constraints == "root"):
            raise ValueError("primal_residual='kept' needs compliant=True and constraints='auto' or 'pair'")

    def begin(self, problem: Problem) -> ElementRun:
        if self.primal_residual == "omitted":
            return super().begin(problem)
        from supple.solvers.elementwise.full_residual import FullResidualRun

        return FullResidualRun(self, problem)

    @property
    def balances_forces(self) -> bool:
        return self.compliant


@projects(XPBD, ElasticRows)
def _elastic(method: XPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements of a material: both constraints in turn, or √(2 ψ)."""
    if method.primal_residual == "kept":
        from supple.solvers.elementwise.full_residual import full_residual_projection

        require_pair(method.name, term.material)
        return [full_residual_projection(term, elements)]
    if use_root(method.name, method.constraints, term.material):
        require(method.name, term.material, shear_modulus)
        return [RootProjection(elements, new_memory(elements, 1), (float(method.compliant),))]
    kind: Any = type(term.material)
    if not method.compliant and not vanishes_at_rest(kind):
        raise ValueError(
            f"compliant=False drives all constraints to zero, but those of {kind.__name__} are not zero "
            "at rest, so the body would collapse; use Corotated, or constraints='root'"
        )
    return [XPBDPairProjection(elements, new_memory(elements, 2), (float(method.compliant),))]


@projects(XPBD, ConstraintRows)
def _single_constraints(method: XPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements with one constraint."""
    return [SingleProjection(elements, new_memory(elements, 1), (float(method.compliant),))]


# Constraints of a material, also for the other methods with multipliers.


def has_pair(material: Any) -> bool:
    """True if a material's energy is implemented as two constraints."""
    return constraint_pair.has_implementation(type(material))


@cache
def vanishes_at_rest(kind: Any) -> bool:
    """True if both constraints of a material class vanish in the undeformed state."""
    C1, _, _, C2, _, _ = constraint_pair(kind.example(), IDENTITY)
    return abs(C1) < REST_TOLERANCE and abs(C2) < REST_TOLERANCE


def require_pair(method: str, material: Any) -> None:
    """Check that a material has a pair of constraints.

    Raises:
        ValueError: It has none.
    """
    if not has_pair(material):
        pairs = (cls.__name__ for cls in constraint_pair.classes() if cls in MATERIALS.values())
        known = ", ".join(sorted(pairs))
        raise ValueError(
            f"{method} needs a material whose energy is a pair of constraints ({known}), got "
            f"{type(material).__name__}; fpxpbd, gpbd and pbng support every material"
        )


def check_constraints(choice: str) -> None:
    """Check the option `constraints`."""
    check_choice("constraints", choice, ("auto", "pair", "root"))


def use_root(method: str, choice: str, material: Any) -> bool:
    """True if a solver uses the square root of the energy instead of a constraint pair.

    Raises:
        ValueError: The choice is "pair", and the material has none.
    """
    if choice == "pair":
        require_pair(method, material)
    return choice == "root" or (choice == "auto" and not has_pair(material))
