"""Step bounds: balls around vertices, and kernels that project onto them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.kernels import chosen_by_type, gather, offset_of, physics, put_record, record_at, select
from supple.problem.contact_records import follow
from supple.problem.records import act


class Balls(NamedTuple):
    """One ball per vertex, as padded vectors (batch (n + 1), 4).

    Attributes:
        centre: Center, as a displacement [m].
        radius: Radius as first number [m].
    """

    centre: Any
    radius: Any


@physics
def _nearest(x, c, radius):
    """Project x onto the ball around c."""
    d = sub(x, c)
    square = dot(d, d)
    outside = square > radius * radius
    t = radius / math.sqrt(select(outside, square, 0.0 * square + 1.0))
    y = add(c, scale(t, d))
    return select(outside, y[0], x[0]), select(outside, y[1], x[1]), select(outside, y[2], x[2])


def in_ball(balls: Any, own: Any, batch: Any, x: Any) -> Any:
    """Project the displacements x of a vertex batch onto their balls; `()` means no bounds."""


@chosen_by_type(in_ball)
def _in_ball(balls, own, batch, x):
    if len(balls) == 0:
        return lambda balls, own, batch, x: x
    return lambda balls, own, batch, x: _nearest(
        x, gather(balls.centre, own, batch, 0), gather(balls.radius, own, batch, 0)[0]
    )


class Confine(NamedTuple):
    """Operation that projects u onto the balls after an update without bounds.

    Attributes:
        u: Displacements.
        balls: Step bounds.
        followers: Arrays that receive a copy of u.
    """

    u: Any
    balls: Any
    followers: Any


@act.of(Confine)
def _confine(operation, place, i):
    o, k = operation, i + offset_of(place)
    x = _nearest(record_at(o.u, k), record_at(o.balls.centre, k), record_at(o.balls.radius, k)[0])
    put_record(o.u, k, x)
    follow(o.followers, o.u, k)
