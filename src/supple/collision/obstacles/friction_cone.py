"""Unilateral contact of vertices with obstacles and Coulomb friction.

An obstacle is a plane for each vertex, with the gap g = n · (u - foot) ≥ 0. With friction, the plane has an
anchor: the vertex position at the start of the step, advected by the obstacle. The slip o is the displacement
from the anchor perpendicular to n. The force r = λ n + t of the obstacle on the vertex satisfies, at the end
of a step,

    λ ≥ 0, g ≥ 0, λ g = 0        and        |t| ≤ μ λ, o = 0   or   t = - μ λ o/|o|.

Nothing is lagged from the previous step, so a sticking contact does not creep. An equivalent equation for any
k > 0 is r = C(r - k (g n + o)) [Alart and Curnier 1991], with the projection C onto the friction cone, normal
part first.
"""

from __future__ import annotations

import math
from typing import Any

from supple.algebra.matrix3 import add, dot, scale, solve_spd, sub
from supple.algebra.projector import symmetric_matvec
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
def _allowed(at, r):
    if is_empty(at[PlaneContact._fields.index("mu")]):
        return lambda at, r: scale(max(dot(at.normal, r), 0.0 * r[0]), at.normal)
    return lambda at, r: _in_cone(at, r)


@device_function
def _in_cone(at, r):
    normal = dot(at.normal, r)
    t = sub(r, scale(normal, at.normal))
    push = max(normal, 0.0 * normal)
    return add(scale(push, at.normal), scale(_within(at.mu * push, t), t))


def solve_contact(at: Any, A: Any, f: Any, before: Any) -> Any:
    """Contact force of one plane on vertices with local stiffness A.

    Args:
        at: `PlaneContact` of the vertices.
        A: Stiffness [N/m], symmetric as xx yy zz xy xz yz; displacement is A⁻¹ (f + r).
        f: Force without this plane [N].
        before: Last force of the plane [N], for the warm start.

    Returns:
        Force r [N] that satisfies the contact law at the new positions.
    """


@overload_by_type(solve_contact)
def _answer(at, A, f, before):
    if is_empty(at[PlaneContact._fields.index("mu")]):
        return lambda at, A, f, before: _push(at, A, f)
    return lambda at, A, f, before: _push_and_rub(at, A, f, before)


@device_function
def _push(at, A, f):
    """Frictionless contact force λ n with g + n · A⁻¹ (f + λ n) = 0, or 0 if that λ is negative."""
    n = at.normal
    yields = dot(n, solve_spd(A, n))
    there = yields * (A[0] + A[1] + A[2]) > MIN_COMPLIANCE
    wanted = -(at.gap + dot(n, solve_spd(A, f))) / where(there, yields, 0.0 * yields + 1.0)
    return scale(where(there, max(wanted, 0.0 * wanted), 0.0 * wanted), n)


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
def _push_and_rub(at, A, f, before):
    """Contact force with friction, by alternation of normal and tangential force.

    λ closes the gap; t = C(t - o/w) with the largest eigenvalue w of the tangential compliance. Both updates
    are stationary if the contact law holds. Forces are scaled by 1/tr A, since powers of the placeholder
    stiffness in lanes without a vertex overflow.
    """
    n, s, trace = at.normal, solve_spd(A, f), A[0] + A[1] + A[2]
    A, before = _relaxed(A, trace), scale(1.0 / trace, before)
    W, det = _inverse(A)
    Wn = symmetric_matvec(W, n)
    yields = dot(n, Wn)
    there = yields > MIN_COMPLIANCE
    one = 0.0 * yields + 1.0
    half = 0.5 * (W[0] + W[1] + W[2] - yields)
    square = max(half * half - dot(n, symmetric_matvec(A, n)) / det, 0.0 * half)
    stiff, hard = one / (half + math.sqrt(square)), one / where(there, yields, one)
    slip = sub(at.error, scale(at.gap, n))
    push = max(dot(n, before), 0.0 * yields)
    rub = sub(before, scale(dot(n, before), n))
    for _ in range(FRICTION_ITERATIONS):
        Wt = symmetric_matvec(W, rub)
        push = max(-hard * (at.gap + dot(n, s) + dot(n, Wt)), 0.0 * yields)
        moved = add(add(s, Wt), scale(push, Wn))
        rub = sub(rub, scale(stiff, add(slip, across(n, moved))))
        rub = scale(_within(at.mu * push, rub), rub)
    r = add(scale(push, n), rub)
    return scale(where(there, trace, 0.0 * one), r)


