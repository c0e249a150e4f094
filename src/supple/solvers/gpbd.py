"""Generalized position-based dynamics for arbitrary energies [GPBD Algorithm 1]:

    x ← x⁻ + Δt v⁻ + W f_ext,  d ← 0 of all elements        elementwise/run.py, ElementRun._begin_step
    for each iteration                                      elementwise/run.py, ElementRun.advance
        for each element, color by color                    elementwise/run.py, sweep_projections
            x ← x unfolded, if inverted  [section 4.1]      in `element_step`: inversion_recovery.py
            S ← ds/dx at x, s the Green strain              in `element_step`: F and g of the element
            Δλ ← minimum of eq. 19                          gpbd_local_solve.py
            Δd ← W Sᵀ Δλ  [eq. 18]                          in `element_step`
            d ← d + Δd,  x ← x + Δd  [eq. 13, 14]           `_project_green`
    v ← (x - x⁻)/Δt                                         solve/time_loop.py

Each element stores the displacement d by which its force has moved its corners. x = x̃ + Σ d holds at all
times, except for elements that were inverted and unfolded [section 4.1; inversion_recovery.py].
With the six multipliers Δλ as a symmetric matrix Λ, Sᵀ Δλ is F Λ gᵢ at corner i, so that Δdᵢ = Wᵢ F Λ gᵢ, W =
Δt²/m. In the code, x is the displacement of a corner, not its position (elementwise/gather.py).

Deviations from the paper:

- The paper runs Jacobi sweeps with over-relaxation; they are sweep="jacobi" with jacobi_weights="vertex".
- In a Gauss-Seidel sweep, an inverted element takes the fraction `inversion_recovery.INVERSION_DAMPING` of
  its unfolding and of its Δd; section 4.1 takes all of them.
- An inverted element is unfolded to singular values of at least `inversion_recovery.MIN_STRETCH`; section
  4.1 only negates the smallest one.
- Newton's method with line search on eq. 19 makes `newton_steps` steps, by default one, and uses a bound in
  place of the Hessian of ψ (gpbd_local_solve.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from supple.algebra.matrix3 import dot, matmul
from supple.algebra.symmetric import full
from supple.kernels import device_function, each, total, where
from supple.materials import bound_coefficients
from supple.solvers.elementwise.gather import (
    constrained_corners,
    corners_of,
    element,
    free_corners,
    load_corners,
    one_constraint,
    plus,
    scatter_corners,
    spread,
    store_corners,
    times,
    weighted,
    weighted_square,
)
from supple.solvers.elementwise.gpbd_local_solve import local_minimum
from supple.solvers.elementwise.inversion_recovery import inversion_damping, unfold
from supple.solvers.elementwise.jacobi import (
    JACOBI_WEIGHTS,
    jacobi_options,
    merge_colors,
    shares_of,
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
from supple.solvers.elementwise.run import ElementOptions
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
    x, W, g, V, material = element(elements, row, u)
    d = load_corners(x, displacements, row, 0)
    share = inversion_damping(elements.rows, material, x, g)
    unfolding, step = element_step(projection, row, x, W, g, V, material, d)
    step = times(share, step)
    store_corners(displacements, row, 0, plus(d, step))
    scatter_corners(elements, row, u, plus(x, plus(times(share, unfolding), step)))


@device_function
def element_step(projection, row, x, W, g, V, material, d):
    """Compute the unfolding displacements of an inverted element, and Δd, at its corners.

    From the unfolded shape, Δd = W Sᵀ Δλ with the Δλ that minimizes ½|d + Δd|²_{W⁻¹} + U(x + Δd) [eq. 18,
    19].
    """
    rows, N = projection.elements.rows, constrained_corners(projection.elements, row)
    x_unfolded = unfold(rows, material, x, W, g, N)
    F = measure(rows, x_unfolded, g)  # F and g represent S
    Lam = local_minimum(material, F, W, g, V, d, N, projection.options.newton_steps)
    step = weighted(W, free_corners(N, spread(matmul(F, full(Lam)), g)))
    return plus(x_unfolded, times(-1.0, x)), step


class SingleProjection(Projection):
    """Elements that consist of one constraint.

    Attributes:
        memory: d (rows, 3 k, lanes) of the k corners of each element [m].
    """

    __slots__ = ()


@project.of(SingleProjection)
def _project_single(projection, row, u):
    """Minimize ½|d + Δd|²_{W⁻¹} + ½ k C² over Δd = W ∇C Δλ, with C linearized.

    Δλ = -(∇C·d + s k C)/(s + k s²) with s = Σ W |∇C|² [eq. 19 with C as the strain]. While ∇C keeps its
    direction, d = λ W ∇C and ∇C·d = λ s, which gives XPBD's update [eq. 11].
    """
    elements, (displacements,) = projection.elements, projection.memory
    x, W = corners_of(elements, row, u)
    C, gradient, k = one_constraint(elements, row, x)
    d = load_corners(x, displacements, row, 0)
    s = weighted_square(W, gradient, gradient)
    moves = (s > 0.0) & (k > 0.0)
    bottom = where(moves, s + k * s * s, 0.0 * s + 1.0)
    d_lam = where(moves, -(_along(gradient, d) + s * k * C) / bottom, 0.0 * s)
    step = times(d_lam, weighted(W, gradient))
    store_corners(displacements, row, 0, plus(d, step))
    scatter_corners(elements, row, u, plus(x, step))


_along = total("a, b", "dot(a[i], b[i])", dot, over="a")


class JacobiProjection(GreenProjection):
    """All elements in one color: the Jacobi form, used by the paper.

    Attributes:
        options: JacobiOptions.
    """

    __slots__ = ()


@project.of(JacobiProjection)
def _propose(projection, row, u):
    """Compute one element's step from start-of-sweep positions, scaled by its share.

    The share (jacobi.py) keeps the sum of the steps at a vertex from overshooting. A second projection,
    `step_sum`, moves the vertices.
    """
    (displacements,), options = projection.memory, projection.options
    x, W, g, V, material = element(projection.elements, row, u)
    d = load_corners(x, displacements, row, 0)
    mobility_factor, share = shares_of(projection, row, x, g, material)
    unfolding, step = element_step(
        projection, row, x, products(mobility_factor, W), g, V, material, weighted(mobility_factor, d)
    )
    step = weighted(share, step)
    store_corners(displacements, row, 0, plus(d, step))
    store_corners(options.steps, row, 0, plus(weighted(share, unfolding), step))


products = each("a, b", "a[i] * b[i]", over="a")


@suggest_keywords
@dataclass(frozen=True)
class GPBD(ElementOptions):
    """Generalized PBD for any material.

    Args:
        newton_steps: Local Newton steps per visit.
        sweep: "gauss_seidel" updates elements color by color; "jacobi" updates all elements from the same
            positions.
        jacobi_weights: Damping that keeps the sum of Jacobi steps from overshooting: "mass" shares
            the mass of vertices among elements, "vertex" averages at each vertex, as in the paper, and
            "element" scales the step of each element by one factor.
        omega: Relaxation factor of these weights.
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

    name: ClassVar[str] = "gpbd"
    history_size: ClassVar[int] = 12
    recovers: ClassVar[bool] = True

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
    require(method.name, term.material, bound_coefficients)
    memory = new_memory(elements, 3 * elements.weights.shape[1])
    if method.sweep == "gauss_seidel":
        return [GreenProjection(elements, memory, GreenOptions(method.newton_steps))]
    options = jacobi_options(method.newton_steps, method.omega, method.jacobi_weights, term, elements)
    return [JacobiProjection(merge_colors(elements), memory, options), step_sum(elements, options.steps)]


@projects(GPBD, ConstraintRows)
def _single(method: GPBD, term: Term, elements: WeightedElements) -> list:
    if method.sweep == "jacobi":
        raise ValueError(f"gpbd with sweep='jacobi' cannot treat {term.name}; sweep='gauss_seidel' can")
    return [SingleProjection(elements, new_memory(elements, 3 * elements.weights.shape[1]))]
