"""Generalized position-based dynamics for arbitrary energies [GPBD: Chaudhary et al. 2025, Algorithm 1]:

    x ← x⁻ + Δt v⁻                                          Problem.begin_step (problem/problem.py)
        + W f_ext,  d ← 0 of all elements                   ElementRun._begin_step (element_run.py)
    for each iteration                                      ElementRun.advance (elementwise/element_run.py)
        for each element, color by color                    sweep_projections (elementwise/element_run.py)
            x ← x unfolded, if inverted  [section 4.1]      unfold (elementwise/inversion_recovery.py)
            S ← ds/dx at x, s the Green strain              F and g in `solve_element`
            Δλ ← minimum of eq. 19                          local_minimum (elementwise/gpbd_local_solve.py)
            Δd ← W Sᵀ Δλ  [eq. 18]                          `solve_element`
            d ← d + Δd,  x ← x + Δd  [eq. 13, 14]           `_project_green`
        contact with obstacles                              ContactProjection
            (paper: SDF projection [section 5.1])           (elementwise/contact_projection.py)
    v ← (x - x⁻)/Δt                                         TimeLoop._set_velocities (solve/time_loop.py)

Each element stores the displacement d by which its force has moved its corners. x = x̃ + Σ d [eq. 6] holds at
all times, except for elements that were inverted and unfolded [section 4.1]. Let Λ be the symmetric matrix of
the six multipliers Δλ, those of off-diagonal strains halved. Then Sᵀ Δλ is F Λ gᵢ at corner i, so that Δdᵢ =
Wᵢ F Λ gᵢ. Only the increments Δd are in the range of W Sᵀ, not their sum d. Sweeps therefore do not converge
to backward Euler [section 3.2].

    GPBD                                here, right column in the letters of this file
    W                                   W = Δt²/m
    d, Δd                               d, delta_d: displacements of the corners
    i, a force                          an element; here i numbers its corners
    Δλ                                  Lam, the six entries of Λ
    U                                   V ψ
    S                                   represented by F and g
    c, α [eq. 8]                        C, 1/k of elements with one constraint

HYLC cloth [section 4.2, eq. 22, 23]: elementwise/gpbd_fabric.py. Weak constraints and body contact:
elementwise/weak_constraints.py. Deviations from the paper:

- Sweeps are Gauss-Seidel as printed in Algorithm 1. The paper runs Jacobi sweeps with over-relaxation; they
  are sweep="jacobi" with jacobi_weights="vertex" (elementwise/jacobi.py), for which the default is "mass".
  Barrier elements near inversion take the smaller share of "element".
- Only materials with a barrier are unfolded and damped. In a Gauss-Seidel sweep, an inverted element takes
  the fraction `inversion_recovery.INVERSION_DAMPING` of its unfolding and of its Δd; section 4.1 takes all of
  them.
- An element with det F ≤ MIN_STRETCH³ is unfolded to singular values of at least
  `inversion_recovery.MIN_STRETCH`; section 4.1 only negates the smallest one.
- Newton's method with line search on eq. 19 makes `newton_steps` steps, by default one; the paper makes up to
  20 for neo-Hookean materials [section 5.3]. The Hessian of ψ is replaced by the positive definite a I + b
  cof ⊗ cof, a, b of `bound_coefficients` (elementwise/gpbd_local_solve.py).
- The local 6×6 Hessian H of eq. 19 is shifted to H + 1e-6 tr(H) I, since pinned corners make H singular
  (`DIAGONAL_SHIFT`).
- Contact with obstacles has contact forces and friction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from supple.algebra.matrix3 import matmul
from supple.algebra.symmetric import symmetric_matrix
from supple.kernels import device_function, each, where
from supple.materials import bound_coefficients
from supple.solvers.elementwise.element_run import ElementOptions
from supple.solvers.elementwise.gather import (
    constrained_corners,
    corner_dot,
    corners_of,
    free_corners,
    load_constraint,
    load_corners,
    load_element,
    matvec_each,
    plus,
    scatter_corners,
    store_corners,
    times,
    times_weights,
    weighted_dot,
)
from supple.solvers.elementwise.gpbd_local_solve import local_minimum
from supple.solvers.elementwise.inversion_recovery import inversion_damping, unfold
from supple.solvers.elementwise.jacobi import (
    JACOBI_WEIGHTS,
    jacobi_options,
    load_shares,
    merge_colors,
    step_sum,
)
from supple.solvers.elementwise.projection import (
    Projection,
    WeightedElements,
    new_memory,
    project,
    projects,
    require,
)
from supple.support.arguments import check_choice, check_integer, check_number
from supple.support.keywords import suggest_keywords
from supple.terms import Term
from supple.terms.base.constraint import ConstraintRows
from supple.terms.base.elastic import ElasticRows, measure


class GreenOptions(NamedTuple):
    """Options of projections with a local minimization.

    Attributes:
        newton_steps: Newton steps on eq. 19 per visit.
    """

    newton_steps: Any


class GreenProjection(Projection):
    """Elements with the Green strain as s.

    Attributes:
        memory: d (rows, 3 k, lanes) of the k corners of each element [m].
        options: GreenOptions.
    """

    __slots__ = ()


@project.of(GreenProjection)
def _project_green(projection, row, u):
    """Update one element, the body of the inner loop of the box.

    An inverted element takes the fraction `INVERSION_DAMPING` of the displacement that unfolds it and of Δd;
    the paper takes all of them [section 4.1].
    """
    elements, (displacements,) = projection.elements, projection.memory
    x, W, g, V, material = load_element(elements, row, u)
    d = load_corners(x, displacements, row, 0)
    damping = inversion_damping(elements.rows, material, x, g)
    unfolding, delta_d = solve_element(projection, row, x, W, g, V, material, d)
    delta_d = times(damping, delta_d)
    store_corners(displacements, row, 0, plus(d, delta_d))
    scatter_corners(elements, row, u, plus(x, plus(times(damping, unfolding), delta_d)))


@device_function
def solve_element(projection, row, x, W, g, V, material, d):
    """Compute the unfolding displacements of an inverted element, and Δd, at its corners.

    From the unfolded shape, Δd = W Sᵀ Δλ with the Δλ that minimizes ½|d + Δd|²_{W⁻¹} + U(x + Δd) [eq. 18,
    19].
    """
    rows, N = projection.elements.rows, constrained_corners(projection.elements, row)
    x_unfolded = unfold(rows, material, x, W, g, N)
    F = measure(rows, x_unfolded, g)  # F and g represent S
    Lam = local_minimum(material, F, W, g, V, d, N, projection.options.newton_steps)
    delta_d = times_weights(W, free_corners(N, matvec_each(matmul(F, symmetric_matrix(Lam)), g)))
    return plus(x_unfolded, times(-1.0, x)), delta_d


class GPBDSingleProjection(Projection):
    """Elements that consist of one constraint.

    Attributes:
        memory: d (rows, 3 k, lanes) of the k corners of each element [m].
    """

    __slots__ = ()


@project.of(GPBDSingleProjection)
def _project_single(projection, row, u):
    """Minimize ½|d + Δd|²_{W⁻¹} + ½ k C² over Δd = W ∇C Δλ, with C linearized.

    Δλ = -(∇C·d + s k C)/(s + k s²) with the mobility s = Σ W |∇C|² [eq. 19 with C as the strain]. While ∇C
    keeps its direction, d = λ W ∇C and ∇C·d = λ s, which gives XPBD's update [eq. 11].
    """
    elements, (displacements,) = projection.elements, projection.memory
    x, W = corners_of(elements, row, u)
    C, gradient, k = load_constraint(elements, row, x)
    d = load_corners(x, displacements, row, 0)
    mobility = weighted_dot(W, gradient, gradient)
    nonzero = (mobility > 0.0) & (k > 0.0)
    denominator = where(nonzero, mobility + k * mobility * mobility, 0.0 * mobility + 1.0)
    numerator = corner_dot(gradient, d) + mobility * k * C
    d_lam = where(nonzero, -numerator / denominator, 0.0 * mobility)
    delta_d = times(d_lam, times_weights(W, gradient))
    store_corners(displacements, row, 0, plus(d, delta_d))
    scatter_corners(elements, row, u, plus(x, delta_d))


class JacobiProjection(GreenProjection):
    """All elements in one color: the Jacobi form, used by the paper.

    Attributes:
        options: JacobiOptions.
    """

    __slots__ = ()


@project.of(JacobiProjection)
def _project_jacobi(projection, row, u):
    """Compute one element's Δd from start-of-sweep positions, scaled by its share.

    The share (jacobi.py) keeps the sum of the steps at a vertex from overshooting. A second projection,
    `step_sum`, moves the vertices.
    """
    (displacements,), options = projection.memory, projection.options
    x, W, g, V, material = load_element(projection.elements, row, u)
    d = load_corners(x, displacements, row, 0)
    mobility_factor, share = load_shares(projection, row, x, g, material)
    scaled_W, scaled_d = multiply_each(mobility_factor, W), times_weights(mobility_factor, d)
    unfolding, delta_d = solve_element(projection, row, x, scaled_W, g, V, material, scaled_d)
    delta_d = times_weights(share, delta_d)
    store_corners(displacements, row, 0, plus(d, delta_d))
    store_corners(options.steps, row, 0, plus(times_weights(share, unfolding), delta_d))


multiply_each = each("a, b", "a[i] * b[i]", over="a")
"""aᵢ bᵢ of two tuples of numbers."""


@suggest_keywords
@dataclass(frozen=True)
class GPBD(ElementOptions):
    """Generalized PBD for any material.

    Args:
        newton_steps: Local Newton steps per visit.
        sweep: "gauss_seidel" updates elements color by color; "jacobi" updates all elements from the same
            positions.
        jacobi_weights: Damping that keeps the sum of Jacobi steps from overshooting: "mass" shares
            the mass of vertices among elements, "vertex" averages at each vertex [GPBD section 3.1],
            and "element" scales the step of each element by one factor.
        omega: Relaxation factor of these weights.
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

    name: ClassVar[str] = "gpbd"
    history_size: ClassVar[int] = 12
    recovers_from_inversion: ClassVar[bool] = True

    newton_steps: int = 1
    sweep: Literal["gauss_seidel", "jacobi"] = "gauss_seidel"
    jacobi_weights: Literal["mass", "vertex", "element"] = "mass"
    omega: float = 1.5

    only_with: ClassVar[dict[str, tuple[str, str]]] = {
        **ElementOptions.only_with,
        "jacobi_weights": ("sweep", "jacobi"),
        "omega": ("sweep", "jacobi"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("newton_steps", self.newton_steps)
        check_choice("sweep", self.sweep, ("gauss_seidel", "jacobi"))
        check_choice("jacobi_weights", self.jacobi_weights, JACOBI_WEIGHTS)
        check_number("omega", self.omega, above=0, below=2)


@projects(GPBD, ElasticRows)
def _elastic(method: GPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements of a material, and in Jacobi form the sum of their steps."""
    require(method.name, term.material, bound_coefficients)
    memory = new_memory(elements, 3 * elements.weights.shape[1])
    if method.sweep == "gauss_seidel":
        return [GreenProjection(elements, memory, GreenOptions(method.newton_steps))]
    options = jacobi_options(method.newton_steps, method.omega, method.jacobi_weights, term, elements)
    return [JacobiProjection(merge_colors(elements), memory, options), step_sum(elements, options.steps)]


@projects(GPBD, ConstraintRows)
def _single_constraints(method: GPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements with one constraint."""
    if method.sweep == "jacobi":
        raise ValueError(f"gpbd with sweep='jacobi' does not support {term.name}; use sweep='gauss_seidel'")
    return [GPBDSingleProjection(elements, new_memory(elements, 3 * elements.weights.shape[1]))]
