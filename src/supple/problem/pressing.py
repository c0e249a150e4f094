"""Obstacles on their way: they wait for what they push.

A vertex that must not leave its ball cannot be put out of an obstacle that comes from afar, and what is
pressed against others in every sweep gets so near to them that its ball shrinks to nothing. So an obstacle
that moves as prescribed goes on, whenever contacts are found anew, only as far as vertices can follow in
their balls.
"""

from __future__ import annotations

import numpy as np

from supple.contact import distances_to
from supple.contact.obstacles import between
from supple.contact.shapes import POSE, STEP
from supple.model import Model
from supple.problem.contacts import Contacts
from supple.problem.states import States

OF_RADIUS = 0.9
"""How deep a vertex may be in an obstacle that is to put it out at once."""

HALVINGS = 12
"""After which the way of obstacles is known to a part of an edge that does not matter."""

SLOW, BLOCKED = 0.02, 1e-3
"""Part of its way in a step that an obstacle takes at least from one look to the next while it is on its way;
one that takes less than the other is blocked."""


class Pressing:
    """The obstacles of a problem that move as prescribed, all at the same time of their motion. leading:
    whether they are on their way; blocked: whether what they push has nowhere to go."""

    def __init__(self, model: Model, contacts: Contacts, states: States) -> None:
        self.model, self.contacts, self.states = model, contacts, states
        self.leading, self.blocked, self._waits = False, False, False
        self._done = self._at = 1.0

    def begin(self) -> None:
        """Begin a step, in the end of which obstacles are as long as nobody is in their way."""
        self.leading, self.blocked, self._waits = False, False, False
        self._done, self._at = 0.0 if self.contacts and self.contacts.moving.any() else 1.0, 1.0

    @property
    def arrived(self) -> bool:
        """Whether obstacles are where they are to be."""
        return self._done >= 1.0

    def pursue(self, radii: np.ndarray) -> bool:
        """Go on as far as vertices in balls of radii (n,) [m] can be put out; True where that moved any."""
        self.leading = False
        if self.arrived:
            return False
        if self._fits(1.0, radii):
            part = 1.0
        else:
            part, beyond = self._done, 1.0
            for _ in range(HALVINGS):
                middle = 0.5 * (part + beyond)
                part, beyond = (middle, beyond) if self._fits(middle, radii) else (part, middle)
        gone, self._done = part - self._done, part
        self._waits |= not self.arrived
        self.leading = not self.arrived and gone >= SLOW
        self.blocked = not self.arrived and gone < BLOCKED
        if self._waits:
            self._push()
        return self._waits

    def finish(self) -> bool:
        """Where a step ends: be where it has obstacles, whatever is in their way; True where they were not
        there."""
        if self.arrived:
            return False
        self._done = 1.0
        self._push()
        return True

    def _fits(self, part: float, radii: np.ndarray) -> bool:
        self._stand(part)
        free = self.model.free
        x = self.model.rest + self.states.vectors(self.states.u)[0].astype(float)
        distance, _, nearest = distances_to(self.contacts.shapes, x[free])
        deep = -np.where(self.contacts.moving[nearest], distance, 0.0)
        return bool((deep <= OF_RADIUS * radii[free]).all())

    def _stand(self, part: float) -> None:
        """Have obstacles where they are after a part of their way."""
        if part == self._at:
            return
        contacts, obstacles = self.contacts, self.contacts.obstacles
        assert obstacles is not None
        self._at, (begin, end), moving = part, contacts.times, contacts.moving
        there = obstacles.poses(end if part >= 1.0 else begin + part * (end - begin))[moving]
        contacts.shapes.rows[moving, POSE : POSE + 12] = there
        contacts.shapes.rows[moving, STEP : STEP + 12] = between(contacts.before[moving], there)

    def _push(self) -> None:
        """Put vertices out of obstacles where these are now."""
        self._stand(self._done)
        self.contacts.device.push(self.contacts.shapes.rows)
        self.contacts.moves += 1
        self.contacts.detect()
