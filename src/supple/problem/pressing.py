"""Prescribed motion of obstacles under intersection-free contact, limited by the step bounds.

A vertex cannot be projected out of a distant obstacle without leaving its step bound. A vertex pressed
against others in every sweep gets so close that its bound shrinks to zero. An obstacle with a prescribed
motion therefore advances at each contact update only as far as vertices can follow within their bounds.
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
"""Depth of a vertex in an obstacle that can be projected out at once, as a fraction of its step bound."""

HALVINGS = 12
"""Number of bisections for the admissible fraction of the motion."""

SLOW, BLOCKED = 0.02, 1e-3
"""Fractions of the motion in a step per contact update.

Obstacles that advance by SLOW or more count as leading; obstacles that advance by less than BLOCKED are
blocked.
"""


class Pressing:
    """Obstacles with prescribed motion, all at the same time parameter.

    Attributes:
        leading: True if the obstacles are moving without obstruction.
        blocked: True if the vertices in their way cannot move.
    """

    def __init__(self, model: Model, contacts: Contacts, states: States) -> None:
        self.model, self.contacts, self.states = model, contacts, states
        self.leading, self.blocked, self._waits = False, False, False
        self._done = self._at = 1.0

    def begin(self) -> None:
        """Begin a step; obstacles reach their final poses unless vertices obstruct them."""
        self.leading, self.blocked, self._waits = False, False, False
        self._done, self._at = 0.0 if self.contacts and self.contacts.moving.any() else 1.0, 1.0

    @property
    def arrived(self) -> bool:
        """True if all obstacles have reached their target poses."""
        return self._done >= 1.0

    def pursue(self, radii: np.ndarray) -> bool:
        """Advance the obstacles as far as vertices can be projected out within their step bounds.

        Args:
            radii: (n,) radii of the step bounds [m].

        Returns:
            True if obstacles moved.
        """
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
        """Move obstacles to their poses at the end of a step, regardless of vertices in their way.

        Returns:
            False if they were already there.
        """
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
        """Set the obstacle poses at a fraction of their motion."""
        if part == self._at:
            return
        contacts, obstacles = self.contacts, self.contacts.obstacles
        assert obstacles is not None
        self._at, (begin, end), moving = part, contacts.times, contacts.moving
        there = obstacles.poses(end if part >= 1.0 else begin + part * (end - begin))[moving]
        contacts.shapes.rows[moving, POSE : POSE + 12] = there
        contacts.shapes.rows[moving, STEP : STEP + 12] = between(contacts.before[moving], there)

    def _push(self) -> None:
        """Project vertices out of the obstacles at their present poses."""
        self._stand(self._done)
        self.contacts.device.push(self.contacts.shapes.rows)
        self.contacts.moves += 1
        self.contacts.detect()
