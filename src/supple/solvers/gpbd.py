"""Generalised position-based dynamics for arbitrary energies [GPBD Algorithm 1].

Each element remembers the displacement d that its force has given its vertices, and x = x̃ + Σ d at all times,
but for elements that were inverted and unfolded. x̃ and the loop over elements are in elementwise.py and
element_sweeps.py; here is what one visit does.
A visit minimises ½|d + Δd|²_{W⁻¹} + U(x + Δd) over Δd = W Sᵀ Δλ, S the derivative of the Green strain. With
the six multipliers as a symmetric matrix Λ, Δdᵢ = Wᵢ F Λ gᵢ and the new deformation gradient is F (I + Λ Γ),
Γ = Σ Wᵢ gᵢ gᵢᵀ, so the objective [GPBD eq. 19] is, up to a constant,

    q(Λ) = Λ : Fᵀ D + ½ tr(Λ C Λ Γ) + V ψ(F + F Λ Γ),  C = Fᵀ F,  D = Σ dᵢ gᵢᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from supple.algebra.matrix3 import dot, matmul
from supple.algebra.symmetric import full
from supple.checks import one_number, one_of, whole_number
from supple.kernels import each, select, total
from supple.materials import bound_coefficients
from supple.solvers.corners import (
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
from supple.solvers.elementwise import ElementOptions
from supple.solvers.green_minimum import local_minimum
from supple.solvers.jacobi import SHARES, in_one_colour, jacobi_options, moves_of, propose, step_sum
from supple.solvers.projection import Places, Projection, new_memory, project, projects, require
from supple.solvers.unfolding import caution, unfold
from supple.terms import Term
from supple.terms.constraint import ConstraintRows
from supple.terms.elastic import ElasticRows, measure


class GreenOptions(NamedTuple):
    """newton_steps: local ones per visit."""

    newton_steps: Any


class GreenProjection(Projection):
    """memory: d (rows, 3 k, lanes) of each element's k corners [m]. options: GreenOptions."""

    __slots__ = ()


@moves_of.of(GreenProjection)
def _visit(projection, row, tet, lighter, share):
    """How far the corners of an element move: the shares of its unfolding and of Δd, which adds up in d."""
    x, W, g, V, material = tet
    rows, (displacements,) = projection.places.rows, projection.memory
    N = held_corners(projection.places, row)
    W = _products(lighter, W)
    sound = unfold(rows, material, x, W, g, N)
    F = measure(rows, sound, g)
    d = load_corners(x, displacements, row, 0)
    Lam = local_minimum(material, F, W, g, V, weighted(lighter, d), N, projection.options.newton_steps)
    moved = weighted(W, free_corners(N, spread(matmul(F, full(Lam)), g)))  # Δd = W Sᵀ Δλ
    step = weighted(share, moved)
    store_corners(displacements, row, 0, plus(d, step))
    return plus(weighted(share, plus(sound, times(-1.0, x))), step)


@project.of(GreenProjection)
def _project_green(projection, row, u):
    places = projection.places
    tet = element(places, row, u)
    x, W, g, _, material = tet
    share = caution(places.rows, material, x, g)
    moves = moves_of(projection, row, tet, _alike(1.0, W), _alike(share, W))
    put_corners(places, row, u, plus(x, moves))


_products = each("a, b", "a[i] * b[i]", over="a")
_alike = each("s, W", "s + 0.0 * W[i]", over="W")


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
    """The same with all elements in one colour. options: JacobiOptions."""

    __slots__ = ()


@project.of(AtOnce)
def _project_at_once(projection, row, u):
    propose(projection, row, u)


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
