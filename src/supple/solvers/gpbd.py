"""Generalised position-based dynamics for arbitrary energies [GPBD Algorithm 1].

Each element remembers the displacement d that its force has given its vertices, and x = x̃ + Σ d at all times.
A visit minimises ½|d + Δd|²_{W⁻¹} + U(x + Δd) over Δd = W Sᵀ Δλ, S the derivative of the Green strain. With
the six multipliers as a symmetric matrix Λ, Δdᵢ = Wᵢ F Λ gᵢ and the new deformation gradient is F (I + Λ Γ),
Γ = Σ Wᵢ gᵢ gᵢᵀ, so the objective [GPBD eq. 19] is, up to a constant,

    q(Λ) = Λ : Fᵀ D + ½ tr(Λ C Λ Γ) + V ψ(F + F Λ Γ),  C = Fᵀ F,  D = Σ dᵢ gᵢᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from supple.algebra.matrix3 import (
    add_diagonal,
    cofactor,
    combine,
    contract,
    det,
    dot,
    matmul,
    scaled,
    select9,
    transpose,
)
from supple.algebra.svd import rotation_svd
from supple.algebra.symmetric import (
    add_outer6,
    along6,
    dot6,
    full,
    lifted6,
    sandwich_form,
    select6,
    solve_spd6,
    symmetric_part,
)
from supple.checks import one_number, one_of, whole_number
from supple.kernels import (
    all_lanes,
    chosen_by_type,
    each,
    lane_range,
    load,
    number,
    number_at,
    physics,
    select,
    total,
)
from supple.materials import bound_coefficients, psi, stress
from supple.solvers.elementwise import ElementOptions
from supple.solvers.projection import (
    VERTICES_PER_ROW,
    Places,
    Projection,
    corners_of,
    element,
    free_corners,
    held_corners,
    load_corners,
    mobility,
    new_memory,
    outer_sum,
    plus,
    project,
    projects,
    put_corners,
    require,
    shifted,
    spread,
    store_corners,
    times,
    vertex_places,
    weighted,
    weighted_square,
)
from supple.terms import Term
from supple.terms.constraint import ConstraintRows, constraint_of_corners
from supple.terms.elastic import ElasticRows, measure

BACKTRACKS = 8
"""Halvings of a local Newton step before the element is left as it is."""

CONVERGED = 1e-12
"""The local Newton ends when a step promises less than this part of the element's energy."""

SMALLEST_STRETCH = 0.05
"""Singular value that elements of a material with a barrier are unfolded to at least."""

CAUTION = 0.2
"""Share of its step that an inverted element takes in a Gauss-Seidel sweep. With all of it neighbours keep
folding each other: of cubes that start randomised at ν = 0.4995, many never recover."""


class GreenProjection(Projection):
    """memory: d (rows, 3 k, lanes) of each element's k corners [m]. options: local Newton steps per visit."""

    __slots__ = ()


class Mobility(NamedTuple):
    """How an element yields to forces: C = Fᵀ F, Γ, and W, g and N of its corners. Where some of these are
    held along some directions, Γ is only an upper bound: a matrix X of forces X gᵢ changes F by
    Σ Wᵢ (I - Nᵢ) X gᵢ gᵢᵀ instead of by X Γ."""

    F: Any
    C: Any
    G: Any
    W: Any
    g: Any
    N: Any


def change_by(mobility: Any, X: Any) -> Any:
    """How forces X gᵢ at the corners change F."""


@chosen_by_type(change_by)
def _change_by(mobility, X):
    if len(mobility[Mobility._fields.index("N")]) == 0:
        return lambda mobility, X: matmul(X, mobility.G)
    return lambda mobility, X: outer_sum(
        weighted(mobility.W, free_corners(mobility.N, spread(X, mobility.g))), mobility.g
    )


def change_of(mobility: Any, m: Any) -> Any:
    """For Λ = m, ½ Σ |Δdᵢ|²/Wᵢ of Δdᵢ = Wᵢ (I - Nᵢ) F Λ gᵢ, its derivative by Λ, and how F changes."""


@chosen_by_type(change_of)
def _change_of(mobility, m):
    if len(mobility[Mobility._fields.index("N")]) == 0:
        return lambda mobility, m: _change_of_free(mobility, m)
    return lambda mobility, m: _change_of_held(mobility, m)


@physics
def _change_of_free(y, m):
    L = full(m)
    LG = matmul(L, y.G)
    square = 0.5 * contract(transpose(matmul(L, y.C)), LG)
    return square, symmetric_part(matmul(y.C, LG)), matmul(y.F, LG)


