"""Position-based dynamics with C = E [PBCM: Bender et al. 2014, Algorithm 1, sections 3-4.2]:

    x ← xₙ + Δt vₙ  [lines 1, 2]                            Problem.begin_step (problem/problem.py)
        + Δt² M⁻¹ f_ext  [1, 2]                             ElementRun._begin_step (element_run.py)
    for each iteration  [3]                                 ElementRun.advance (elementwise/element_run.py)
        for each element, color by color  [4]               sweep_projections (elementwise/element_run.py)
            λ ← -E/Σ wⱼ |∂E/∂xⱼ|²  [5, eq. 3]               `multiplier`
            xᵢ ← xᵢ + wᵢ λ ∂E/∂xᵢ  [6, 7, eq. 2]             `_project_energy`
        contact with obstacles, our own                     `ContactProjection`
                                                            (elementwise/contact_projection.py)
    v ← (x - xₙ)/Δt, and damped  [10, 12]                   TimeLoop._set_velocities (solve/time_loop.py)

Each constraint is an energy E. Collisions in the paper are continuous collision detection and response after
line 10 [11], so they do not enter v by differencing; here, contact in every sweep does.

    PBCM                                here, right column in the letters of the code
    E_s, Ψ_s                            V ψ, ψ (`psi`)
    ∂E_s/∂xᵢ                            V P gᵢ, with shape gradients gᵢ; `gradient` is P gᵢ
    P                                   P, with the clamp [section 4.2] from clamped_energy
    w = 1/m                             W/Δt², W = Δt²/m
    λ [eq. 3]                           Δt²/V lam, since lam = -ψ/Σ Wⱼ |P gⱼ|²
    k, Young's modulus                  young

E and ∂E/∂x are those of `clamped_energy`, the paper's inversion handling [section 4.2, Fig. 2]
(materials/clamping.py). Our own additions are `stiffness`, the linear continuation of ψ below the clamp, and
weak constraints. Viscous materials, which C = E would make rigid, and cables under tension are refused. The
PBD of PBNG's figures is xpbd with compliant=False.

Two options are baselines of the paper, here for tetrahedra only (elementwise/geometric.py).
constraints="distance" keeps the lengths of edges [section 3.2]; the paper compares it on cloth [section 6],
which is refused here. constraints="shape" is shape matching [section 6] of single tetrahedra; the paper takes
the fast summation of Diziol et al.

Plasticity [section 4.2]: materials/plastic_stvk.py. Cloth [section 4.3]: materials/woven_stvk.py,
terms/shells/isometric_bending.py. Weak constraints and body contact: elementwise/weak_constraints.py.

There is no compliance, and Young's modulus cancels: a factor of E changes λ ∂E/∂xᵢ of eq. 2 and 3 not at all.
Fig. 5, right, shows strain that depends on Young's modulus, which eq. 3 cannot give. The body becomes stiffer
with more sweeps and shorter time steps instead. In quasistatics, external forces lose their effect as sweeps
are added [PBNG section 6.1]. Solids settle for ν up to about 1/3 only, see docs/design/constraint_family.md;
use xpbd or pbng if Poisson's ratio matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from supple.kernels import device_function, where
from supple.materials.clamping import clamped_energy
from supple.solvers.elementwise.element_run import ElementOptions
from supple.solvers.elementwise.gather import (
    corner_gradients,
    corners_of,
    load_constraint,
    load_element,
    scatter_corners,
    shift_corners,
    weighted_dot,
)
from supple.solvers.elementwise.geometric import DistanceProjection, ShapeProjection
from supple.solvers.elementwise.projection import Projection, WeightedElements, project, projects
from supple.solvers.elementwise.weak_constraints import HardWeak
from supple.support.arguments import check_choice, check_number
from supple.support.keywords import suggest_keywords
from supple.terms import Term
from supple.terms.base.constraint import ConstraintRows
from supple.terms.base.elastic import ElasticRows, measure
from supple.terms.cable import TensionRows
from supple.terms.weak_constraint import WeakRows


class EnergyProjection(Projection):
    """Energy constraints without history variables.

    Attributes:
        options: (stiffness,), the fraction of each correction that is applied.
    """

    __slots__ = ()


@project.of(EnergyProjection)
def _project_energy(projection, row, u):
    """Project one energy constraint: lines 5-7 of the box.

    E = V ψ and ∂E/∂xᵢ = V P gᵢ; the V of λ ∂E/∂xᵢ cancels. Below clamped stretches [section 4.2], ψ continues
    linearly, so that P is its derivative. This continuation, and rounding near rest, may give ψ < 0; no
    correction is made then.
    """
    elements, (stiffness,) = projection.elements, projection.options
    x, W, g, V, material = load_element(elements, row, u)
    psi, P = clamped_energy(material, measure(elements.rows, x, g))
    gradient = corner_gradients(elements, row, P, g)
    lam = multiplier(stiffness * max(psi, 0.0 * V), W, gradient)
    scatter_corners(elements, row, u, shift_corners(x, lam, W, gradient))


@device_function
def multiplier(C, W, gradient):
    """λ = -C/Σ Wⱼ |∂C/∂xⱼ|² [eq. 3]; 0 for a zero sum: at rest, in padding, or with all corners pinned."""
    denominator = weighted_dot(W, gradient, gradient)
    nonzero = denominator > 0.0
    return -where(nonzero, C / where(nonzero, denominator, 0.0 * denominator + 1.0), 0.0 * denominator)


class HardSingleProjection(Projection):
    """Hard single constraints without history variables.

    Attributes:
        options: (stiffness,), the fraction of each correction that is applied.
    """

    __slots__ = ()


@project.of(HardSingleProjection)
def _project_hard_single(projection, row, u):
    """Project one hard constraint: lines 5-7 of the box with C for E; padding has k = 0."""
    elements, (stiffness,) = projection.elements, projection.options
    x, W = corners_of(elements, row, u)
    C, gradient, k = load_constraint(elements, row, x)
    lam = multiplier(stiffness * where(k > 0.0, C, 0.0 * C), W, gradient)
    scatter_corners(elements, row, u, shift_corners(x, lam, W, gradient))


@suggest_keywords
@dataclass(frozen=True)
class PBD(ElementOptions):
    """PBD with energy constraints, for any material; the paper's are StVK and LogNeoHookean.

    Args:
        constraints: "energy", or a baseline of the paper, which ignores the material: "distance", the edges
            of tetrahedra [PBCM section 3.2], or "shape", shape matching of each tetrahedron [PBCM section 6].
        stiffness: Fraction of each correction that is applied.
        damping: Fraction of every velocity that is removed per step.
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

    name: ClassVar[str] = "pbd"
    recovers_from_inversion: ClassVar[bool] = True

    constraints: Literal["energy", "distance", "shape"] = "energy"
    stiffness: float = 1.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("constraints", self.constraints, ("energy", "distance", "shape"))
        check_number("stiffness", self.stiffness, above=0, at_most=1)
        check_number("damping", self.damping, at_least=0, below=1)

    @property
    def balances_forces(self) -> bool:
        return False


