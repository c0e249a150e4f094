"""Unilateral contact of vertices with obstacles and Coulomb friction.

An obstacle is a plane for each vertex, with the gap g = n · (u - p) ≥ 0 to its closest point p. With
friction, the plane has an anchor: the vertex position at the start of the step, advected by the obstacle. The
slip o is the displacement from the anchor perpendicular to n. The force r = λ n + t of the obstacle on the
vertex satisfies, at the end of a step,

    λ ≥ 0, g ≥ 0, λ g = 0        and        |t| ≤ μ λ, o = 0   or   t = - μ λ o/|o|.

Nothing is lagged from the previous step, so a sticking contact does not creep. An equivalent equation for any
k > 0 is r = C(r - k (g n + o)) [Alart and Curnier 1991], with the projection C onto the friction cone, normal
part first.
"""

from __future__ import annotations

import math
from typing import Any

from supple.algebra.dirichlet_projection import symmetric_matvec
from supple.algebra.matrix3 import add, dot, scale, solve_spd, sub
from supple.collision.obstacles.contact_planes import PlaneContact, across, is_empty, plane_contact
from supple.kernels import all_lanes, device_function, gather, overload_by_type, scatter, where

PLANE_ITERATIONS, FRICTION_ITERATIONS = 4, 4
"""Gauss-Seidel iterations over three planes of a vertex, and over normal and tangential force of one plane.
Both are warm-started, so few suffice."""

MIN_COMPLIANCE = 1e-6
"""n · A⁻¹ n tr A below which a vertex is already constrained along n."""

MIN_SLIP = 1e-30
"""Smallest slip length in a denominator [m]; zero slip has no direction."""


def project_to_cone(at: Any, r: Any) -> Any:
    """Project a force onto the friction cone of a plane, normal part first.

    Args:
        at: `PlaneContact` of the vertices.
        r: Force [N].

    Returns:
        C(r) [N].
    """


@overload_by_type(project_to_cone)
def _project_to_cone(at, r):
    if is_empty(at[PlaneContact._fields.index("mu")]):
        return lambda at, r: scale(max(dot(at.normal, r), 0.0 * r[0]), at.normal)
    return lambda at, r: _project_frictional(at, r)


@device_function
def _project_frictional(at, r):
    normal = dot(at.normal, r)
    t = sub(r, scale(normal, at.normal))
    normal_force = max(normal, 0.0 * normal)
    return add(scale(normal_force, at.normal), scale(_limit_factor(at.mu * normal_force, t), t))


def solve_contact(at: Any, A: Any, f: Any, previous_force: Any) -> Any:
    """Contact force of one plane on vertices with local stiffness A.

    Args:
        at: `PlaneContact` of the vertices.
        A: Stiffness [N/m], symmetric as xx yy zz xy xz yz; displacement is A⁻¹ (f + r).
        f: Force without this plane [N].
        previous_force: Last force of the plane [N], for the warm start.

    Returns:
        Force r [N] that satisfies the contact law at the new positions.
    """


@overload_by_type(solve_contact)
def _solve_contact(at, A, f, previous_force):
    if is_empty(at[PlaneContact._fields.index("mu")]):
        return lambda at, A, f, previous_force: _frictionless_force(at, A, f)
    return lambda at, A, f, previous_force: _frictional_force(at, A, f, previous_force)


@device_function
def _frictionless_force(at, A, f):
    """Frictionless contact force λ n with g + n · A⁻¹ (f + λ n) = 0, or 0 if that λ is negative."""
    n = at.normal
    compliance = dot(n, solve_spd(A, n))
    is_movable = compliance * (A[0] + A[1] + A[2]) > MIN_COMPLIANCE
    normal_force = -(at.gap + dot(n, solve_spd(A, f))) / where(is_movable, compliance, 0.0 * compliance + 1.0)
    return scale(where(is_movable, max(normal_force, 0.0 * normal_force), 0.0 * normal_force), n)