@physics
def _change_of_held(y, m):
    X = matmul(y.F, full(m))
    change = change_by(y, X)
    return 0.5 * contract(X, change), symmetric_part(matmul(transpose(y.F), change)), change


@physics
def _objective(material, y, B, V, m):
    """(q, F and its change) for Λ = m; B = sym(Fᵀ D)."""
    quadratic, _, change = change_of(y, m)
    new = combine(1.0, y.F, 1.0, change)
    linear = m[0] * B[0] + m[1] * B[1] + m[2] * B[2] + 2.0 * (m[3] * B[3] + m[4] * B[4] + m[5] * B[5])
    return linear + quadratic + V * psi(material, new), new


@physics
def local_minimum(material, F, W, g, V, d, N, newton_steps):
    """Λ that minimises q, by Newton from 0 with the positive definite Hessian
    M ↦ sym(C M (Γ + V a Γ²)) + V b T (T : M), T = sym(Fᵀ cof Γ), and a line search; at most newton_steps, and
    none after one that gains nothing. N: of the corners, or ()."""
    G = mobility(W, g)
    C = matmul(transpose(F), F)
    B = symmetric_part(matmul(transpose(F), outer_sum(d, g)))
    zero = 0.0 * V
    m = (zero, zero, zero, zero, zero, zero)
    y = Mobility(F, C, G, W, g, N)
    q, new = _objective(material, y, B, V, m)
    GG = matmul(G, G)
    Ft = transpose(F)
    for _ in range(newton_steps):
        a, b = bound_coefficients(material, new)
        _, CLG, _ = change_of(y, m)
        FPG = symmetric_part(matmul(Ft, change_by(y, stress(material, new))))
        r = (
            -(B[0] + CLG[0] + V * FPG[0]),
            -(B[1] + CLG[1] + V * FPG[1]),
            -(B[2] + CLG[2] + V * FPG[2]),
            -2.0 * (B[3] + CLG[3] + V * FPG[3]),
            -2.0 * (B[4] + CLG[4] + V * FPG[4]),
            -2.0 * (B[5] + CLG[5] + V * FPG[5]),
        )
        T = symmetric_part(matmul(Ft, change_by(y, cofactor(new))))
        t = (T[0], T[1], T[2], 2.0 * T[3], 2.0 * T[4], 2.0 * T[5])
        H = sandwich_form(symmetric_part(C), symmetric_part(combine(1.0, G, V * a, GG)))
        # With pinned corners Γ and so H are singular; a little on the diagonal keeps steps bounded.
        step = solve_spd6(lifted6(add_outer6(H, V * b, t), 1e-6), r)
        scale, gain = abs(q) + V * a, dot6(r, step)
        length = zero + 1.0
        best, best_new, best_q = m, new, q
        for _ in range(BACKTRACKS):
            trial = along6(m, length, step)
            value, moved = _objective(material, y, B, V, trial)
            good = value <= q + 1e-6 * scale  # differences of ψ drown in rounding near rest
            best, best_new, best_q = (
                select6(good, trial, best),
                select9(good, moved, best_new),
                select(good, value, best_q),
            )
            if all_lanes(good):
                break
            # Lanes that are done repeat their step; the others try half of it.
            length = select(good, length, 0.5 * length)
        m, new, q = best, best_new, best_q
        if all_lanes(gain <= CONVERGED * scale):
            break
    return m


def unfold(rows: Any, material: Any, x: Any, W: Any, g: Any, N: Any) -> Any:
    """The corners with inverted elements of a material with a barrier unfolded; as they are for others."""
    return x


@chosen_by_type(unfold)
def _unfold(rows, material, x, W, g, N):
    if not getattr(material.instance_class, "barrier", False):
        return lambda rows, material, x, W, g, N: x
    return lambda rows, material, x, W, g, N: _unfold_inverted(rows, x, W, g, N)


