"""Weak constraints in the element-wise methods: exact updates, since C is linear in the positions."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.algebra.matrix3 import add, dot, scale, solve_spd
from supple.kernels import gather, load, physics, scatter, select, store
from supple.solvers.projection import exert, project
from supple.terms.weak import constraint_gap


class CompliantWeak(NamedTuple):
    """multipliers (rows, 3, lanes): λ, the force that each constraint exerts, -K C when it is at rest [N]."""

    colour_start: Any
    start: Any
    own: Any
    term: Any
    weights: Any
    multipliers: Any


class HardWeak(NamedTuple):
    """Weak constraints as position-based dynamics sees them: the energy ½ Cᵀ K C is to vanish."""

    colour_start: Any
    start: Any
    own: Any
    term: Any
    weights: Any


@physics
def _mobility(projection, row):
    """Σ Wⱼ wⱼ²: how far the gap yields to a unit force."""
    w = load(projection.term.weights, row, 0)
    s = load(projection.weights, row, 0) * w * w
    for slot in range(1, projection.weights.shape[1]):
        w = load(projection.term.weights, row, slot)
        s = s + load(projection.weights, row, slot) * w * w
    return s


@physics
def _move(projection, row, u, force):
    """xⱼ += Wⱼ wⱼ force. The first vertex comes last because unused slots repeat it with weight 0."""
    for slot in range(projection.weights.shape[1] - 1, 0, -1):
        t = load(projection.weights, row, slot) * load(projection.term.weights, row, slot)
        x = gather(u, projection.term.others, row, slot - 1)
        scatter(u, projection.term.others, row, slot - 1, add(x, scale(t, force)))
    t = load(projection.weights, row, 0) * load(projection.term.weights, row, 0)
    x = gather(u, projection.own, row, 0)
    scatter(u, projection.own, row, 0, add(x, scale(t, force)))


@project.of(CompliantWeak)
def _project_compliant(projection, row, u):
    """Δλ = -(I + s K)⁻¹ (K C + λ), s = Σ W w²: XPBD's update for a constraint of three components."""
    K, lam = projection.term.stiffness, projection.multipliers
    _, KC = constraint_gap(projection.term, row, u, gather(u, projection.own, row, 0))
    s = _mobility(projection, row)
    A = (
        1.0 + s * load(K, row, 0),
        1.0 + s * load(K, row, 1),
        1.0 + s * load(K, row, 2),
        s * load(K, row, 3),
        s * load(K, row, 4),
        s * load(K, row, 5),
    )
    old = (load(lam, row, 0), load(lam, row, 1), load(lam, row, 2))
    step = solve_spd(A, (-KC[0] - old[0], -KC[1] - old[1], -KC[2] - old[2]))
    for axis in range(3):
        store(lam, row, axis, old[axis] + step[axis])
    _move(projection, row, u, step)


@exert.of(CompliantWeak)
def _exert_multipliers(projection, row, u):
    lam = projection.multipliers
    _move(projection, row, u, (load(lam, row, 0), load(lam, row, 1), load(lam, row, 2)))


@project.of(HardWeak)
def _project_hard(projection, row, u):
    """Δxⱼ = -E/(Σ Wⱼ |∂E/∂xⱼ|²) Wⱼ ∂E/∂xⱼ with ∂E/∂xⱼ = wⱼ K C [PBCM eq. 3]."""
    C, KC = constraint_gap(projection.term, row, u, gather(u, projection.own, row, 0))
    square = _mobility(projection, row) * dot(KC, KC)
    moves = square > 0.0
    s = -0.5 * dot(C, KC) / select(moves, square, 0.0 * square + 1.0)
    _move(projection, row, u, scale(select(moves, s, 0.0 * s), KC))
