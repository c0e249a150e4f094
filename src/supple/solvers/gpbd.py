"""Generalised position-based dynamics for arbitrary energies [GPBD Algorithm 1]:

    x ← x⁻ + Δt v⁻ + W f_ext,  d ← 0 of all elements        elementwise.py, ElementRun._begin_step
    for each iteration                                      elementwise.py, ElementRun.advance
        for each element, colour by colour                  element_sweeps.py
            S ← ds/dx at x, s the Green strain              in `strain_step`: F and g of the element
            Δλ ← minimum of eq. 19                          green_minimum.py
            Δd ← W Sᵀ Δλ                                    in `strain_step`
            d ← d + Δd,  x ← x + Δd                         `_visit`
    v ← (x - x⁻)/Δt                                         stepping.py

Each element remembers the displacement d that its force has given its corners, and x = x̃ + Σ d at all times,
but for elements that were inverted and unfolded [section 4.1; unfolding.py]. With the six multipliers Δλ as a
symmetric matrix Λ, Sᵀ Δλ is F Λ gᵢ at corner i, so that Δdᵢ = Wᵢ F Λ gᵢ, W = Δt²/m.
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
    """newton_steps: local ones per visit."""

    newton_steps: Any


class GreenProjection(Projection):
    """memory: d (rows, 3 k, lanes) of each element's k corners [m]. options: GreenOptions."""

    __slots__ = ()


@project.of(GreenProjection)
def _visit(projection, row, u):
    """One element of the box. Where it was inverted it takes a share of its step only."""
    places, (displacements,) = projection.places, projection.memory
    x, W, g, V, material = element(places, row, u)
    d = load_corners(x, displacements, row, 0)
    share = caution(places.rows, material, x, g)
    unfolded, step = strain_step(projection, row, x, W, g, V, material, d)
    step = times(share, step)
    store_corners(displacements, row, 0, plus(d, step))
    put_corners(places, row, u, plus(x, plus(times(share, unfolded), step)))


@physics
def strain_step(projection, row, x, W, g, V, material, d):
    """How far an element moves its corners: to unfold where it is inverted, and then by Δd = W Sᵀ Δλ with the
    Δλ that minimises ½|d + Δd|²_{W⁻¹} + U(x + Δd) [eq. 18, 19]."""
    rows, N = projection.places.rows, held_corners(projection.places, row)
    sound = unfold(rows, material, x, W, g, N)
    F = measure(rows, sound, g)
    Lam = local_minimum(material, F, W, g, V, d, N, projection.options.newton_steps)
    step = weighted(W, free_corners(N, spread(matmul(F, full(Lam)), g)))
    return plus(sound, times(-1.0, x)), step


class SingleProjection(Projection):
    """An element that is one constraint. memory: d (rows, 3 k, lanes) as above."""

    __slots__ = ()


@project.of(SingleProjection)
def _project_single(projection, row, u):
    """The minimum of ½|d + Δd|²_{W⁻¹} + ½ k C² over Δd = W ∇C Δλ, C linearised:
    Δλ = -(∇C·d + s k C)/(s + k s²) with s = Σ W |∇C|²."""
    places, (displacements,) = projection.places, projection.memory
    x, W = corners_of(places, row, u)
    C, gradient, k = one_constraint(places, row, x)
    d = load_corners(x, displacements, row, 0)
    s = weighted_square(W, gradient, gradient)
    moves = (s > 0.0) & (k > 0.0)
    bottom = select(moves, s + k * s * s, 0.0 * s + 1.0)
    step = select(moves, -(_along(gradient, d) + s * k * C) / bottom, 0.0 * s)
    move = times(step, weighted(W, gradient))
    store_corners(displacements, row, 0, plus(d, move))
    put_corners(places, row, u, plus(x, move))


_along = total("a, b", "dot(a[i], b[i])", dot, over="a")


class AtOnce(GreenProjection):
    """All elements in one colour: the Jacobi form, which the paper uses. options: JacobiOptions."""

    __slots__ = ()


@project.of(AtOnce)
def _propose(projection, row, u):
    """The step of one element from the positions that all have when the sweep begins, in its share; a further
    projection, `step_sum`, moves the vertices."""
    (displacements,), options = projection.memory, projection.options
    x, W, g, V, material = element(projection.places, row, u)
    d = load_corners(x, displacements, row, 0)
    lighter, share = shares_of(projection, row, x, g, material)
    unfolded, step = strain_step(
        projection, row, x, products(lighter, W), g, V, material, weighted(lighter, d)
    )
    step = weighted(share, step)
    store_corners(displacements, row, 0, plus(d, step))
    store_corners(options.steps, row, 0, plus(weighted(share, unfolded), step))


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