@physics
def _unfold_inverted(rows, x, W, g, N):
    """Negate the smallest singular value of an inverted F and lift those that are nearly zero. The corners
    move by Wᵢ (δF Γ⁻¹) gᵢ, which changes F by δF and keeps the centre of mass [GPBD section 4.1]; as far as
    they are not held."""
    F = measure(rows, x, g)
    sound = det(F) > SMALLEST_STRETCH * SMALLEST_STRETCH * SMALLEST_STRETCH
    if all_lanes(sound):
        return x
    U, sigma, V = rotation_svd(F)
    floor = 0.0 * sigma[0] + SMALLEST_STRETCH
    s = (max(abs(sigma[0]), floor), max(abs(sigma[1]), floor), max(abs(sigma[2]), floor))
    US = (
        U[0] * s[0], U[1] * s[1], U[2] * s[2],
        U[3] * s[0], U[4] * s[1], U[5] * s[2],
        U[6] * s[0], U[7] * s[1], U[8] * s[2],
    )  # fmt: skip
    dF = combine(1.0, matmul(US, transpose(V)), -1.0, F)
    # W is scaled so that tr Γ = 1, lest float32 under- or overflows; Γ is lifted where corners are pinned.
    G = mobility(W, g)
    unit = 1.0 / (G[0] + G[4] + G[8] + 1e-30)
    W = _scaled_weights(unit, W)
    G = add_diagonal(scaled(unit, G), 1e-6)
    K = cofactor(G)
    t = 1.0 / (G[0] * K[0] + G[1] * K[1] + G[2] * K[2])
    return shifted(x, select(sound, 0.0 * t, t), W, free_corners(N, spread(matmul(dF, K), g)))


_scaled_weights = each("s, W", "s * W[i]", over="W")


def caution(rows: Any, material: Any, x: Any, g: Any) -> Any:
    """The share of its step that an element takes in a Gauss-Seidel sweep: all, unless a barrier forbids
    where it is."""
    return 1.0


@chosen_by_type(caution)
def _caution(rows, material, x, g):
    if not getattr(material.instance_class, "barrier", False):
        return lambda rows, material, x, g: 1.0
    return lambda rows, material, x, g: _caution_if_inverted(rows, x, g)


@physics
def _caution_if_inverted(rows, x, g):
    J = det(measure(rows, x, g))
    return select(J > 0.0, 0.0 * J + 1.0, 0.0 * J + CAUTION)


@physics
def visit(projection, row, tet, share):
    """How far the corners of an element move: the share of its unfolding and of Δd, which adds up in d."""
    x, W, g, V, material = tet
    rows, (displacements,) = projection.places.rows, projection.memory
    N = held_corners(projection.places, row)
    sound = unfold(rows, material, x, W, g, N)
    F = measure(rows, sound, g)
    d = load_corners(x, displacements, row, 0)
    m = local_minimum(material, F, W, g, V, d, N, projection.options.newton_steps)
    step = times(share, weighted(W, free_corners(N, spread(matmul(F, full(m)), g))))
    store_corners(displacements, row, 0, plus(d, step))
    return plus(times(share, plus(sound, times(-1.0, x))), step)


@project.of(GreenProjection)
def _project_green(projection, row, u):
    places = projection.places
    tet = element(places, row, u)
    x, _, g, _, material = tet
    share = caution(places.rows, material, x, g)
    put_corners(places, row, u, plus(x, visit(projection, row, tet, share)))


class SingleProjection(Projection):
    """An element that is one constraint. memory: d (rows, 3 k, lanes) as above."""

    __slots__ = ()


@project.of(SingleProjection)
def _project_single(projection, row, u):
    """The minimum of ½|d + Δd|²_{W⁻¹} + ½ k C² over Δd = W ∇C Δλ, C linearised:
    Δλ = -(∇C·d + s k C)/(s + k s²) with s = Σ W |∇C|²."""
    places, (displacements,) = projection.places, projection.memory
    x, W = corners_of(places, row, u)
    C, gradient, k = constraint_of_corners(places.rows, row, x)
    gradient = free_corners(held_corners(places, row), gradient)
    d = load_corners(x, displacements, row, 0)
    s = weighted_square(W, gradient, gradient)
    moves = (s > 0.0) & (k > 0.0)
    bottom = select(moves, s + k * s * s, 0.0 * s + 1.0)
    step = select(moves, -(_along(gradient, d) + s * k * C) / bottom, 0.0 * s)
    move = times(step, weighted(W, gradient))
    store_corners(displacements, row, 0, plus(d, move))
    put_corners(places, row, u, plus(x, move))


_along = total("a, b", "dot(a[i], b[i])", dot, over="a")


class JacobiOptions(NamedTuple):
    """relax (rows, 1, lanes): ω over the number of elements at the fullest of each element's vertices; steps
    (rows, 3 k, lanes): those that elements would take."""

    newton_steps: Any
    relax: Any
    steps: Any


class GreenOptions(NamedTuple):
    newton_steps: Any