@device_function
def _inverse(A):
    """(A⁻¹, det A) of a symmetric A as xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = A
    a, b, c = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    det = xx * a + xy * b + xz * c
    s = 1.0 / det
    return (
        s * a,
        s * (xx * zz - xz * xz),
        s * (xx * yy - xy * xy),
        s * b,
        s * c,
        s * (xy * xz - xx * yz),
    ), det


@device_function
def _frictional_force(at, A, f, previous_force):
    """Contact force with friction, by alternation of normal and tangential force.

    λ closes the gap; t = C(t - o/w) with the largest eigenvalue w of the tangential compliance. Both updates
    are stationary if the contact law holds. Forces are scaled by 1/tr A, since powers of the placeholder
    stiffness in lanes without a vertex overflow.
    """
    n, s, trace = at.normal, solve_spd(A, f), A[0] + A[1] + A[2]
    A, previous_force = _scale_block(A, trace), scale(1.0 / trace, previous_force)
    W, det = _inverse(A)
    Wn = symmetric_matvec(W, n)
    compliance = dot(n, Wn)
    is_movable = compliance > MIN_COMPLIANCE
    one = 0.0 * compliance + 1.0
    half = 0.5 * (W[0] + W[1] + W[2] - compliance)
    square = max(half * half - dot(n, symmetric_matvec(A, n)) / det, 0.0 * half)
    stiff, hard = one / (half + math.sqrt(square)), one / where(is_movable, compliance, one)
    slip = sub(at.error, scale(at.gap, n))
    normal_force = max(dot(n, previous_force), 0.0 * compliance)
    friction_force = sub(previous_force, scale(dot(n, previous_force), n))
    for _ in range(FRICTION_ITERATIONS):
        Wt = symmetric_matvec(W, friction_force)
        normal_force = max(-hard * (at.gap + dot(n, s) + dot(n, Wt)), 0.0 * compliance)
        displacement = add(add(s, Wt), scale(normal_force, Wn))
        friction_force = sub(friction_force, scale(stiff, add(slip, across(n, displacement))))
        friction_force = scale(_limit_factor(at.mu * normal_force, friction_force), friction_force)
    r = add(scale(normal_force, n), friction_force)
    return scale(where(is_movable, trace, 0.0 * one), r)


@device_function
def _limit_factor(limit, v):
    """Scale factor that limits the length of v."""
    length = math.sqrt(dot(v, v))
    return min(limit / max(length, 0.0 * length + MIN_SLIP), 0.0 * length + 1.0)


def solve_with_contact(planes: Any, own: Any, batch: Any, N: Any, A: Any, f: Any, ui: Any, omega: Any) -> Any:
    """Displacement step ω A⁻¹ (f + r) of vertices, with the contact force r at the end of the step.

    Args:
        planes: `Planes`, or () without obstacles.
        own: Vertices.
        batch: Batch of the vertices.
        N: Constrained directions.
        A: Stiffness [N/m], symmetric as xx yy zz xy xz yz.
        f: Net force without obstacles [N].
        ui: Displacements of the vertices [m].
        omega: Over-relaxation factor ω.

    Returns:
        Step [m].
    """


@overload_by_type(solve_with_contact)
def _solve_with_contact(planes, own, batch, N, A, f, ui, omega):
    if len(planes) == 0:
        return lambda planes, own, batch, N, A, f, ui, omega: scale(omega, solve_spd(A, f))
    return lambda planes, own, batch, N, A, f, ui, omega: _step_with_planes(
        planes, own, batch, N, _scale_block(A, omega), f, ui
    )


@device_function
def _scale_block(A, omega):
    """Scaled block A/ω, so that an over-relaxed step is an ordinary step of the scaled system."""
    s = 1.0 / omega
    return (s * A[0], s * A[1], s * A[2], s * A[3], s * A[4], s * A[5])


@device_function
def _plane_iterations(planes):
    """Number of Gauss-Seidel iterations over the planes."""
    return 1 if len(planes.normal) == 1 else PLANE_ITERATIONS


@device_function
def _last_forces(planes, own, batch, zero):
    """Sum of the last forces of all planes."""
    r = (zero, zero, zero)
    for j in range(len(planes.normal)):
        r = add(r, gather(planes.force[j], own, batch, 0))
    return r


@device_function
def _is_contact_free(planes, own, batch, N, ui, k, f):
    """True for most vertices: no plane exerted a force last, and none does against f + k (g n + o)."""
    none = 0.0 * f[0] >= 0.0
    for j in range(len(planes.normal)):
        previous_force, at = (
            gather(planes.force[j], own, batch, 0),
            plane_contact(planes, j, own, batch, N, ui),
        )
        gap = min(at.gap, dot(at.normal, at.error))  # they differ along constrained directions
        none = none & (dot(previous_force, previous_force) <= 0.0) & (k * gap + dot(at.normal, f) >= 0.0)
    return all_lanes(none)


@device_function
def _step_with_planes(planes, own, batch, N, A, f, ui):
    step = solve_spd(A, f)
    if _is_contact_free(planes, own, batch, N, ui, 0.0 * ui[0] + 1.0, step):
        return step
    r = _last_forces(planes, own, batch, 0.0 * ui[0])
    for _ in range(_plane_iterations(planes)):
        for j in range(len(planes.normal)):
            previous_force = gather(planes.force[j], own, batch, 0)
            now = solve_contact(
                plane_contact(planes, j, own, batch, N, ui), A, add(f, sub(r, previous_force)), previous_force
            )
            scatter(planes.force[j], own, batch, 0, now)  # threads that share a vertex also write
            r = add(sub(r, previous_force), now)
    return solve_spd(A, add(f, r))


def add_reactions(planes: Any, own: Any, batch: Any, N: Any, A: Any, ui: Any, f: Any, s: Any) -> Any:
    """Add contact reactions to net forces.

    The reaction of each plane is stored in `reaction`. Vertex updates do not read it, so evaluation has no
    side effects on the solve.

    Args:
        planes: `Planes`, or () without obstacles.
        own: Vertices.
        batch: Batch of the vertices.
        N: Constrained directions.
        A: Stiffness [N/m], symmetric as xx yy zz xy xz yz.
        ui: Displacements of the vertices [m].
        f: Net force without obstacles [N].
        s: Sum of force magnitudes [N].

    Returns:
        (f + r, s + |r|), with the sum of magnitudes over all planes.
    """


@overload_by_type(add_reactions)
def _add_reactions(planes, own, batch, N, A, ui, f, s):
    if len(planes) == 0:
        return lambda planes, own, batch, N, A, ui, f, s: (f, s)
    return lambda planes, own, batch, N, A, ui, f, s: _plane_reactions(planes, own, batch, N, A, ui, f, s)


@device_function
def _plane_reactions(planes, own, batch, N, A, ui, f, s):
    """Reactions r = C(-(f + k (g n + o))): an open gap counts as its closing force, if that is smaller."""
    k = (A[0] + A[1] + A[2]) / 3.0
    if _is_contact_free(planes, own, batch, N, ui, k, f):
        zero = 0.0 * f[0]
        for j in range(len(planes.normal)):
            scatter(planes.reaction[j], own, batch, 0, (zero, zero, zero))
        return f, s
    r = _last_forces(planes, own, batch, 0.0 * ui[0])
    for j in range(len(planes.normal)):
        scatter(planes.reaction[j], own, batch, 0, gather(planes.force[j], own, batch, 0))
    for _ in range(2 * _plane_iterations(planes)):
        for j in range(len(planes.normal)):
            previous_force = gather(planes.reaction[j], own, batch, 0)
            at, rest = plane_contact(planes, j, own, batch, N, ui), sub(r, previous_force)
            now = project_to_cone(at, scale(-1.0, add(add(f, rest), scale(k, at.error))))
            scatter(planes.reaction[j], own, batch, 0, now)
            r = add(rest, now)
    for j in range(len(planes.normal)):
        now = gather(planes.reaction[j], own, batch, 0)
        s = s + math.sqrt(dot(now, now))
    return add(f, r), s
