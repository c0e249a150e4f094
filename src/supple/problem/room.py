"""How far vertices may move before contacts are found anew, and pins that wait for it.

Where a follower keeps surfaces from passing each other, it gives every vertex a ball that it must not leave.
Whoever moves u puts it back there: visits of single vertices at once, everything else by `confine`. Pinned
vertices have balls, too: they go along their motion as far as these allow, all at the same pace, and on when
contacts are found anew.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from supple.kernels import RECORD
from supple.model import Conditions, Model
from supple.problem.balls import Balls, Confine
from supple.problem.device import Device
from supple.problem.states import States

ROUNDINGS = 8
"""Of a displacement, by which a radius is less than it may be."""

CROWDED, AT_END = 0.01, 0.95
"""Contacts are found anew where this part of the vertices is at the end of its ball, which is from that part
of the radius on."""

TIGHT = 0.25
"""Balls go along with the vertices where one of these has used up so much of its radius."""

OF_RADIUS = 0.9
"""How far pinned vertices go at once."""

STOPS = 8
"""At so many places of a way pinned vertices must be in their balls: one that comes back to where it began
is a way all the same."""

SURE, TRIES = 0.95, 30
"""A way that is too long is shortened to this part of what would fit if it were straight, which is less than
fits on an arc; after so many times nothing more is to be gained."""

SLOW = 0.1
"""Part of the room where nothing is near that pinned vertices take at least while they are on their way: what
is slower pushes others ahead, for which there are iterations."""


class Room:
    """Of the vertices of a problem; there are no balls where nobody asks for them. checked: whether somebody
    has made sure that nothing has passed anything where the vertices are; fresh: whether a step has begun
    since contacts were found last; stale: whether the vertices have left their balls on a way that was
    found free; leading: whether pins are on their way, with nothing to hold them up. neighbours, around: what
    a follower knows of the vertices that are near to each other. reached: the time [s] of their motion at
    which pins are."""

    def __init__(self, model: Model, dtype: np.dtype, device: Device, states: States) -> None:
        self.model, self.dtype, self.device, self.states = model, dtype, device, states
        self._wanted = any(getattr(follower, "confines", False) for _, follower in model.followers)
        self.balls: Balls | tuple[()] = ()
        self.checked, self.fresh, self.blocked, self.stale = False, True, False, True
        self.leading = False
        self.neighbours: Any = None
        self.around: Any = None
        self._done = 1.0
        self._goal = self._from = np.empty((0, 3))
        self._times: tuple[float, float] | None = None
        self._time = self.reached = 0.0
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
        """Let pinned vertices go to positions (k, 3) [m], where they are at a time [s] unless these are given
        by somebody else; returns where they are now. Those that are late go on from where they are on their
        motion."""
        now = self.states.positions[0, self.model.pinned]
        time = min(time, self.model.duration) if math.isinf(time) else time
        self._times = None if given else (self.reached, time)
        self._goal, self._from, self._time = pinned, now, time
        self._done, self.fresh, self.blocked, self.leading = 0.0, True, False, False
        if given:
            self.reached = time
        return now

    def stand_at(self, time: float) -> None:
        """Know that vertices are where they are at a time [s], which somebody has set."""
        self._time = self.reached = time
        self.checked, self.stale = False, True

    def begin(self, c: Conditions) -> np.ndarray:
        """Start from where an equilibrium under some conditions does, with pinned vertices on their way to
        where these have them; returns where they are."""
        if c.start is not None:
            self.states.positions = c.start[None]
        self.checked = False
        return self.aim(c.time, c.pinned, True)

    def _at(self, part: float) -> np.ndarray:
        """Where pinned vertices are on their way: that of their motion, with what they were off when it
        began."""
        if part >= 1.0:
            return self._goal
        off = self._from - self._goal
        if self._times is None:
            return self._goal + (1 - part) * off
        begin, end = self._times
        off = self._from - self.model.prescribed(begin)
        return self.model.prescribed(begin + part * (end - begin)) + (1 - part) * off

    @property
    def arrived(self) -> bool:
        """Whether pinned vertices are where they are to be."""
        return self._done >= 1.0

    @property
    def behind(self) -> float:
        """How far pinned vertices are from where they are to be, at most [m]."""
        if self.arrived:
            return 0.0
        away = self.model.along(self._goal - self.states.positions[0, self.model.pinned])
        return float(np.sqrt((away**2).sum(axis=1)).max(initial=0))

    @property
    def late(self) -> float | None:
        """The time [s] of their motion at which pinned vertices are, None where that is now."""
        return None if self.reached == self._time else self.reached

    @late.setter
    def late(self, time: float | None) -> None:
        self.reached = self._time if time is None else time

    def pursue(self, least: float, most: float) -> bool:
        """Move pinned vertices on, in balls that were just made, of which `most` [m] is the largest radius;
        True where that moved any. They are blocked where they could go less than `least` [m]."""
        self.leading = False
        if self.arrived or not self.balls:
            return False
        pinned = self.model.pinned
        now = self.states.positions[0, pinned]
        room = OF_RADIUS * self.balls.radius[pinned, 0].astype(float)
        part = 1.0 - self._done
        for _ in range(TRIES):
            way = [self._at(self._done + part * k / STOPS) for k in range(1, STOPS + 1)]
            step = np.max([np.sqrt((self.model.along(x - now) ** 2).sum(axis=1)) for x in way], axis=0)
            far = step > room
            if not far.any():
                break
            part *= SURE * float((room[far] / step[far]).min())
        ends = self._done + part >= 1.0
        self.blocked = not ends and float(step.max(initial=0)) < least
        if self.blocked or far.any():
            self.blocked = True
            return False
        self._done = 1.0 if ends else self._done + part
        if self._times is not None:
            begin, end = self._times
            self.reached = end if ends else begin + self._done * (end - begin)
        self.leading = not ends and float(step.max(initial=0)) >= SLOW * most
        self.states.pin(np.array(way[-1]))
        return bool(step.max(initial=0) > 0)

    def notes(self) -> list[str]:
        """What is to be said of pins that did not arrive."""
        if self.arrived:
            return []
        why = "something is in the way" if self.blocked else "more iterations would take them there"
        late = "" if self.late is None else f", {self._time - self.late:.3g} s late"
        return [f"pinned vertices are still {self.behind:.3g} m from where they are to be{late}: {why}"]
