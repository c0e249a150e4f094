"""Generalised position-based dynamics for arbitrary energies [GPBD Algorithm 1]:

    x ← x⁻ + Δt v⁻ + W f_ext,  d ← 0 of all elements        elementwise.py, ElementRun._begin_step
    for each iteration                                      elementwise.py, ElementRun.advance
        for each element, colour by colour                  element_sweeps.py
            x ← x unfolded, if inverted  [section 4.1]      in `element_step`: unfolding.py
            S ← ds/dx at x, s the Green strain              in `element_step`: F and g of the element
            Δλ ← minimum of eq. 19                          green_minimum.py
            Δd ← W Sᵀ Δλ  [eq. 18]                          in `element_step`
            d ← d + Δd,  x ← x + Δd  [eq. 13, 14]           `_project_green`
    v ← (x - x⁻)/Δt                                         stepping.py

Each element remembers the displacement d that its force has given its corners, and x = x̃ + Σ d at all times,
but for elements that were inverted and unfolded [section 4.1; unfolding.py]. With the six multipliers Δλ as a
symmetric matrix Λ, Sᵀ Δλ is F Λ gᵢ at corner i, so that Δdᵢ = Wᵢ F Λ gᵢ, W = Δt²/m. In the code x is the
displacement of a corner, not its position (elements/corners.py).

What differs from the paper:
- it runs Jacobi sweeps with over-relaxation, which are sweep="jacobi" with shares="vertex";
- an inverted element takes `unfolding.CAUTION` of its unfolding and of its Δd in a Gauss-Seidel sweep, where
  section 4.1 takes all of them;
- it is unfolded to singular values of at least `unfolding.SMALLEST_STRETCH`, where section 4.1 only
  negates the smallest;
- of Newton's method with line search on eq. 19 there are `newton_steps`, one unless asked for more, with a
  bound in place of the Hessian of ψ (green_minimum.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from supple.algebra.matrix3 import dot, matmul
from supple.algebra.symmetric import full
from supple.checks import one_number, one_of, whole_number
from supple.kernels import each, physics, select, total
from supple.materials import bound_coefficients
from supple.solvers.elements.corners import (
    corners_of,
    element,
    free_corners,
    held_corners,
    load_corners,
    one_constraint,
    plus,
    put_corners,
    spread,
    store_corners,
    times,
    weighted,
    weighted_square,
)
from supple.solvers.elements.elementwise import ElementOptions
from supple.solvers.elements.green_minimum import local_minimum
from supple.solvers.elements.jacobi import SHARES, in_one_colour, jacobi_options, shares_of, step_sum
from supple.solvers.elements.projection import Places, Projection, new_memory, project, projects, require
from supple.solvers.elements.unfolding import caution, unfold
from supple.terms import Term
from supple.terms.constraint import ConstraintRows
from supple.terms.elastic import ElasticRows, measure


class GreenOptions(NamedTuple):
    """newton_steps: steps of Newton's method on eq. 19 in each visit."""

    newton_steps: Any


class GreenProjection(Projection):
    """Elements with the Green strain for s. memory: d (rows, 3 k, lanes) of each element's k corners [m].
    options: GreenOptions."""

    __slots__ = ()


@project.of(GreenProjection)
def _project_green(projection, row, u):
    """One element of the box. Where it is inverted it takes `unfolding.CAUTION` of the displacement that
    unfolds it and of Δd; the paper takes all of them [section 4.1]."""
    places, (displacements,) = projection.places, projection.memory
    x, W, g, V, material = element(places, row, u)
    d = load_corners(x, displacements, row, 0)
    share = caution(places.rows, material, x, g)
    unfolding, step = element_step(projection, row, x, W, g, V, material, d)
    step = times(share, step)
    store_corners(displacements, row, 0, plus(d, step))
    put_corners(places, row, u, plus(x, plus(times(share, unfolding), step)))


@physics
def element_step(projection, row, x, W, g, V, material, d):
    """(displacements that unfold an element where it is inverted, Δd) of its corners: from where it is
    unfolded Δd = W Sᵀ Δλ with the Δλ that minimises ½|d + Δd|²_{W⁻¹} + U(x + Δd) [eq. 18, 19]."""
    rows, N = projection.places.rows, held_corners(projection.places, row)
    x_unfolded = unfold(rows, material, x, W, g, N)
    F = measure(rows, x_unfolded, g)  # with g it stands for S
    Lam = local_minimum(material, F, W, g, V, d, N, projection.options.newton_steps)
    step = weighted(W, free_corners(N, spread(matmul(F, full(Lam)), g)))
    return plus(x_unfolded, times(-1.0, x)), step