@device_function
def _within(limit, v):
    """Scale factor that limits the length of v."""
    length = math.sqrt(dot(v, v))
    return min(limit / max(length, 0.0 * length + MIN_SLIP), 0.0 * length + 1.0)


def contact_step(planes: Any, own: Any, batch: Any, N: Any, A: Any, f: Any, ui: Any, omega: Any) -> Any:
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


@overload_by_type(contact_step)
def _respond(planes, own, batch, N, A, f, ui, omega):
    if len(planes) == 0:
        return lambda planes, own, batch, N, A, f, ui, omega: scale(omega, solve_spd(A, f))
    return lambda planes, own, batch, N, A, f, ui, omega: _with_planes(
        planes, own, batch, N, _relaxed(A, omega), f, ui
    )


@device_function
def _relaxed(A, omega):
    """Scaled block A/ω, so that an over-relaxed step is an ordinary step of the scaled system."""
    s = 1.0 / omega
    return (s * A[0], s * A[1], s * A[2], s * A[3], s * A[4], s * A[5])


@device_function
def _rounds(planes):
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
def _none_pushes(planes, own, batch, N, ui, k, f):
    """True for most vertices: no plane exerted a force last, and none does against f + k (g n + o)."""
    none = 0.0 * f[0] >= 0.0
    for j in range(len(planes.normal)):
        before, at = gather(planes.force[j], own, batch, 0), plane_contact(planes, j, own, batch, N, ui)
        gap = min(at.gap, dot(at.normal, at.error))  # they differ along constrained directions
        none = none & (dot(before, before) <= 0.0) & (k * gap + dot(at.normal, f) >= 0.0)
    return all_lanes(none)


@device_function
def _with_planes(planes, own, batch, N, A, f, ui):
    step = solve_spd(A, f)
    if _none_pushes(planes, own, batch, N, ui, 0.0 * ui[0] + 1.0, step):
        return step
    r = _last_forces(planes, own, batch, 0.0 * ui[0])
    for _ in range(_rounds(planes)):
        for j in range(len(planes.normal)):
            before = gather(planes.force[j], own, batch, 0)
            now = solve_contact(
                plane_contact(planes, j, own, batch, N, ui), A, add(f, sub(r, before)), before
            )
            scatter(planes.force[j], own, batch, 0, now)  # threads that share a vertex also write
            r = add(sub(r, before), now)
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
def _support(planes, own, batch, N, A, ui, f, s):
    if len(planes) == 0:
        return lambda planes, own, batch, N, A, ui, f, s: (f, s)
    return lambda planes, own, batch, N, A, ui, f, s: _by_planes(planes, own, batch, N, A, ui, f, s)


@device_function
def _by_planes(planes, own, batch, N, A, ui, f, s):
    """Reactions r = C(-(f + k (g n + o))): an open gap counts as its closing force, if that is smaller."""
    k = (A[0] + A[1] + A[2]) / 3.0
    if _none_pushes(planes, own, batch, N, ui, k, f):
        zero = 0.0 * f[0]
        for j in range(len(planes.normal)):
            scatter(planes.reaction[j], own, batch, 0, (zero, zero, zero))
        return f, s
    r = _last_forces(planes, own, batch, 0.0 * ui[0])
    for j in range(len(planes.normal)):
        scatter(planes.reaction[j], own, batch, 0, gather(planes.force[j], own, batch, 0))
    for _ in range(2 * _rounds(planes)):
        for j in range(len(planes.normal)):
            before = gather(planes.reaction[j], own, batch, 0)
            at, rest = plane_contact(planes, j, own, batch, N, ui), sub(r, before)
            now = project_to_cone(at, scale(-1.0, add(add(f, rest), scale(k, at.error))))
            scatter(planes.reaction[j], own, batch, 0, now)
            r = add(rest, now)
    for j in range(len(planes.normal)):
        now = gather(planes.reaction[j], own, batch, 0)
        s = s + math.sqrt(dot(now, now))
    return add(f, r), s
