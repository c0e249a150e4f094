"""What is done to every vertex record alike, without looking at others."""

from __future__ import annotations

from typing import Any, NamedTuple

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


@kernel
def on_records(team, count, operation):
    for_each(team, 0, count, operation)


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
    for axis in range(3):
        x = o.u[k, axis]
        v = o.velocity[k, axis] if o.keep < 0.0 else o.keep * (x - o.last[k, axis]) / o.dt
        y = x + o.dt * v
        o.velocity[k, axis], o.last[k, axis], o.anchor[k, axis], o.u[k, axis] = v, x, y, y


class Displace(NamedTuple):
    """u += drift."""

    u: Any
    drift: Any


@act.of(Displace)
def _displace(operation, place, i):
    for axis in range(3):
        operation.u[i + offset_of(place), axis] += operation.drift[i, axis]


class Put(NamedTuple):
    """u[ids] = targets."""

    u: Any
    ids: Any
    targets: Any


@act.of(Put)
def _put(operation, place, i):
    for axis in range(3):
        operation.u[operation.ids[i] + offset_of(place), axis] = operation.targets[i, axis]
