"""Reductions of contact forces between vertices and obstacles, per body and per obstacle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import dot, sub
from supple.contact import distance, nearest
from supple.contact.shapes import OBSTACLE
from supple.kernels import copy_of, do, each_item, kernel, lane_most, lane_total, number, offset_of, strides
from supple.problem.contact_records import vector_at
from supple.problem.records import act, for_each
from supple.problem.sums import Cuts, cut

if TYPE_CHECKING:
    from supple.problem.contacts import Contacts

AMOUNT, MOST, FIELDS = 3, 4, 5
"""Columns of the sums after the three components of the force [N].

AMOUNT is Σ λ |g| [J] for a body, and the number of vertices pushed for an obstacle. MOST is the depth [m] of
the deepest vertex in an obstacle, negative outside.
"""

FAR = 1e300
"""Distance [m] without an obstacle: finite, since GPU kernels need not support infinity."""


class Seen(NamedTuple):
    """Operation that finds the nearest obstacle of every vertex.

    Attributes:
        u: Displacements [m].
        rest: (n + 1, 4) rest positions [m].
        counts: (n,) 0 for vertices that are ignored.
        shapes, planes, which: Obstacle contact, see `Detect`.
        gap: (batch (n + 1),) distance from the nearest shape [m], written.
        obstacle: (batch (n + 1),) obstacle of that shape, -1 for ignored vertices, written.
    """

    u: Any
    rest: Any
    counts: Any
    shapes: Any
    planes: Any
    which: Any
    gap: Any
    obstacle: Any


@act.of(Seen)
def _see(seen, place, i):
    k = i + offset_of(place)
    X, u = vector_at(seen.rest, i), vector_at(seen.u, k)
    x = (X[0] + u[0], X[1] + u[1], X[2] + u[2])
    shape, _, _ = nearest(seen.shapes, x)
    seen.obstacle[k] = -1
    if shape >= 0 and seen.counts[i] != 0:
        d, _ = distance(seen.shapes, shape, x)
        seen.gap[k], seen.obstacle[k] = d, int(seen.shapes.rows[shape, OBSTACLE])


class TouchParts(NamedTuple):
    """Sums over every block of vertices.

    The result `parts` (batch, 1 + obstacles, FIELDS, blocks) has the sums of the body first, then those of
    each obstacle.
    """

    seen: Any
    cuts: Any
    parts: Any


@do.of(TouchParts)
def _touch_part(work, item):
    seen, vertex, parts = work.seen, work.cuts.vertex, work.parts
    part = number(item) // parts.shape[1]
    column = number(item) - part * parts.shape[1]
    copy, start = copy_of(item), offset_of(item)
    begin, step = strides(item)
    fx, fy, fz, amount, most = 0.0, 0.0, 0.0, 0.0, -FAR
    v = vertex[part] + begin
    while v < vertex[part + 1]:
        k = start + v
        for j in range(len(seen.planes.normal)):
            shape = seen.which[k, j]
            if column == 0 or (shape >= 0 and seen.shapes.rows[shape, OBSTACLE] == column - 1):
                n, f = vector_at(seen.planes.normal[j], k), vector_at(seen.planes.reaction[j], k)
                fx, fy, fz = fx + f[0], fy + f[1], fz + f[2]
                push = dot(n, f)
                if column == 0:
                    amount += abs(push * dot(n, sub(vector_at(seen.u, k), vector_at(seen.planes.foot[j], k))))
                elif push > 0.0:
                    amount += 1.0
        if column > 0 and seen.obstacle[k] == column - 1:
            most = max(most, -seen.gap[k])
        v += step
    fx, fy, fz = lane_total(item, fx), lane_total(item, fy), lane_total(item, fz)
    amount, most = lane_total(item, amount), lane_most(item, most)
    if begin == 0:
        parts[copy, column, 0, part], parts[copy, column, 1, part] = fx, fy
        parts[copy, column, 2, part], parts[copy, column, AMOUNT, part] = fz, amount
        parts[copy, column, MOST, part] = most


class JoinTouches(NamedTuple):
    """Reduce blocks to sums (batch, bodies + obstacles, FIELDS): per body, then per obstacle."""

    cuts: Any
    parts: Any
    sums: Any


@do.of(JoinTouches)
def _join_touches(work, item):
    parts, copy, row = work.parts, copy_of(item), number(item)
    bodies = len(work.cuts.part) - 1
    column, first, last = row - bodies + 1, 0, len(work.cuts.vertex) - 1
    if row < bodies:
        column, first, last = 0, work.cuts.part[row], work.cuts.part[row + 1]
    begin, step = strides(item)
    for field in range(FIELDS):
        total, most = 0.0, -FAR
        k = first + begin
        while k < last:
            total += parts[copy, column, field, k]
            most = max(most, parts[copy, column, field, k])
            k += step
        total, most = lane_total(item, total), lane_most(item, most)
        if begin == 0:
            work.sums[copy, row, field] = most if field == MOST else total


@kernel
def sum_touches(team, seen, cuts, parts, sums):
    """Sum contact forces of obstacles per body, and of bodies per obstacle."""
    for_each(team, 0, (len(seen.counts),), (seen,))
    pieces = len(cuts.vertex) - 1
    each_item(team, 1, 0, pieces * parts.shape[1], TouchParts(seen, cuts, parts))
    each_item(team, 2, 0, sums.shape[1], JoinTouches(cuts, parts, sums))


class Pressed(NamedTuple):
    """Contact forces of obstacles on faces, in addition to those on vertices.

    Attributes:
        of_obstacles: (o, 3) forces of obstacles [N].
        contacts: (o,) number of points that each pushes.
        on_bodies: (b, 3) forces on bodies [N].
        amount: (b,) Σ λ |g| [J].
    """

    of_obstacles: np.ndarray
    contacts: np.ndarray
    on_bodies: np.ndarray
    amount: np.ndarray


class TouchSums:
    """Contact sums of a problem, with their work memory."""

    def __init__(self, contacts: Contacts) -> None:
        model, device, obstacles = contacts.model, contacts.device, contacts.obstacles
        assert obstacles is not None
        self._device, self._bodies = device, len(model.body_vertices)
        records, others = len(contacts.states.u), len(obstacles.names)
        near = device.zeros((records,), np.dtype(float)), device.zeros((records,), np.dtype(np.int32))
        counts = model.free.astype(np.int32)
        there = contacts.shapes, contacts.planes, contacts.which
        self._seen = Seen(contacts.states.u, contacts.rest, counts, *there, *near)
        self._cuts: Cuts = cut([(own.start, own.stop) for _, own in model.body_vertices])
        pieces = len(self._cuts.vertex) - 1
        self._parts = device.zeros((device.copies, 1 + others, FIELDS, pieces), np.dtype(float))
        self._sums = np.zeros((device.copies, self._bodies + others, FIELDS))

    def taken(self) -> tuple[np.ndarray, np.ndarray]:
        """Sum the last evaluated reactions at the present u.

        Returns:
            Sums (batch, bodies, FIELDS) and (batch, obstacles, FIELDS).
        """
        self._device.run(sum_touches, 3, self._seen, self._cuts, self._parts, self._sums)
        self._device.pull(self._sums)
        return self._sums[:, : self._bodies], self._sums[:, self._bodies :]


def sums_of(contacts: Contacts) -> TouchSums:
    """`TouchSums` of the contacts, created on first use and kept while the batch size is unchanged."""
    if contacts.sums is None:
        contacts.sums = TouchSums(contacts)
    return contacts.sums
