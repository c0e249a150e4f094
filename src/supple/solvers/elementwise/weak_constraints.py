"""Weak constraints and frictional contacts between bodies in element-wise methods.

Updates are exact, because C is linear in the positions.
"""

from __future__ import annotations

import math

from supple.algebra.matrix3 import add, dot, scale, solve_spd, sub
from supple.kernels import device_function, gather, load, scatter, store, where
from supple.solvers.elementwise.element_run import ElementOptions
from supple.solvers.elementwise.gather import free_corner, load_vector
from supple.solvers.elementwise.projection import (
    Projection,
    WeightedElements,
    apply_stored_forces,
    new_memory,
    project,
    projects,
)
from supple.terms import Term
from supple.terms.contact.penalty import FRICTION, MIN_SLIP, STIFFNESS, PenaltyContactRows, separation
from supple.terms.weak_constraint import WeakRows, constraint_gap


class CompliantWeak(Projection):
    """Weak constraints with compliance.

    Attributes:
        memory: λ (rows, 3, lanes), the force of each constraint, -K C at convergence [N].
    """

    __slots__ = ()


class HardWeak(Projection):
    """Weak constraints of position-based dynamics, which reduces their energy ½ Cᵀ K C to zero.

    Attributes:
        options: (stiffness,), the fraction of each correction that is applied.
    """

    __slots__ = ()


@projects(ElementOptions, WeakRows)
def _compliant(method: ElementOptions, term: Term, elements: WeightedElements) -> list:
    """Create the projection of weak constraints in every element-wise method but PBD."""
    return [CompliantWeak(elements, new_memory(elements, 3))]


@device_function
def mobility(elements, row):
    """Σ Wⱼ wⱼ², the displacement of the gap per unit force.

    It is an upper bound if vertices are constrained along some directions; steps are then shorter than
    possible.
    """
    w = load(elements.rows.weights, row, 0)
    s = load(elements.weights, row, 0) * w * w
    for slot in range(1, elements.weights.shape[1]):
        w = load(elements.rows.weights, row, slot)
        s = s + load(elements.weights, row, slot) * w * w
    return s


@device_function
def move_ends(elements, row, u, force):
    """xⱼ += Wⱼ wⱼ force. Unused slots repeat the first vertex with weight 0, so it is written last."""
    rows = elements.rows
    for slot in range(elements.weights.shape[1] - 1, 0, -1):
        t = load(elements.weights, row, slot) * load(rows.weights, row, slot)
        x = gather(u, rows.others, row, slot - 1)
        move = scale(t, free_corner(elements.constrained, row, slot, force))
        scatter(u, rows.others, row, slot - 1, add(x, move))
    t = load(elements.weights, row, 0) * load(rows.weights, row, 0)
    x = gather(u, elements.own, row, 0)
    scatter(u, elements.own, row, 0, add(x, scale(t, free_corner(elements.constrained, row, 0, force))))


@project.of(CompliantWeak)
def _project_compliant(projection, row, u):
    """Δλ = -(I + s K)⁻¹ (K C + λ), s = Σ W w²: XPBD's update of a constraint with three components."""
    elements, (lam,) = projection.elements, projection.memory
    K = elements.rows.stiffness
    _, KC = constraint_gap(elements.rows, row, u, gather(u, elements.own, row, 0))
    s = mobility(elements, row)
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
    move_ends(elements, row, u, step)


@apply_stored_forces.of(CompliantWeak)
def _apply_multipliers(projection, row, u):
    (lam,) = projection.memory
    move_ends(projection.elements, row, u, load_vector(lam, row, 0))


@project.of(HardWeak)
def _project_hard(projection, row, u):
    """Δxⱼ = -E/(Σ Wⱼ |∂E/∂xⱼ|²) Wⱼ ∂E/∂xⱼ with ∂E/∂xⱼ = wⱼ K C [PBCM eq. 3]."""
    elements, (stiffness,) = projection.elements, projection.options
    C, KC = constraint_gap(elements.rows, row, u, gather(u, elements.own, row, 0))
    denominator = mobility(elements, row) * dot(KC, KC)
    nonzero = denominator > 0.0
    s = -0.5 * stiffness * dot(C, KC) / where(nonzero, denominator, 0.0 * denominator + 1.0)
    move_ends(elements, row, u, scale(where(nonzero, s, 0.0 * s), KC))


class FrictionalContact(Projection):
    """Frictional contacts between bodies.

    Attributes:
        memory: r (rows, 3, lanes), the force of each contact [N].
    """

    __slots__ = ()


@projects(ElementOptions, PenaltyContactRows)
def _frictional(method: ElementOptions, term: Term, elements: WeightedElements) -> list:
    """Create the projection of contacts between bodies."""
    return [FrictionalContact(elements, new_memory(elements, 3))]


@project.of(FrictionalContact)
def _project_frictional(projection, row, u):
    """Update a contact with mobility s, for which (g, o) → (g, o) + s Δr.

    λ = k max(s λ - g, 0)/(1 + k s), and t = k (s t - o)/(1 + k s), shortened to length μ λ.
    """
    elements, (memory,) = projection.elements, projection.memory
    n, g, o = separation(elements.rows, row, u, gather(u, elements.own, row, 0))
    s, k = mobility(elements, row), load(elements.rows.numbers, row, STIFFNESS)
    old = load_vector(memory, row, 0)
    old_normal, effective_stiffness = dot(n, old), k / (1.0 + k * s)
    normal_force = effective_stiffness * max(s * old_normal - g, 0.0 * g)
    t = scale(effective_stiffness, sub(scale(s, sub(old, scale(old_normal, n))), o))
    length = math.sqrt(dot(t, t))
    limit = load(elements.rows.numbers, row, FRICTION) * normal_force
    t = scale(min(limit / max(length, 0.0 * length + MIN_SLIP), 0.0 * length + 1.0), t)
    r = add(scale(normal_force, n), t)
    for axis in range(3):
        store(memory, row, axis, r[axis])
    move_ends(elements, row, u, sub(r, old))


@apply_stored_forces.of(FrictionalContact)
def _apply_friction(projection, row, u):
    (memory,) = projection.memory
    move_ends(projection.elements, row, u, load_vector(memory, row, 0))
