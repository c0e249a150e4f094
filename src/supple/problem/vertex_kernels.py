"""Operations on the padded vectors of all vertices, each vertex independent of the others."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.algebra.dirichlet_projection import free_part
from supple.algebra.matrix3 import add, scale, sub
from supple.kernels import (
    RECORD,
    device_function,
    do,
    generic,
    item_number,
    kernel,
    lane_stride,
    member_of,
    number_at,
    overload_by_type,
    pack_like,
    parallel_for,
    record_at,
    records_at_once,
    store_record,
    strict_order,
    vector_offset,
)


@generic
def apply_operation(operation, item, i):
    """Apply an operation to the i-th vector of the batch member of a work item."""


def apply_operations(operations: tuple, counts: tuple, item: Any, i: int) -> None:
    """Apply operations in order to the i-th vector; operations with fewer vectors are skipped."""


@overload_by_type(apply_operations)
def _apply_operations(operations, counts, item, i):
    if len(operations) == 0:
        return lambda operations, counts, item, i: None

    def first_then_rest(operations, counts, item, i):
        if i < counts[0]:
            apply_operation(operations[0], item, i)
        apply_operations(operations[1:], counts[1:], item, i)

    return first_then_rest


class VectorOperations(NamedTuple):
    """Operations on blocks of vectors.

    Attributes:
        operations: Operations to apply.
        counts: Number of vectors of each.
        size: Vectors per block.
    """

    operations: Any
    counts: Any
    size: Any


@do.of(VectorOperations)
def _apply_to_block(work, block):
    first, step = lane_stride(block)
    start = item_number(block) * work.size
    i, end = start + first, min(max(work.counts), start + work.size)
    while i < end:
        apply_operations(work.operations, work.counts, block, i)
        i += step


@device_function
def for_each(team, phase, counts, operations):
    """Apply operations to all vectors in one phase; `counts` are their vector numbers."""
    size = records_at_once(team)
    parallel_for(team, phase, 0, -(-max(counts) // size), VectorOperations(operations, counts, size))


@kernel
def apply_to_vectors(team, counts, operations):
    for_each(team, 0, counts, operations)


class Steps(NamedTuple):
    """Repeated steps of a kernel: operations on vectors, then its own work.

    Attributes:
        times: Number of repetitions.
        counts: Number of vectors of each operation.
        operations: Operations at the beginning of each step.
    """

    times: Any
    counts: Any
    operations: Any


SINGLE_STEP = Steps(1, (), ())


def begin_step(steps: Steps, team: Any, phase: int) -> int:
    """Apply the operations of a step; return the next phase."""
    return phase


@overload_by_type(begin_step)
def _begin_step(steps, team, phase):
    if len(steps[2]) == 0:
        return lambda steps, team, phase: phase

    def operate(steps, team, phase):
        for_each(team, phase, steps.counts, steps.operations)
        return phase + 1

    return operate


class Predict(NamedTuple):
    """Inertial prediction: v = keep (u - last)/Δt, last = u, û = u + Δt v, u = û.

    With keep < 0, v is the given `velocity`.
    """

    u: Any
    last: Any
    velocity: Any
    anchor: Any
    dt: Any
    keep: Any


@apply_operation.of(Predict)
def _predict(operation, item, i):
    o, k = operation, i + vector_offset(item)
    x, before, v = record_at(o.u, k), record_at(o.last, k), record_at(o.velocity, k)
    if o.keep >= 0.0:
        v = scale(o.keep / o.dt, sub(x, before))
    y = add(x, scale(o.dt, v))
    store_record(o.velocity, k, v)
    store_record(o.last, k, x)
    store_record(o.anchor, k, y)
    store_record(o.u, k, y)


class UpdateVelocity(NamedTuple):
    """Update velocity = keep (u - last)/Δt, in float64 and rounded once."""

    u: Any
    last: Any
    velocity: Any
    dt: Any
    keep: Any


@strict_order
def _velocity_component(o, k):
    return o.keep * (1.0 * number_at(o.u, k) - 1.0 * number_at(o.last, k)) / o.dt


@apply_operation.of(UpdateVelocity)
def _update_velocity(operation, item, i):
    o, k = operation, i + vector_offset(item)
    like, first = record_at(o.u, k)[0], RECORD * k
    v = _velocity_component(o, first), _velocity_component(o, first + 1), _velocity_component(o, first + 2)
    store_record(o.velocity, k, (pack_like(v[0], like), pack_like(v[1], like), pack_like(v[2], like)))


class Displace(NamedTuple):
    """Displacement u += drift; `per_member` is true for a separate drift per batch member."""

    u: Any
    drift: Any
    per_member: Any


@apply_operation.of(Displace)
def _displace(operation, item, i):
    k = i + vector_offset(item)
    drift = record_at(operation.drift, k if operation.per_member else i)
    store_record(operation.u, k, add(record_at(operation.u, k), drift))


class Clear(NamedTuple):
    """Set memory = 0, four numbers at a time; for arrays of batch size 1."""

    memory: Any


@apply_operation.of(Clear)
def _clear(operation, item, i):
    zero = pack_like(0.0, record_at(operation.memory, i)[0])
    store_record(operation.memory, i, (zero, zero, zero))


class Prescribe(NamedTuple):
    """Prescribe vertices: u = targets[slot] if slot ≥ 0.

    With `normals`, u = u - N u + targets[slot], and targets have no component orthogonal to N.

    Attributes:
        u: Displacements.
        slot: (n + 1,) target of each vertex, negative for none.
        targets: (batch count, 4) prescribed displacements.
        count: Targets per batch member.
        normals: () or `Normals`.
    """

    u: Any
    slot: Any
    targets: Any
    count: Any
    normals: Any = ()


@apply_operation.of(Prescribe)
def _prescribe(operation, item, i):
    slot = operation.slot[i]
    if slot >= 0:
        target = record_at(operation.targets, slot + member_of(item) * operation.count)
        k = i + vector_offset(item)
        store_record(
            operation.u, k, prescribed_vector(operation.normals, i, record_at(operation.u, k), target)
        )


def prescribed_vector(normals: Any, i: int, x: Any, target: Any) -> Any:
    """x - N x + target for the i-th vertex; the target without directional conditions."""


@overload_by_type(prescribed_vector)
def _prescribed_vector(normals, i, x, target):
    if len(normals) == 0:
        return lambda normals, i, x, target: target
    return lambda normals, i, x, target: add(
        free_part(record_at(normals.diagonal, i) + record_at(normals.across, i), x), target
    )


class MoveAlongLine(NamedTuple):
    """Set u = start + t d + y."""

    u: Any
    start: Any
    d: Any
    t: Any
    y: Any


@apply_operation.of(MoveAlongLine)
def _move_along_line(operation, item, i):
    o, k = operation, i + vector_offset(item)
    line = add(record_at(o.start, k), scale(o.t, record_at(o.d, k)))
    store_record(o.u, k, add(line, record_at(o.y, k)))
