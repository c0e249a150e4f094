"""Kernel operations of obstacle contact: detect contact planes, project vertices out, apply forces."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.collision import advect, advect_previous, nearest_planes, plane_contact_at, project_to_cone
from supple.collision.obstacles.contact_planes import PlaneContact, across
from supple.collision.obstacles.passage import CONTACT_DEPTH, from_frame, passage_fraction, to_frame
from supple.collision.obstacles.signed_distance import FRICTION, KINETIC, POSE
from supple.kernels import (
    RECORD,
    atomic_add,
    device_function,
    member_of,
    number_at,
    overload_by_type,
    pack_like,
    record_at,
    store_record,
    vector_offset,
    where,
)
from supple.problem.vertex_kernels import apply_operation, for_each

NO_THICKNESS = 1e300
"""Thickness [m] of shapes without another side: finite, since GPU kernels need not support infinity."""


class RecordStart(NamedTuple):
    """Copy u to `start` at the beginning of a step."""

    u: Any
    start: Any


@apply_operation.of(RecordStart)
def _record_start(operation, item, i):
    k = i + vector_offset(item)
    store_record(operation.start, k, record_at(operation.u, k))


class ClearShapes(NamedTuple):
    """Set `which` to -1: mark the shapes of all contact planes as unknown."""

    which: Any


@apply_operation.of(ClearShapes)
def _clear_shapes(operation, item, i):
    k = i + vector_offset(item)
    for j in range(operation.which.shape[1]):
        operation.which[k, j] = -1


class Detect(NamedTuple):
    """Find the contact planes of every vertex at u, and project free vertices out of obstacles.

    Attributes:
        u: Displacements.
        rest: (n + 1, 4) rest positions, float64.
        free: (n + 1,) 1 for vertices to be projected, otherwise 0.
        start: Displacements at the beginning of the step.
        shapes: Obstacle shapes.
        planes: Contact planes, written.
        which: (batch (n + 1), 3) shape of each plane, -1 for none, written.
        stick_distance: Slip and gap below which a vertex is moved to its stick point [m].
        sliding: `Sliding`, or () if friction does not depend on sliding.
        paths: `Paths`, or () if no vertex can pass through a shape.
    """

    u: Any
    rest: Any
    free: Any
    start: Any
    shapes: Any
    planes: Any
    which: Any
    stick_distance: Any
    sliding: Any = ()
    paths: Any = ()


class Sliding(NamedTuple):
    """Data to decide whether a vertex slid in the previous step.

    Attributes:
        anchor: Padded vectors of û, the inertial target.
        motion_factor: Ratio of the motion in the previous step to û - start.
        max_sticking_motion: Relative motion below which a vertex did not slide [m].
    """

    anchor: Any
    motion_factor: Any
    max_sticking_motion: Any


class Paths(NamedTuple):
    """Paths of vertices since the last detection, on which they must not pass through obstacles.

    Attributes:
        last: Displacements after the last detection.
        frames: (r, 12) frames of the shapes at the last detection.
        moved: (r,) 1 for shapes that have moved since, otherwise 0.
        half_thickness: (r,) half of the thickness of the shapes [m], infinite for those without another side.
        passed: (batch (n + 1),) 1 + shape that a vertex has passed through nevertheless, otherwise 0.
        count: (batch,) number of such vertices.
    """

    last: Any
    frames: Any
    moved: Any
    half_thickness: Any
    passed: Any
    count: Any


@device_function
def vector_at(records, k):
    """Padded vector k as a float64 3-tuple."""
    first = RECORD * k
    return (
        1.0 * number_at(records, first),
        1.0 * number_at(records, first + 1),
        1.0 * number_at(records, first + 2),
    )


@device_function
def _store_vector(records, k, v, sample):
    store_record(records, k, (pack_like(v[0], sample), pack_like(v[1], sample), pack_like(v[2], sample)))


@apply_operation.of(Detect)
def _detect(operation, item, i):
    o, k = operation, i + vector_offset(item)
    X = vector_at(o.rest, i)
    stop_at_entry(o.paths, o, i, k, X)
    nearest = nearest_planes(o.shapes, add(X, vector_at(o.u, k)), len(o.planes.normal))
    mark_far_side(o.paths, o, item, i, k, nearest)
    for j in range(len(o.planes.normal)):
        shape, d, n = nearest[j]
        if o.which[k, j] != shape:  # the force belongs to another shape
            _store_vector(o.planes.force[j], k, (0.0, 0.0, 0.0), record_at(o.u, k)[0])
        o.which[k, j] = shape
        _store_plane(o, j, shape, d, n, i, k, X)
    clamp(o.planes, o.u, k, pack_like(o.free[i], record_at(o.u, k)[0]), o.stick_distance)
    finish_path(o.paths, o, item, i, k, X)


@device_function
def _first_passage(paths, shapes, a, b):
    """(shape, t): first shape that the path from a to b passes through, and entry fraction; -1 for none."""
    step = sub(b, a)
    square, shape, first = dot(step, step), -1, 1.0
    for k in range(len(paths.half_thickness)):
        half = paths.half_thickness[k]
        if half < NO_THICKNESS and (paths.moved[k] != 0 or square > half * half):
            p, q = to_frame(paths.frames, k, 0, a), to_frame(shapes.rows, k, POSE, b)
            t = passage_fraction(shapes, k, p, q, half)
            if t < first:
                shape, first = k, t
    return shape, first


def stop_at_entry(paths: Any, operation: Any, i: int, k: int, X: Any) -> None:
    """Move a vertex that has passed through a shape back to the point where it entered."""


@overload_by_type(stop_at_entry)
def _stop_at_entry(paths, operation, i, k, X):
    if len(paths) == 0:
        return lambda paths, operation, i, k, X: None

    def stop(paths, operation, i, k, X):
        if operation.free[i] != 0:
            a, b = add(X, vector_at(paths.last, k)), add(X, vector_at(operation.u, k))
            shape, t = _first_passage(paths, operation.shapes, a, b)
            if shape >= 0:
                rows = operation.shapes.rows
                p, q = to_frame(paths.frames, shape, 0, a), to_frame(rows, shape, POSE, b)
                x = from_frame(rows, shape, POSE, add(p, scale(t, sub(q, p))))
                _store_vector(operation.u, k, sub(x, X), record_at(operation.u, k)[0])

    return stop


@device_function
def _mark_passed(paths, item, k, shape):
    if paths.passed[k] == 0:
        atomic_add(paths.count, member_of(item), 1)
    paths.passed[k] = shape + 1


def mark_far_side(paths: Any, operation: Any, item: Any, i: int, k: int, nearest: Any) -> None:
    """Mark a vertex inside a shape that is beyond its middle since the last detection."""


@overload_by_type(mark_far_side)
def _mark_far_side(paths, operation, item, i, k, nearest):
    if len(paths) == 0:
        return lambda paths, operation, item, i, k, nearest: None

    def mark(paths, operation, item, i, k, nearest):
        if operation.free[i] != 0:
            for j in range(len(operation.planes.normal)):
                shape, d, n = nearest[j]
                if shape >= 0 and d < -CONTACT_DEPTH * paths.half_thickness[shape]:
                    for m in range(len(operation.planes.normal)):
                        before = vector_at(operation.planes.normal[m], k)
                        if operation.which[k, m] == shape and dot(n, before) < 0.0:
                            _mark_passed(paths, item, k, shape)

    return mark


def finish_path(paths: Any, operation: Any, item: Any, i: int, k: int, X: Any) -> None:
    """Mark a vertex that has passed through a shape in spite of all planes, and begin its next path."""


@overload_by_type(finish_path)
def _finish_path(paths, operation, item, i, k, X):
    if len(paths) == 0:
        return lambda paths, operation, item, i, k, X: None

    def finish(paths, operation, item, i, k, X):
        if operation.free[i] != 0:
            a, b = add(X, vector_at(paths.last, k)), add(X, vector_at(operation.u, k))
            shape, _ = _first_passage(paths, operation.shapes, a, b)
            if shape >= 0:
                _mark_passed(paths, item, k, shape)
        store_record(paths.last, k, record_at(operation.u, k))

    return finish


class SplitPath(NamedTuple):
    """Move free vertices back to a fraction of their path: step = fraction (u - start), u = start + step.

    Attributes:
        u: Displacements.
        start: Displacements at the beginning of the path.
        free: (n + 1,) 1 for vertices to be moved, otherwise 0.
        fraction: Fraction of the path.
        step: Displacement of the fraction, written.
    """

    u: Any
    start: Any
    free: Any
    fraction: Any
    step: Any


@apply_operation.of(SplitPath)
def _split_path(operation, item, i):
    o, k = operation, i + vector_offset(item)
    x, start = record_at(o.u, k), record_at(o.start, k)
    part = pack_like(o.free[i], x[0])
    whole = scale(part, sub(x, start))
    step = scale(pack_like(o.fraction, x[0]), whole)
    store_record(o.step, k, step)
    store_record(o.u, k, sub(x, sub(whole, step)))


@device_function
def _store_plane(operation, j, shape, d, n, i, k, X):
    u, planes = vector_at(operation.u, k), operation.planes
    sample = record_at(operation.u, k)[0]
    none = (0.0, 0.0, 0.0)
    if shape < 0 or i == operation.free.shape[0] - 1:
        _store_vector(planes.normal[j], k, none, sample)
        _store_vector(planes.closest_point[j], k, none, sample)
    else:
        _store_vector(planes.normal[j], k, n, sample)
        _store_vector(planes.closest_point[j], k, sub(u, scale(d, n)), sample)
        store_friction(planes.friction, operation, j, shape, k, X, n, sample)


def store_friction(
    friction: Any, operation: Any, j: int, shape: int, k: int, X: Any, n: Any, sample: Any
) -> None:
    """Write stick point and friction coefficient, if there is friction."""


@overload_by_type(store_friction)
def _store_friction(friction, operation, j, shape, k, X, n, sample):
    if len(friction) == 0:
        return lambda friction, operation, j, shape, k, X, n, sample: None

    def store_anchor(friction, operation, j, shape, k, X, n, sample):
        start = add(X, vector_at(operation.start, k))
        advected = advect(operation.shapes, shape, start)
        mu = coefficient(operation.sliding, operation.shapes, shape, start, sub(start, X), k, n)
        _store_vector(friction.anchor[j], k, sub(advected, X), sample)
        _store_vector(friction.coefficient[j], k, (mu, 0.0, 0.0), sample)

    return store_anchor


def coefficient(sliding: Any, shapes: Any, shape: int, start: Any, u: Any, k: int, n: Any) -> Any:
    """Friction coefficient μ of a shape at a vertex at `start`, displaced by u, at the step start."""


@overload_by_type(coefficient)
def _coefficient(sliding, shapes, shape, start, u, k, n):
    if len(sliding) == 0:
        return lambda sliding, shapes, shape, start, u, k, n: shapes.rows[shape, FRICTION]

    def by_sliding(sliding, shapes, shape, start, u, k, n):
        moved = scale(sliding.motion_factor, sub(vector_at(sliding.anchor, k), u))
        slid = across(n, sub(start, advect_previous(shapes, shape, sub(start, moved))))
        if dot(slid, slid) > sliding.max_sticking_motion * sliding.max_sticking_motion:
            return shapes.rows[shape, KINETIC]
        return shapes.rows[shape, FRICTION]

    return by_sliding


@device_function
def clamp(planes, u, k, free, stick_distance):
    """Project vector k of u out of all planes, then onto its stick point if within the stick distance."""
    x = record_at(u, k)
    for _ in range(3 if len(planes.normal) > 1 else 1):
        for j in range(len(planes.normal)):
            at = plane_contact_at(planes, j, k, x)
            x = sub(x, scale(free * min(at.gap, 0.0 * at.gap), at.normal))
            x = at_stick_point(at, x, free, stick_distance)
    store_record(u, k, x)


def at_stick_point(at: Any, x: Any, free: Any, stick_distance: Any) -> Any:
    """Return x, or the stick point if x is within the stick distance."""


@overload_by_type(at_stick_point)
def _at_stick_point(at, x, free, stick_distance):
    if isinstance(at[PlaneContact._fields.index("mu")], types.BaseTuple):
        return lambda at, x, free, stick_distance: x

    def move_to_stick_point(at, x, free, stick_distance):
        slip = sub(at.error, scale(at.gap, at.normal))
        near = (dot(slip, slip) <= stick_distance * stick_distance) & (at.gap <= stick_distance)
        return sub(x, scale(where(near, free, 0.0 * free), slip))

    return move_to_stick_point


class Clamp(NamedTuple):
    """Operation that projects u out of the known contact planes after an update that ignored them.

    Attributes:
        u: Displacements.
        free: (n + 1,) 1 for vertices to be projected, otherwise 0.
        planes: Contact planes.
        stick_distance: Slip and gap below which a vertex is moved to its stick point [m].
        copies_of_u: Arrays that receive a copy of u.
    """

    u: Any
    free: Any
    planes: Any
    stick_distance: Any
    copies_of_u: Any


@apply_operation.of(Clamp)
def _clamp_record(operation, item, i):
    o, k = operation, i + vector_offset(item)
    clamp(o.planes, o.u, k, pack_like(o.free[i], record_at(o.u, k)[0]), o.stick_distance)
    copy_to_all(o.copies_of_u, o.u, k)


def copy_to_all(copies_of_u: tuple, u: Any, k: int) -> None:
    """Copy the k-th vector of u to other arrays."""


@overload_by_type(copy_to_all)
def _copy_to_all(copies_of_u, u, k):
    if len(copies_of_u) == 0:
        return lambda copies_of_u, u, k: None

    def first_then_rest(copies_of_u, u, k):
        store_record(copies_of_u[0], k, record_at(u, k))
        copy_to_all(copies_of_u[1:], u, k)

    return first_then_rest


class ProjectOntoPlane(NamedTuple):
    """Contact with one plane in element-wise methods: u += W Δr with r = C(r - (g n + o)/W).

    Attributes:
        u: Displacements.
        weights: (n + 1,) inverse stiffness W [m/N].
        planes: Contact planes.
        number: Index of the plane.
        memory: (batch (n + 1), 4) force r [N], accumulated during the step.
    """

    u: Any
    weights: Any
    planes: Any
    number: Any
    memory: Any


@apply_operation.of(ProjectOntoPlane)
def _project_onto_plane(operation, item, i):
    o, k = operation, i + vector_offset(item)
    W = o.weights[i]
    if W > 0.0:
        x, before = record_at(o.u, k), record_at(o.memory, k)
        at = plane_contact_at(o.planes, o.number, k, x)
        force = project_to_cone(at, sub(before, scale(1.0 / W, at.error)))
        store_record(o.memory, k, force)
        store_record(o.u, k, add(x, scale(W, sub(force, before))))


class ApplyStoredForces(NamedTuple):
    """Operation u += W r with the forces accumulated by `ProjectOntoPlane`."""

    u: Any
    weights: Any
    memory: Any


@apply_operation.of(ApplyStoredForces)
def _apply_stored_forces(operation, item, i):
    o, k = operation, i + vector_offset(item)
    store_record(o.u, k, add(record_at(o.u, k), scale(o.weights[i], record_at(o.memory, k))))


def clamp_all(clamps: Any, team: Any, phase: int, count: int) -> int:
    """Project vertices out of obstacles and onto step bounds, in one phase.

    Without projections the phase is skipped.

    Args:
        clamps: Up to two operations `Clamp` and `ClampToBounds`.
        team: Thread team.
        phase: Phase of the operations.
        count: Number of vertices.

    Returns:
        The next phase.
    """
    return phase


@overload_by_type(clamp_all, control_flow=True)
def _clamp_all(clamps, team, phase, count):
    if len(clamps) == 0:
        return lambda clamps, team, phase, count: phase

    def clamp_one(clamps, team, phase, count):
        for_each(team, phase, (count,), clamps)
        return phase + 1

    def clamp_both(clamps, team, phase, count):
        for_each(team, phase, (count, count), clamps)
        return phase + 1

    return clamp_one if len(clamps) == 1 else clamp_both
