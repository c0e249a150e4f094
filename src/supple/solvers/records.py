"""What is done to every vertex record alike, without looking at others."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.extending import overload

from supple.algebra.matrix3 import add, scale, sub
from supple.kernels import (
    enter,
    generic,
    inside,
    kernel,
    leave,
    number,
    offset_of,
    physics,
    proceed,
    put_record,
    record_at,
    records_at_once,
    strides,
)


@generic
def act(operation, place, i):
    """Do an operation on the i-th record of the copy of the state that a place belongs to."""


@physics
def for_each(team, phase, count, operation):
    """Do an operation on each of `count` records, in one phase."""
    size = records_at_once(team)
    blocks = -(-count // size)
    block = enter(team, phase, 0, blocks)
    while inside(block, blocks):
        first, step = strides(block)
        start = number(block) * size
        i, end = start + first, min(count, start + size)
        while i < end:
            act(operation, block, i)
            i += step
        block = proceed(team, phase, block, 0, blocks)
    leave(team, phase, 0, blocks)


def one_by_one(team: Any, phase: int, counts: tuple, operations: tuple) -> None:
    """Do operations one after the other, each on as many records as its count says, in a phase each."""


@overload(one_by_one)
def _one_by_one(team, phase, counts, operations):
    if len(operations) == 0:
        return lambda team, phase, counts, operations: None

    def first_then_rest(team, phase, counts, operations):
        for_each(team, phase, counts[0], operations[0])
        one_by_one(team, phase + 1, counts[1:], operations[1:])

    return first_then_rest


@kernel
def on_records(team, counts, operations):
    one_by_one(team, 0, counts, operations)


class Coast(NamedTuple):
    """From one step of time to the next without forces: v = keep (u - last)/Δt, or what `velocity` says where
    keep < 0; last = u; û = u + Δt v; u = û."""

    u: Any
    last: Any
    velocity: Any
    anchor: Any
    dt: Any
    keep: Any


@act.of(Coast)
def _coast(operation, place, i):
    o, k = operation, i + offset_of(place)
    x, before, v = record_at(o.u, k), record_at(o.last, k), record_at(o.velocity, k)
    if o.keep >= 0.0:
        v = scale(o.keep / o.dt, sub(x, before))
    y = add(x, scale(o.dt, v))
    put_record(o.velocity, k, v)
    put_record(o.last, k, x)
    put_record(o.anchor, k, y)
    put_record(o.u, k, y)


class Displace(NamedTuple):
    """u += drift."""

    u: Any
    drift: Any


@act.of(Displace)
def _displace(operation, place, i):
    k = i + offset_of(place)
    put_record(operation.u, k, add(record_at(operation.u, k), record_at(operation.drift, i)))


class Put(NamedTuple):
    """u[ids] = targets."""

    u: Any
    ids: Any
    targets: Any


@act.of(Put)
def _put(operation, place, i):
    put_record(operation.u, operation.ids[i] + offset_of(place), record_at(operation.targets, i))