class SingleProjection(Projection):
    """An element that is one constraint. memory: d (rows, 3 k, lanes) of its k corners [m]."""

    __slots__ = ()


@project.of(SingleProjection)
def _project_single(projection, row, u):
    """The minimum of ½|d + Δd|²_{W⁻¹} + ½ k C² over Δd = W ∇C Δλ, C linearised:
    Δλ = -(∇C·d + s k C)/(s + k s²) with s = Σ W |∇C|² [eq. 19 with C for the strain]. As long as ∇C does not
    turn, d = λ W ∇C and ∇C·d = λ s: that is XPBD's [eq. 11]."""
    places, (displacements,) = projection.places, projection.memory
    x, W = corners_of(places, row, u)
    C, gradient, k = one_constraint(places, row, x)
    d = load_corners(x, displacements, row, 0)
    s = weighted_square(W, gradient, gradient)
    moves = (s > 0.0) & (k > 0.0)
    bottom = select(moves, s + k * s * s, 0.0 * s + 1.0)
    d_lam = select(moves, -(_along(gradient, d) + s * k * C) / bottom, 0.0 * s)
    step = times(d_lam, weighted(W, gradient))
    store_corners(displacements, row, 0, plus(d, step))
    put_corners(places, row, u, plus(x, step))


_along = total("a, b", "dot(a[i], b[i])", dot, over="a")


class AtOnce(GreenProjection):
    """All elements in one colour: the Jacobi form, which the paper uses. options: JacobiOptions."""

    __slots__ = ()


@project.of(AtOnce)
def _propose(projection, row, u):
    """The step of one element from the positions that all have when the sweep begins, times its share
    (jacobi.py), lest the steps of elements at a vertex add up to too much; a further projection, `step_sum`,
    moves the vertices."""
    (displacements,), options = projection.memory, projection.options
    x, W, g, V, material = element(projection.places, row, u)
    d = load_corners(x, displacements, row, 0)
    lighter, share = shares_of(projection, row, x, g, material)
    unfolding, step = element_step(
        projection, row, x, products(lighter, W), g, V, material, weighted(lighter, d)
    )
    step = weighted(share, step)
    store_corners(displacements, row, 0, plus(d, step))
    store_corners(options.steps, row, 0, plus(weighted(share, unfolding), step))


products = each("a, b", "a[i] * b[i]", over="a")


@dataclass(frozen=True)
class GPBD(ElementOptions):
    """Generalised PBD, for any material. newton_steps: local Newton steps per visit. sweep: "gauss_seidel" by
    colours, or "jacobi", all elements from the same positions; shares: how their steps are then kept from
    adding up to too much, by sharing the "mass" of vertices among elements, by the average at each "vertex",
    which is the paper's, or by one part of the step for each "element"; omega: times these shares."""

    name: ClassVar[str] = "gpbd"
    remembers: ClassVar[int] = 12
    recovers: ClassVar[bool] = True

    newton_steps: int = 1
    sweep: Literal["gauss_seidel", "jacobi"] = "gauss_seidel"
    shares: Literal["mass", "vertex", "element"] = "mass"
    omega: float = 1.5

    only_with: ClassVar[dict[str, tuple[str, str]]] = {
        **ElementOptions.only_with,
        "shares": ("sweep", "jacobi"),
        "omega": ("sweep", "jacobi"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("newton_steps", self.newton_steps)
        one_of("sweep", self.sweep, ("gauss_seidel", "jacobi"))
        one_of("shares", self.shares, SHARES)
        one_number("omega", self.omega, above=0, below=2)


@projects(GPBD, ElasticRows)
def _elastic(method: GPBD, term: Term, places: Places) -> list:
    require(method.name, term.material, bound_coefficients)
    memory = new_memory(places, 3 * places.weights.shape[1])
    if method.sweep == "gauss_seidel":
        return [GreenProjection(places, memory, GreenOptions(method.newton_steps))]
    options = jacobi_options(method.newton_steps, method.omega, method.shares, term, places)
    return [AtOnce(in_one_colour(places), memory, options), step_sum(places, options.steps)]


@projects(GPBD, ConstraintRows)
def _single(method: GPBD, term: Term, places: Places) -> list:
    if method.sweep == "jacobi":
        raise ValueError(f"gpbd with sweep='jacobi' cannot treat {term.name}; sweep='gauss_seidel' can")
    return [SingleProjection(places, new_memory(places, 3 * places.weights.shape[1]))]
