"""GPBD of data-driven cloth [GPBD section 4.2, eq. 22, 23]: a minimization over six variables per triangle.

With S = ∂s/∂x of the six strains s at the start of a visit, the displacement of the six vertices is Δd = W Sᵀ
λ, and the objective is

    q(λ) = λ · S d + ½ λᵀ K λ + A ψ(s(x + Δd)),  K = S W Sᵀ.

Newton's method starts from λ = 0 and uses the Hessian K + A M P Mᵀ, M = S W Jᵀ, with J = ∂s/∂x at the current
positions and without second derivatives of the strains. P is ψ'' plus |λ_min| on its diagonal if Gershgorin's
bound [eq. 23] of the smallest eigenvalue is negative, with strains scaled by z. The paper instead multiplies
curvatures by l², and bounds the smallest eigenvalue of the whole Hessian, which K can only increase,
after QR iterations. A line search follows.
"""

from __future__ import annotations

from typing import Any

from supple.algebra.matrix3 import add, scale, select3
from supple.algebra.matrix6 import add_to_diagonal, curvature, matvec, product, slacks
from supple.algebra.symmetric import add_trace_multiple6, axpy6, dot6, select6, solve_spd6
from supple.kernels import all_lanes, device_function, each, inline_control, load, unroll, where
from supple.solvers.elementwise.gather import (
    constrained_corners,
    corner_dot,
    corners_of,
    free_corners,
    load_corners,
    plus,
    scatter_corners,
    store_corners,
    weighted_dot,
)
from supple.solvers.elementwise.gpbd_local_solve import CONVERGED_DECREASE, MAX_BACKTRACKS
from supple.solvers.elementwise.projection import Projection, WeightedElements, new_memory, project, projects
from supple.solvers.gpbd import GPBD, GreenOptions
from supple.terms import Term
from supple.terms.base.constraint import relative
from supple.terms.hylc.elasticity import FabricRows, scales_of, shape_of, stiff_area
from supple.terms.hylc.energy import density
from supple.terms.hylc.strains import vertex_strains

ROUNDING_TOLERANCE = 1e-9
"""Relative increase of q that the line search accepts as rounding."""

DIAGONAL_SHIFT = 1e-9
"""Fraction of the trace that is added to the diagonal, to avoid a division by 0 for pinned triangles."""


class FabricProjection(Projection):
    """Triangles of data-driven cloth.

    Attributes:
        memory: d (rows, 18, lanes) of the six vertices of each triangle [m].
        options: GreenOptions.
    """

    __slots__ = ()


@device_function
def _points(rows, row, x):
    """Vertex positions relative to the first vertex."""
    zero = 0.0 * x[0][0]
    return ((zero, zero, zero),) + relative(rows, row, x)  # noqa: RUF005


@device_function
def _rotate_numbering(x, G, exists):
    """Rotate the numbering of a triangle so that its second corner comes first."""
    return (x[1], x[2], x[0], x[4], x[5], x[3]), (G[1], G[2], G[0]), (exists[1], exists[2], exists[0])


@device_function
def _strain(rows, row, x):
    G, exists = shape_of(rows, row)
    return vertex_strains(_points(rows, row, x), G, exists).strain


@inline_control
def _strain_and_gradients(rows, row, x):
    """Six strains, and the gradient ∂sᵢ/∂x of each at the six vertices."""
    p = _points(rows, row, x)
    G, exists = shape_of(rows, row)
    a = vertex_strains(p, G, exists)
    p, G, exists = _rotate_numbering(p, G, exists)
    b = vertex_strains(p, G, exists)
    p, G, exists = _rotate_numbering(p, G, exists)
    c = vertex_strains(p, G, exists)
    zero = 0.0 * p[0][0]
    o = (zero, zero, zero)
    return a.strain, (
        (a.at_corner[0], b.at_corner[0], c.at_corner[0], o, o, o),
        (a.at_corner[1], b.at_corner[1], c.at_corner[1], o, o, o),
        (a.at_corner[2], b.at_corner[2], c.at_corner[2], o, o, o),
        _bending_gradient(a, b, c, 3, 0),
        _bending_gradient(a, b, c, 4, 1),
        _bending_gradient(a, b, c, 5, 2),
    )


@device_function
def _bending_gradient(a, b, c, strain, entry):
    return (
        a.at_corner[strain],
        b.at_corner[strain],
        c.at_corner[strain],
        scale(a.bends[0][entry], a.at_apex),
        scale(b.bends[0][entry], b.at_apex),
        scale(c.bends[0][entry], c.at_apex),
    )


@device_function
def _entry(W, a, b):
    return weighted_dot(W, a, b)


_mixed = unroll(
    "W, S, J",
    lambda n: ", ".join(f"_entry(W, S[{i}], J[{j}])" for i in range(n) for j in range(n)),
    _entry,
    over="S",
)
"""M = S W Jᵀ, 36 entries row by row."""


@device_function
def _work(a, b):
    return corner_dot(a, b)


_works = each("S, d", "_work(S[i], d)", _work, over="S")
"""S d."""


@device_function
def _mixture(w, m, a, b, c, d, e, f):
    """w Σ mᵢ aᵢ."""
    first = add(add(scale(w * m[0], a), scale(w * m[1], b)), scale(w * m[2], c))
    return add(first, add(add(scale(w * m[3], d), scale(w * m[4], e)), scale(w * m[5], f)))


