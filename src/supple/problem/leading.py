"""Pinned vertices on their way: how far they may go, and where on their motion they are.

Where surfaces must not pass each other, pins cannot be put to where a step has them. They go there along
their motion, all at the same time of it, as far as there is room. Those that do not arrive are late: the next
step leads them on from where they are on their motion, never straight to its end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from supple.model import Model
from supple.problem.states import States

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

BLOCKED = 1e-3
"""Pins that can go on by less than this part of the thickness of surfaces are blocked."""

SHARES, STRAIGHT = (1.0, 0.5, 0.25), 0.1
"""How much of their way pins may fly with their bodies, and by which part of its length a way bends at most
that is flown straight: an arc of three quarters of a radian."""


class Flight(NamedTuple):
    """A step (n, 3) [m] of all vertices, the share of their way that pins have in it, and the numbers of the
    bodies that must get there for that."""

    share: float
    step: np.ndarray
    led: np.ndarray


class Pins:
    """The pinned vertices of a problem. leading: whether they are on their way, with nothing to hold them up;
    blocked: whether something that does not give way is in theirs; reached: the time [s] of their motion at
    which they are."""

    def __init__(self, model: Model, states: States) -> None:
        self.model, self.states = model, states
        self.leading, self.blocked = False, False
        self._done, self._time, self.reached = 1.0, 0.0, 0.0
        self._goal = self._from = np.empty((0, 3))
        self._times: tuple[float, float] | None = None

    def aim(self, time: float, pinned: np.ndarray, given: bool) -> np.ndarray:
        """Go to positions (k, 3) [m], where they are at a time [s] unless these are given by somebody else;
        returns where they are now. What is late goes on from where it is on its motion."""
        time = min(time, self.model.duration) if math.isinf(time) else time
        self._times = None if given else (self.reached, time)
        self._goal, self._from, self._time = pinned, self._now, time
        self._done, self.blocked, self.leading = 0.0, False, False
        if given:
            self.reached = time
        return self._from

    def stand_at(self, time: float) -> None:
        """Be where they are at a time [s]."""
        self._time = self.reached = time

    @property
    def _now(self) -> np.ndarray:
        return self.states.positions[0, self.model.pinned]

    def _at(self, part: float) -> np.ndarray:
        """Where they are on their way: that of their motion, with what they were off when it began."""
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
        """Whether they are where they are to be."""
        return self._done >= 1.0

    @property
    def behind(self) -> float:
        """How far they are from where they are to be, at most [m]."""
        return 0.0 if self.arrived else _longest(self.way(1.0))

    @property
    def late(self) -> float | None:
        """The time [s] of their motion at which they are, None where that is now."""
        return None if self.reached == self._time else self.reached

    @late.setter
    def late(self, time: float | None) -> None:
        self.reached = self._time if time is None else time

    def way(self, part: float) -> np.ndarray:
        """(k, 3) [m] how far a part of what is left of their way leads them."""
        return self.model.along(self._at(self._after(part)) - self._now)

    def _after(self, part: float) -> float:
        """How much of the whole way is behind them after a part of what is left."""
        return 1.0 if part >= 1.0 else self._done + part * (1 - self._done)

    def _straight(self, part: float) -> bool:
        """Whether they may take that part of their way without its bends."""
        way = self.way(part)
        bends = [_longest(self.way(part * k / STOPS) - k / STOPS * way) for k in range(1, STOPS)]
        return max(bends) <= STRAIGHT * _longest(way)

    def go(self, part: float) -> None:
        """Be where a part of what is left of their way leads them."""
        self._done = self._after(part)
        if self._times is not None:
            begin, end = self._times
            self.reached = end if self.arrived else begin + self._done * (end - begin)
        self.states.pin(np.array(self._at(self._done)))

    def flights(self, step: np.ndarray, body: np.ndarray, radii: np.ndarray) -> Iterator[Flight]:
        """To be tried one after the other, where vertices of bodies (n,) in balls of radii (n,) [m] are to
        fly by a step (n, 3) [m]: pins which their balls hold up fly with their bodies, or else stay."""
        pinned, way = self.model.pinned, self.way(1.0)
        if (_lengths(way) > OF_RADIUS * radii[pinned]).any():
            led = np.unique(body[pinned[way.any(axis=1)]])
            for share in filter(self._straight, SHARES):
                shared = np.where(np.isin(body, led)[:, None], share * step, step)
                shared[pinned] += self.way(share)
                yield Flight(share, shared, led)
        yield Flight(0.0, step, np.empty(0, int))

    def pursue(self, radii: np.ndarray, thickness: float, most: float) -> bool:
        """Go on in balls of radii (n,) [m] around all vertices, of which none is larger than `most`; True
        where that moved any. thickness [m] of surfaces, beside which pins that hardly move are blocked."""
        self.leading = False
        if self.arrived:
            return False
        room, part = OF_RADIUS * radii[self.model.pinned].astype(float), 1.0
        for _ in range(TRIES):
            step = np.max([_lengths(self.way(part * k / STOPS)) for k in range(1, STOPS + 1)], axis=0)
            far = step > room
            if not far.any():
                break
            part *= SURE * float((room[far] / step[far]).min())
        longest = float(step.max(initial=0))
        self.blocked = bool(far.any()) or (part < 1.0 and longest < BLOCKED * thickness)
        if self.blocked:
            return False
        self.leading = part < 1.0 and longest >= SLOW * most
        self.go(part)
        return longest > 0

    def notes(self) -> list[str]:
        """What is to be said where they did not arrive."""
        if self.arrived:
            return []
        why = "something is in the way" if self.blocked else "more iterations would take them there"
        late = "" if self.late is None else f", {self._time - self.late:.3g} s late"
        return [f"pinned vertices are still {self.behind:.3g} m from where they are to be{late}: {why}"]


def _lengths(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt((vectors**2).sum(axis=1))


def _longest(vectors: np.ndarray) -> float:
    return float(_lengths(vectors).max(initial=0))
