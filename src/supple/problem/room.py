"""How far vertices may move before contacts are found anew.

Where a follower keeps surfaces from passing each other, it gives every vertex a ball that it must not leave.
Whoever moves u puts it back there: visits of single vertices at once, everything else by `confine`. Pinned
vertices have balls, too (`Pins`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.kernels import RECORD
from supple.model import Conditions, Model
from supple.problem.balls import Balls, Confine
from supple.problem.contacts import Contacts
from supple.problem.device import Device
from supple.problem.leading import Pins
from supple.problem.pressing import Pressing
from supple.problem.states import States

ROUNDINGS = 8
"""Of a displacement, by which a radius is less than it may be."""

CROWDED, AT_END = 0.01, 0.95
"""Contacts are found anew where this part of the vertices is at the end of its ball, which is from that part
of the radius on."""

TIGHT = 0.25
"""Balls go along with the vertices where one of these has used up so much of its radius."""


class Room:
    """Of the vertices of a problem; there are no balls where nobody asks for them. checked: whether somebody
    has made sure that nothing has passed anything where the vertices are; fresh: whether a step has begun
    since contacts were found last; stale: whether the vertices have left their balls on a way that was
    found free. neighbours, around: what a follower knows of the vertices that are near to each other;
    start_notes: its sentences on where a motion starts."""

    def __init__(
        self, model: Model, dtype: np.dtype, device: Device, states: States, contacts: Contacts
    ) -> None:
        self.model, self.dtype, self.device, self.states = model, dtype, device, states
        self._wanted = any(getattr(follower, "confines", False) for _, follower in model.followers)
        self.balls: Balls | tuple[()] = ()
        self.checked, self.fresh, self.stale = False, True, True
        self.pins, self.pressing = Pins(model, states), Pressing(model, contacts, states)
        self.neighbours: Any = None
        self.around: Any = None
        self.start_notes: list[str] = []
        self.resize()

    def __bool__(self) -> bool:
        """Whether vertices must stay in balls."""
        return self._wanted

    def resize(self) -> None:
        """Room for as many copies of the state as there are."""
        if self._wanted:
            shape = len(self.states.u), RECORD
            self.balls = Balls(np.zeros(shape, self.dtype), np.zeros(shape, self.dtype))

    def put_back(self) -> None:
        """Put u back to where it may be, after something has moved it without looking."""
        if self:
            self.device.on_records(*self.confine())

    def confine(self, *followers: np.ndarray) -> tuple[Confine, ...]:
        """What puts u back into the balls, with further records that are to be as u is."""
        return (Confine(self.states.u, self.balls, followers),) if self._wanted else ()

    def settle(self, radius: np.ndarray) -> None:
        """Have balls of radii (n,) [m] around where the vertices are."""
        assert self.balls
        u = self.states.vectors(self.states.u)[0]
        slack = ROUNDINGS * float(np.finfo(self.dtype).eps) * np.abs(u).max(axis=1, initial=0)
        self.device.assign(self.balls.centre, self.states.u)
        self.balls.radius[:-1, 0] = np.maximum(radius - slack, 0)
        self.device.push(self.balls.radius)
        self.stale = False

    @property
    def radii(self) -> np.ndarray:
        """(n,) [m] of the balls."""
        assert self.balls
        return self.states.vectors(self.balls.radius)[0, :, 0]

    def used(self, part: float) -> float:
        """How many of the vertices, as a part of all, have gone beyond that part of their radius."""
        assert self.balls
        u, centre = (self.states.vectors(records)[0] for records in (self.states.u, self.balls.centre))
        return float((((u - centre) ** 2).sum(axis=1) > (part * self.radii) ** 2).mean())

    @property
    def tight(self) -> bool:
        """Whether a vertex would be held back soon."""
        return self.stale or self.used(TIGHT) > 0

    @property
    def crowded(self) -> bool:
        """Whether vertices have no room left, or pins want to go on."""
        if not self.balls:
            return False
        return self.stale or not self.arrived or self.used(AT_END) > CROWDED

    def aim(self, time: float, pinned: np.ndarray, given: bool) -> np.ndarray:
        """Begin a step in which pinned vertices go to positions (k, 3) [m], where they are at a time [s]
        unless these are given by somebody else; returns where they are now."""
        self.fresh = True
        self.pressing.begin()
        return self.pins.aim(time, pinned, given)

    def notes(self, moves: bool) -> list[str]:
        """Sentences on the start, once and where time passes, and on pins that did not arrive."""
        start, self.start_notes = self.start_notes if moves else [], []
        return start + self.pins.notes()

    @property
    def arrived(self) -> bool:
        """Whether pins and obstacles are where they are to be."""
        return self.pins.arrived and self.pressing.arrived

    @property
    def blocked(self) -> bool:
        """Whether something is in their way that does not give way."""
        return self.pins.blocked or self.pressing.blocked

    @property
    def leading(self) -> bool:
        """Whether they are on their way, with nothing to hold them up."""
        return self.pins.leading or self.pressing.leading

    def press(self) -> bool:
        """Let obstacles go on, in balls that were just made; True where that moved any."""
        moved = bool(self) and self.pressing.pursue(self.radii)
        if moved:
            self.put_back()
        return moved

    def finish(self) -> bool:
        """Where a step ends: have obstacles where they are then; True where they were not there."""
        moved = self.pressing.finish()
        if moved:
            self.put_back()
        return moved

    def stand_at(self, time: float) -> None:
        """Know that vertices are where they are at a time [s], which somebody has set."""
        self.pins.stand_at(time)
        self.checked, self.stale = False, True

    def begin(self, c: Conditions) -> np.ndarray:
        """Start from where an equilibrium under some conditions does, with pinned vertices on their way to
        where these have them; returns where they are."""
        if c.start is not None:
            self.states.positions = c.start[None]
        self.checked = False
        return self.aim(c.time, c.pinned, True)
