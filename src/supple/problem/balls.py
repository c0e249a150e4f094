"""Balls that vertices must not leave: what kernels do to keep them there."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.kernels import chosen_by_type, gather, offset_of, physics, put_record, record_at, select
from supple.problem.contact_records import follow
from supple.problem.records import act


class Balls(NamedTuple):
    """One around each vertex, records (copies (n + 1), 4): the centre as a displacement [m], and the radius
    [m] as the first number."""

    centre: Any
    radius: Any


@physics
def _nearest(x, c, radius):
    """x, or the nearest point of a ball around c."""
    d = sub(x, c)
    square = dot(d, d)
    outside = square > radius * radius
    t = radius / math.sqrt(select(outside, square, 0.0 * square + 1.0))
    y = add(c, scale(t, d))
    return select(outside, y[0], x[0]), select(outside, y[1], x[1]), select(outside, y[2], x[2])


def in_ball(balls: Any, own: Any, batch: Any, x: Any) -> Any:
    """x, displacements of the vertices of a batch, or the nearest that their balls have; () are none."""


@chosen_by_type(in_ball)
def _in_ball(balls, own, batch, x):
    if len(balls) == 0:
        return lambda balls, own, batch, x: x
    return lambda balls, own, batch, x: _nearest(
        x, gather(balls.centre, own, batch, 0), gather(balls.radius, own, batch, 0)[0]
    )


class Confine(NamedTuple):
    """u is put back into the balls, after something has moved it without looking at them, and what follows it
    is put where it is."""

    u: Any
    balls: Any
    followers: Any


@act.of(Confine)
def _confine(operation, place, i):
    o, k = operation, i + offset_of(place)
    x = _nearest(record_at(o.u, k), record_at(o.balls.centre, k), record_at(o.balls.radius, k)[0])
    put_record(o.u, k, x)
    follow(o.followers, o.u, k)
