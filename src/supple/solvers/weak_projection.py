"""Weak constraints in the element-wise methods: exact updates, since C is linear in the positions."""

from __future__ import annotations

from supple.algebra.matrix3 import add, dot, scale, solve_spd
from supple.kernels import gather, load, physics, scatter, select, store
from supple.solvers.corners import free_corner, load_vector
from supple.solvers.elementwise import ElementOptions
from supple.solvers.projection import Places, Projection, exert, new_memory, project, projects
from supple.terms import Term
from supple.terms.weak import WeakRows, constraint_gap


class CompliantWeak(Projection):
    """memory: λ (rows, 3, lanes), the force that each constraint exerts, -K C when it is at rest [N]."""

    __slots__ = ()


class HardWeak(Projection):
    """Weak constraints as position-based dynamics sees them: the energy ½ Cᵀ K C is to vanish. options: how
    much of each correction is made."""

    __slots__ = ()


@projects(ElementOptions, WeakRows)
def _compliant(method: ElementOptions, term: Term, places: Places) -> list:
    return [CompliantWeak(places, new_memory(places, 3))]


@physics
def _mobility(places, row):
    """Σ Wⱼ wⱼ²: how far the gap yields to a unit force, at most: less where vertices are held along some
    directions, which then makes a step shorter than it could be."""
    w = load(places.rows.weights, row, 0)
    s = load(places.weights, row, 0) * w * w
    for slot in range(1, places.weights.shape[1]):
        w = load(places.rows.weights, row, slot)
        s = s + load(places.weights, row, slot) * w * w
    return s


@physics
def _move(places, row, u, force):
    """xⱼ += Wⱼ wⱼ force. The first vertex comes last because unused slots repeat it with weight 0."""
    rows = places.rows
    for slot in range(places.weights.shape[1] - 1, 0, -1):
        t = load(places.weights, row, slot) * load(rows.weights, row, slot)
        x = gather(u, rows.others, row, slot - 1)
        move = scale(t, free_corner(places.held, row, slot, force))
        scatter(u, rows.others, row, slot - 1, add(x, move))
    t = load(places.weights, row, 0) * load(rows.weights, row, 0)
    x = gather(u, places.own, row, 0)
    scatter(u, places.own, row, 0, add(x, scale(t, free_corner(places.held, row, 0, force))))


@project.of(CompliantWeak)
def _project_compliant(projection, row, u):
    """Δλ = -(I + s K)⁻¹ (K C + λ), s = Σ W w²: XPBD's update for a constraint of three components."""
    places, (lam,) = projection.places, projection.memory
    K = places.rows.stiffness
    _, KC = constraint_gap(places.rows, row, u, gather(u, places.own, row, 0))
    s = _mobility(places, row)
    A = (
        1.0 + s * load(K, row, 0),
        1.0 + s * load(K, row, 1),
        1.0 + s * load(K, row, 2),
        s * load(K, row, 3),
        s * load(K, row, 4),
        s * load(K, row, 5),
    )
    old = load_vector(lam, row, 0)
    step = solve_spd(A, (-KC[0] - old[0], -KC[1] - old[1], -KC[2] - old[2]))
    for axis in range(3):
        store(lam, row, axis, old[axis] + step[axis])
    _move(places, row, u, step)


@exert.of(CompliantWeak)
def _exert_multipliers(projection, row, u):
    (lam,) = projection.memory
    _move(projection.places, row, u, load_vector(lam, row, 0))


@project.of(HardWeak)
def _project_hard(projection, row, u):
    """Δxⱼ = -E/(Σ Wⱼ |∂E/∂xⱼ|²) Wⱼ ∂E/∂xⱼ with ∂E/∂xⱼ = wⱼ K C [PBCM eq. 3]."""
    places, (stiffness,) = projection.places, projection.options
    C, KC = constraint_gap(places.rows, row, u, gather(u, places.own, row, 0))
    square = _mobility(places, row) * dot(KC, KC)
    moves = square > 0.0
    s = -0.5 * stiffness * dot(C, KC) / select(moves, square, 0.0 * square + 1.0)
    _move(places, row, u, scale(select(moves, s, 0.0 * s), KC))