_moves = each(
    "W, S, m", "_mixture(W[i], m, S[0][i], S[1][i], S[2][i], S[3][i], S[4][i], S[5][i])", _mixture, over="W"
)
"""W Sᵀ λ of every vertex."""


@device_function
def _free(N, a):
    return free_corners(N, a)


_free_all = each("N, S", "_free(N, S[i])", _free, over="S")


@device_function
def _positive(fabric, H):
    """ψ'' made positive definite by Gershgorin's bound."""
    scales = scales_of(fabric)
    b = slacks(scales, H)
    least = min(min(min(b[0], b[1]), min(b[2], b[3])), min(b[4], b[5]))
    return add_to_diagonal(scales, H, max(-least, 0.0 * least))


@device_function
def _objective(rows, row, x, W, S, K, work, area, m):
    """q for λ = m."""
    psi = density(rows.fabric, _strain(rows, row, plus(x, _moves(W, S, m)))).value
    return dot6(m, work) + 0.5 * dot6(m, matvec(m, K)) + area * psi


@inline_control
def _backtrack(rows, row, x, W, S, K, work, area, m, q, step, scale):
    """Halve the step until q does not rise by more than rounding; return (λ, q)."""
    length = 0.0 * area + 1.0
    best, best_q = m, q
    for _ in range(MAX_BACKTRACKS):
        trial = axpy6(m, length, step)
        value = _objective(rows, row, x, W, S, K, work, area, trial)
        good = value <= q + ROUNDING_TOLERANCE * scale
        best, best_q = select6(good, trial, best), where(good, value, best_q)
        if all_lanes(good):
            break
        length = where(good, length, 0.5 * length)
    return best, best_q


@device_function
def local_step(rows, row, x, W, d, N, newton_steps):
    """W Sᵀ λ with the λ that minimizes q, by at most `newton_steps` Newton steps. M = K at λ = 0."""
    area = stiff_area(rows, row)
    strain, gradients = _strain_and_gradients(rows, row, x)
    S = _free_all(N, gradients)
    K, work = _mixed(W, S, S), _works(S, d)
    zero = 0.0 * area
    m = (zero, zero, zero, zero, zero, zero)
    M, density_at = K, density(rows.fabric, strain)
    q = area * density_at.value
    for step in range(newton_steps):
        if step > 0:
            strain, gradients = _strain_and_gradients(rows, row, plus(x, _moves(W, S, m)))
            M, density_at = _mixed(W, S, gradients), density(rows.fabric, strain)
        P = _positive(rows.fabric, density_at.second)
        r = _negative_gradient(work, matvec(m, K), area, matvec(density_at.first, M))
        change = solve_spd6(add_trace_multiple6(curvature(K, area, product(M, P), M), DIAGONAL_SHIFT), r)
        size, gain = abs(q) + dot6(r, change), dot6(r, change)
        m, q = _backtrack(rows, row, x, W, S, K, work, area, m, q, change, size)
        if all_lanes(gain <= CONVERGED_DECREASE * size):
            break
    return _moves(W, S, m)


@device_function
def _negative_gradient(work, quadratic_force, area, force):
    """-∂q/∂λ = -(S d + K λ + A M ψ')."""
    return (
        -(work[0] + quadratic_force[0] + area * force[0]),
        -(work[1] + quadratic_force[1] + area * force[1]),
        -(work[2] + quadratic_force[2] + area * force[2]),
        -(work[3] + quadratic_force[3] + area * force[3]),
        -(work[4] + quadratic_force[4] + area * force[4]),
        -(work[5] + quadratic_force[5] + area * force[5]),
    )


@project.of(FabricProjection)
def _project_fabric(projection, row, u):
    """Update one triangle: d ← d + Δd, x ← x + Δd [eq. 13, 14]."""
    elements, (displacements,) = projection.elements, projection.memory
    rows = elements.rows
    x, W = corners_of(elements, row, u)
    d = load_corners(x, displacements, row, 0)
    N = constrained_corners(elements, row)
    delta_d = local_step(rows, row, x, W, d, N, projection.options.newton_steps)
    store_corners(displacements, row, 0, plus(d, delta_d))
    scatter_corners(elements, row, u, _join_border(rows, row, plus(x, delta_d)))


@device_function
def _join_border(rows, row, x):
    """Border edges have no neighbor; the opposite vertex stands in for it, and both move together."""
    r = rows.rest
    return (
        x[0],
        x[1],
        x[2],
        select3(load(r, row, 4) > 0.5, x[3], x[2]),
        select3(load(r, row, 5) > 0.5, x[4], x[0]),
        select3(load(r, row, 6) > 0.5, x[5], x[1]),
    )


@projects(GPBD, FabricRows)
def _fabric(method: GPBD, term: Term, elements: WeightedElements) -> list[Any]:
    """Create the projection of triangles of data-driven cloth."""
    if method.sweep == "jacobi":
        raise ValueError(f"gpbd with sweep='jacobi' does not support {term.name}; use sweep='gauss_seidel'")
    memory = new_memory(elements, 3 * elements.weights.shape[1])
    return [FabricProjection(elements, memory, GreenOptions(method.newton_steps))]
