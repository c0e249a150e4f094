"""Trust region of intersection-free contact: per-vertex step bounds between contact updates.

A contact term that prevents intersections gives every vertex a ball that it must not leave. Updates of single
vertices project onto it immediately, all other updates by `confine`. Pinned vertices have bounds too
(`Pins`).

Step bounds: balls around vertices, and kernels that project onto them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact.obstacle_contact import Contacts
from supple.contact.obstacle_kernels import follow
from supple.contact.prescribed_motion import Pins, Pressing
from supple.kernels import (
    RECORD,
    device_function,
    gather,
    overload_by_type,
    record_at,
    store_record,
    vector_offset,
    where,
)
from supple.model.model import Conditions, Model
from supple.problem.device import Device
from supple.problem.states import States
from supple.problem.vertex_kernels import act


class Balls(NamedTuple):
    """One ball per vertex, as padded vectors (batch (n + 1), 4).

    Attributes:
        center: Center, as a displacement [m].
        radius: Radius as first number [m].
    """

    center: Any
    radius: Any


@device_function
def _nearest(x, c, radius):
    """Project x onto the ball around c."""
    d = sub(x, c)
    square = dot(d, d)
    outside = square > radius * radius
    t = radius / math.sqrt(where(outside, square, 0.0 * square + 1.0))
    y = add(c, scale(t, d))
    return where(outside, y[0], x[0]), where(outside, y[1], x[1]), where(outside, y[2], x[2])


def in_ball(balls: Any, own: Any, batch: Any, x: Any) -> Any:
    """Project the displacements x of a vertex batch onto their balls; `()` means no bounds."""


@overload_by_type(in_ball)
def _in_ball(balls, own, batch, x):
    if len(balls) == 0:
        return lambda balls, own, batch, x: x
    return lambda balls, own, batch, x: _nearest(
        x, gather(balls.center, own, batch, 0), gather(balls.radius, own, batch, 0)[0]
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
    o, k = operation, i + vector_offset(place)
    x = _nearest(record_at(o.u, k), record_at(o.balls.center, k), record_at(o.balls.radius, k)[0])
    store_record(o.u, k, x)
    follow(o.followers, o.u, k)


ROUNDINGS = 8
"""Reduction of a radius, in roundings of the displacement."""

CROWDED, AT_END = 0.01, 0.95
"""Condition for a contact update.