@projects(PBD, ElasticRows)
def _elastic(method: PBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements of a material: energy, distances or shape."""
    if term.material.dissipates:
        raise ValueError(
            "pbd does not support viscosity, which would become a rigid constraint; use pbng or newton"
        )
    if method.constraints == "energy":
        return [EnergyProjection(elements, options=(method.stiffness,))]
    if not term.fills:
        raise ValueError(
            f"pbd with constraints={method.constraints!r} supports tetrahedra, not {term.name}; use "
            "constraints='energy'"
        )
    kind = DistanceProjection if method.constraints == "distance" else ShapeProjection
    return [kind(elements, options=(method.stiffness,))]


@projects(PBD, ConstraintRows)
def _single_constraints(method: PBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements with one constraint."""
    return [HardSingleProjection(elements, options=(method.stiffness,))]


@projects(PBD, TensionRows)
def _tension(method: PBD, term: Term, elements: WeightedElements) -> list:
    """Reject cables under tension, whose forces have no constraint."""
    raise ValueError(
        "pbd does not support cables under tension, because it has no forces; give the cable a length, "
        "or use xpbd"
    )


@projects(PBD, WeakRows)
def _weak(method: PBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of weak constraints."""
    return [HardWeak(elements, options=(method.stiffness,))]
