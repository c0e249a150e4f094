"""What obstacles do to vertex records: planes are found, vertices put out of them, forces exerted."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact import allowed, carried, carried_before, nearest_planes, touch_of
from supple.contact.planes import Touch, across
from supple.contact.shapes import FRICTION, KINETIC
from supple.kernels import (
    RECORD,
    chosen_by_type,
    number_at,
    offset_of,
    pack_like,
    physics,
    put_record,
    record_at,
    select,
)
from supple.problem.records import act, for_each


class Remember(NamedTuple):
    """start = u, where a step begins."""

    u: Any
    start: Any


@act.of(Remember)
def _remember(operation, place, i):
    k = i + offset_of(place)
    put_record(operation.start, k, record_at(operation.u, k))


class Forget(NamedTuple):
    """which = -1: shapes that planes are of are not known any more."""

    which: Any


@act.of(Forget)
def _forget(operation, place, i):
    k = i + offset_of(place)
    for j in range(operation.which.shape[1]):
        operation.which[k, j] = -1


class Detect(NamedTuple):
    """Planes of every vertex at u, which is put out of what it is inside of where `free` (n + 1,) is 1. rest
    (n + 1, 4): positions at rest, float64; which (copies (n + 1), 4): the numbers of the shapes; sliding:
    `Sliding`, or () where friction does not depend on that."""

    u: Any
    rest: Any
    free: Any
    start: Any
    shapes: Any
    planes: Any
    which: Any
    snap: Any
    sliding: Any = ()


class Sliding(NamedTuple):
    """What slid in the step before, in which vertices moved by back (û - start), û being the records that
    inertia pulls towards; still [m]: what moved less relative to an obstacle did not."""

    anchor: Any
    back: Any
    still: Any


@physics
def vector_at(records, k):
    """A record as plain numbers in float64."""
    first = RECORD * k
    return (
        1.0 * number_at(records, first),
        1.0 * number_at(records, first + 1),
        1.0 * number_at(records, first + 2),
    )


@physics
def _put(records, k, v, like):
    put_record(records, k, (pack_like(v[0], like), pack_like(v[1], like), pack_like(v[2], like)))


@act.of(Detect)
def _detect(operation, place, i):
    o, k = operation, i + offset_of(place)
    X = vector_at(o.rest, i)
    found = nearest_planes(o.shapes, add(X, vector_at(o.u, k)), len(o.planes.normal))
    for j in range(len(o.planes.normal)):
        shape, d, n = found[j]
        if o.which[k, j] != shape:  # the force was that of another
            _put(o.planes.force[j], k, (0.0, 0.0, 0.0), record_at(o.u, k)[0])
        o.which[k, j] = shape
        _take_plane(o, j, shape, d, n, i, k, X)
    clamp(o.planes, o.u, k, pack_like(o.free[i], record_at(o.u, k)[0]), o.snap)


@physics
def _take_plane(operation, j, shape, d, n, i, k, X):
    u, planes = vector_at(operation.u, k), operation.planes
    like = record_at(operation.u, k)[0]
    none = (0.0, 0.0, 0.0)
    if shape < 0 or i == operation.free.shape[0] - 1:
        _put(planes.normal[j], k, none, like)
        _put(planes.foot[j], k, none, like)
    else:
        _put(planes.normal[j], k, n, like)
        _put(planes.foot[j], k, sub(u, scale(d, n)), like)
        take_friction(planes.friction, operation, j, shape, k, X, n, like)


def take_friction(
    friction: Any, operation: Any, j: int, shape: int, k: int, X: Any, n: Any, like: Any
) -> None:
    """Write the anchor and the coefficient, where there is friction."""


@chosen_by_type(take_friction)
def _take_friction(friction, operation, j, shape, k, X, n, like):
    if len(friction) == 0:
        return lambda friction, operation, j, shape, k, X, n, like: None

    def anchored(friction, operation, j, shape, k, X, n, like):
        start = add(X, vector_at(operation.start, k))
        there = carried(operation.shapes, shape, start)
        mu = coefficient(operation.sliding, operation.shapes, shape, start, sub(start, X), k, n)
        _put(friction.anchor[j], k, sub(there, X), like)
        _put(friction.coefficient[j], k, (mu, 0.0, 0.0), like)

    return anchored


def coefficient(sliding: Any, shapes: Any, shape: int, start: Any, u: Any, k: int, n: Any) -> Any:
    """μ of a shape for a vertex that was at `start`, displaced by u, when the step began."""


@chosen_by_type(coefficient)
def _coefficient(sliding, shapes, shape, start, u, k, n):
    if len(sliding) == 0:
        return lambda sliding, shapes, shape, start, u, k, n: shapes.rows[shape, FRICTION]

    def by_sliding(sliding, shapes, shape, start, u, k, n):
        moved = scale(sliding.back, sub(vector_at(sliding.anchor, k), u))
        slid = across(n, sub(start, carried_before(shapes, shape, sub(start, moved))))
        if dot(slid, slid) > sliding.still * sliding.still:
            return shapes.rows[shape, KINETIC]
        return shapes.rows[shape, FRICTION]

    return by_sliding


@physics
def clamp(planes, u, k, free, snap):
    """Put the k-th record of u out of all planes, and to its anchor where it is there but for rounding."""
    x = record_at(u, k)
    for _ in range(3 if len(planes.normal) > 1 else 1):
        for j in range(len(planes.normal)):
            at = touch_of(planes, j, k, x)
            x = sub(x, scale(free * min(at.gap, 0.0 * at.gap), at.normal))
            x = settled(at, x, free, snap)
    put_record(u, k, x)


def settled(at: Any, x: Any, free: Any, snap: Any) -> Any:
    """x, or the anchor where that is hardly away."""


@chosen_by_type(settled)
def _settled(at, x, free, snap):
    if isinstance(at[Touch._fields.index("mu")], types.BaseTuple):
        return lambda at, x, free, snap: x

    def snapped(at, x, free, snap):
        slip = sub(at.error, scale(at.gap, at.normal))
        near = (dot(slip, slip) <= snap * snap) & (at.gap <= snap)
        return sub(x, scale(select(near, free, 0.0 * free), slip))

    return snapped


class Clamp(NamedTuple):
    """u is put out of the planes that there are, after something has moved it without looking at them, and
    what follows it is put where it is."""

    u: Any
    free: Any
    planes: Any
    snap: Any
    followers: Any


@act.of(Clamp)
def _clamp_record(operation, place, i):
    o, k = operation, i + offset_of(place)
    clamp(o.planes, o.u, k, pack_like(o.free[i], record_at(o.u, k)[0]), o.snap)
    follow(o.followers, o.u, k)


def follow(followers: tuple, u: Any, k: int) -> None:
    """Put the k-th record of u into those of others, too."""


@chosen_by_type(follow)
def _follow(followers, u, k):
    if len(followers) == 0:
        return lambda followers, u, k: None

    def first_then_rest(followers, u, k):
        put_record(followers[0], k, record_at(u, k))
        follow(followers[1:], u, k)

    return first_then_rest


class Press(NamedTuple):
    """What element-wise methods do with a plane of this number: u += W Δr with the force r = C(r - (g n +
    o)/W), which memory (copies (n + 1), 4) keeps in the course of a step; weights (n + 1,): W [m/N]."""

    u: Any
    weights: Any
    planes: Any
    number: Any
    memory: Any


@act.of(Press)
def _press(operation, place, i):
    o, k = operation, i + offset_of(place)
    W = o.weights[i]
    if W > 0.0:
        x, before = record_at(o.u, k), record_at(o.memory, k)
        at = touch_of(o.planes, o.number, k, x)
        force = allowed(at, sub(before, scale(1.0 / W, at.error)))
        put_record(o.memory, k, force)
        put_record(o.u, k, add(x, scale(W, sub(force, before))))


class Exert(NamedTuple):
    """u += W r with what `Press` remembers."""

    u: Any
    weights: Any
    memory: Any


@act.of(Exert)
def _exert(operation, place, i):
    o, k = operation, i + offset_of(place)
    put_record(o.u, k, add(record_at(o.u, k), scale(o.weights[i], record_at(o.memory, k))))


def clamp_all(clamps: Any, team: Any, phase: int, count: int) -> int:
    """Do clamps, a tuple of `Clamp` and `Confine`, on so many records in one phase, where there are any;
    returns the phase that follows."""
    return phase


@chosen_by_type(clamp_all, leads_on=True)
def _clamp_all(clamps, team, phase, count):
    if len(clamps) == 0:
        return lambda clamps, team, phase, count: phase

    def do_one(clamps, team, phase, count):
        for_each(team, phase, (count,), clamps)
        return phase + 1

    def do_two(clamps, team, phase, count):
        for_each(team, phase, (count, count), clamps)
        return phase + 1

    return do_one if len(clamps) == 1 else do_two