It is due if a fraction CROWDED of the vertices is beyond a fraction AT_END of the radius.
"""

TIGHT = 0.25
"""Fraction of the radius used by a vertex above which the balls are moved along."""


class Room:
    """Step bounds of the vertices of a problem, if a contact term requires them.

    Attributes:
        balls: The bounds, () without intersection-free contact.
        checked: True if the present positions are known to be free of intersections.
        fresh: True if a step has begun since the last contact update.
        stale: True if vertices left their balls on a path known to be free of intersections.
        pins: Pinned vertices on their path.
        pressing: Obstacles with prescribed motion.
        neighbors, around: Cached neighborhoods of the contact term.
        start_notes: Notes on the initial positions of a motion.
    """

    def __init__(
        self, model: Model, dtype: np.dtype, device: Device, states: States, contacts: Contacts
    ) -> None:
        self.model, self.dtype, self.device, self.states = model, dtype, device, states
        self._wanted = any(
            getattr(dynamic_term, "intersection_free", False) for _, dynamic_term in model.dynamic_terms
        )
        self.balls: Balls | tuple[()] = ()
        self.checked, self.fresh, self.stale = False, True, True
        self.pins, self.pressing = Pins(model, states), Pressing(model, contacts, states)
        self.neighbors: Any = None
        self.around: Any = None
        self.start_notes: list[str] = []
        self.resize()

    def __bool__(self) -> bool:
        """True if vertices have step bounds."""
        return self._wanted

    def resize(self) -> None:
        """Allocate the bounds for the present batch size."""
        if self._wanted:
            shape = len(self.states.u), RECORD
            self.balls = Balls(np.zeros(shape, self.dtype), np.zeros(shape, self.dtype))

    def put_back(self) -> None:
        """Project u onto the step bounds after an update without bounds."""
        if self:
            self.device.on_records(*self.confine())

    def confine(self, *followers: np.ndarray) -> tuple[Confine, ...]:
        """Operations that project u onto the step bounds.

        Args:
            followers: Arrays that receive a copy of u.
        """
        return (Confine(self.states.u, self.balls, followers),) if self._wanted else ()

    def settle(self, radius: np.ndarray) -> None:
        """Set bounds with radii (n,) [m] around the present positions."""
        assert self.balls
        u = self.states.vectors(self.states.u)[0]
        slack = ROUNDINGS * float(np.finfo(self.dtype).eps) * np.abs(u).max(axis=1, initial=0)
        self.device.assign(self.balls.center, self.states.u)
        self.balls.radius[:-1, 0] = np.maximum(radius - slack, 0)
        self.device.upload(self.balls.radius)
        self.stale = False

    @property
    def radii(self) -> np.ndarray:
        """(n,) radii of the bounds [m]."""
        assert self.balls
        return self.states.vectors(self.balls.radius)[0, :, 0]

    def used(self, part: float) -> float:
        """Fraction of vertices beyond a given fraction of their radius."""
        assert self.balls
        u, center = (self.states.vectors(records)[0] for records in (self.states.u, self.balls.center))
        return float((((u - center) ** 2).sum(axis=1) > (part * self.radii) ** 2).mean())

    @property
    def tight(self) -> bool:
        """True if a vertex would soon reach its bound."""
        return self.stale or self.used(TIGHT) > 0

    @property
    def crowded(self) -> bool:
        """True if a contact update is due: bounds are used up, or pins or obstacles have not arrived."""
        if not self.balls:
            return False
        return self.stale or not self.arrived or self.used(AT_END) > CROWDED

    def aim(self, time: float, pinned: np.ndarray, given: bool) -> np.ndarray:
        """Begin a step in which pinned vertices move to targets.

        Args:
            time: Time of the targets [s].
            pinned: (k, 3) target positions [m].
            given: True if the targets come from the caller instead of the motion of the model.

        Returns:
            Present positions (k, 3) [m].
        """
        self.fresh = True
        self.pressing.begin()
        return self.pins.aim(time, pinned, given)

    def notes(self, moves: bool) -> list[str]:
        """Report notes: initial positions (once), and pins short of their targets.

        Args:
            moves: True in time stepping; otherwise notes on the initial positions are dropped.
        """
        start, self.start_notes = self.start_notes if moves else [], []
        return start + self.pins.notes()

    @property
    def arrived(self) -> bool:
        """True if pins and obstacles have reached their targets."""
        return self.pins.arrived and self.pressing.arrived

    @property
    def blocked(self) -> bool:
        """True if an immovable object obstructs pins or obstacles."""
        return self.pins.blocked or self.pressing.blocked

    @property
    def leading(self) -> bool:
        """True if pins or obstacles are moving without obstruction."""
        return self.pins.leading or self.pressing.leading

    def press(self) -> bool:
        """Advance obstacles within newly set bounds; return True if any moved."""
        moved = bool(self) and self.pressing.pursue(self.radii)
        if moved:
            self.put_back()
        return moved

    def finish(self) -> bool:
        """Move obstacles to their final poses of a step.

        Returns:
            False if they were already there.
        """
        moved = self.pressing.finish()
        if moved:
            self.put_back()
        return moved

    def stand_at(self, time: float) -> None:
        """Set the time [s] of positions that were set by the caller."""
        self.pins.stand_at(time)
        self.checked, self.stale = False, True

    def begin(self, c: Conditions) -> np.ndarray:
        """Start an equilibrium under given conditions, with pins moving to their targets.

        Returns:
            Present positions of the pins (k, 3) [m].
        """
        if c.initial is not None:
            self.states.positions = c.initial[None]
        self.checked = False
        return self.aim(c.time, c.pinned, True)