class JacobiProjection(Projection):
    """As GreenProjection, with all elements in one colour: the steps that they would take from the same
    positions. One factor for all corners keeps a step what a force of the element can do; the average at each
    vertex [GPBD section 3.1] would not keep momentum, nor lead to the same positions."""

    __slots__ = ()


@project.of(JacobiProjection)
def _project_jacobi(projection, row, u):
    options = projection.options
    moves = visit(projection, row, element(projection.places, row, u), load(options.relax, row, 0))
    store_corners(options.steps, row, 0, moves)


class StepSum(NamedTuple):
    """The second half of a Jacobi sweep: every vertex moves by the sum of its elements' steps. Row r is the
    next VERTICES_PER_ROW vertices; entries visit[v] to visit[v + 1] of place tell where among all numbers the
    steps of vertex v lie: that of x, followed by those of y and z one row's lanes further on each."""

    places: Any
    memory: Any
    visit: Any
    place: Any
    steps: Any


@project.of(StepSum)
def _project_step_sum(projection, row, u):
    steps = projection.steps
    lanes = steps.shape[2]
    first, step = lane_range(row, lanes)
    start = number(row) * VERTICES_PER_ROW
    for v in range(start + first, min(len(projection.visit) - 1, start + VERTICES_PER_ROW), step):
        x, y, z = u[v, 0], u[v, 1], u[v, 2]
        for i in range(projection.visit[v], projection.visit[v + 1]):
            k = projection.place[i]
            x += number_at(steps, k)
            y += number_at(steps, k + lanes)
            z += number_at(steps, k + 2 * lanes)
        u[v, 0], u[v, 1], u[v, 2] = x, y, z


@dataclass(frozen=True)
class GPBD(ElementOptions):
    """Generalised PBD, for any material. newton_steps: local Newton steps per visit. sweep: "gauss_seidel" by
    colours, or "jacobi", all elements from the same positions, with omega times their share of the steps."""

    name: ClassVar[str] = "gpbd"
    remembers: ClassVar[int] = 12
    recovers: ClassVar[bool] = True

    newton_steps: int = 1
    sweep: Literal["gauss_seidel", "jacobi"] = "gauss_seidel"
    omega: float = 1.5

    only_with: ClassVar[dict[str, tuple[str, str]]] = {
        **ElementOptions.only_with,
        "omega": ("sweep", "jacobi"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("newton_steps", self.newton_steps)
        one_of("sweep", self.sweep, ("gauss_seidel", "jacobi"))
        one_number("omega", self.omega, above=0, below=2)


@projects(GPBD, ElasticRows)
def _elastic(method: GPBD, term: Term, places: Places) -> list:
    require(method.name, term.material, bound_coefficients)
    memory = new_memory(places, 3 * places.weights.shape[1])
    if method.sweep == "gauss_seidel":
        return [GreenProjection(places, memory, GreenOptions(method.newton_steps))]
    return _jacobi(method, term, places, memory)


@projects(GPBD, ConstraintRows)
def _single(method: GPBD, term: Term, places: Places) -> list:
    if method.sweep == "jacobi":
        raise ValueError(f"gpbd with sweep='jacobi' cannot treat {term.name}; sweep='gauss_seidel' can")
    return [SingleProjection(places, new_memory(places, 3 * places.weights.shape[1]))]


def _jacobi(method: GPBD, term: Term, places: Places, memory: tuple) -> list:
    """All elements at once, then the sums of their steps at the vertices."""
    corners, lanes = places.weights.shape[1:]
    ids = np.concatenate([places.own, places.rows.others], axis=1)
    n = int(ids.max()) + 1
    valence = np.maximum(np.bincount(term.vertices.ravel(), minlength=n + 1), 1)
    relax = (method.omega / valence[ids].max(axis=1, keepdims=True)).astype(places.weights.dtype)
    (steps,) = new_memory(places, 3 * corners)
    there = places.rows.rest[:, -1:] > 0
    vertex = np.where(there & (places.weights > 0), ids, -1)
    row, corner, lane = np.nonzero(vertex >= 0)
    flat = (row * corners + corner) * 3 * lanes + lane
    order = np.argsort(vertex[row, corner, lane], kind="stable")
    visit = np.searchsorted(vertex[row, corner, lane][order], np.arange(n + 1))
    batches = len(places.own) if isinstance(places.start, tuple) else len(places.start) - 1
    everything = places._replace(colour_start=np.array([0, batches]))
    return [
        JacobiProjection(everything, memory, JacobiOptions(method.newton_steps, relax, steps)),
        StepSum(vertex_places(n), (), visit, flat[order], steps),
    ]
