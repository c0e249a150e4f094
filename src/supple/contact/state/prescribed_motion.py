"""Prescribed motion of pins and obstacles under intersection-free contact, limited by the step bounds.

Pins cannot jump to their targets without intersections. They move there along their prescribed motion, all at
the same time parameter, as far as the step bounds allow. Pins that do not arrive are late: the next step
continues from their present point of the motion, never straight to its end.

A vertex cannot be projected out of a distant obstacle without leaving its step bound. A vertex pressed
against others in every sweep comes so close that its bound shrinks to zero. An obstacle with a prescribed
motion therefore advances at each contact update only as far as vertices can follow within their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from supple.collision import distances_to
from supple.collision.obstacles.obstacles import between
from supple.collision.obstacles.signed_distance import POSE, STEP
from supple.contact.state.obstacle_contact import Contacts
from supple.model.model import Model
from supple.problem.states import States

MAX_RADIUS_FRACTION = 0.9
"""Fraction of the radius of a step bound that pinned vertices move at once."""

PATH_SAMPLES = 8
"""Number of points on a path that must be inside the step bounds; detects closed paths."""

SAFETY_FACTOR, MAX_REDUCTIONS = 0.95, 30
"""Factor on the estimated admissible fraction of a path, and maximum number of reductions.

The estimate assumes a straight path; on an arc less is admissible. Further reductions gain nothing.
"""

MIN_PIN_FRACTION = 0.1
"""Advance per update above which pins count as in progress, as a fraction of the largest step bound.

Iterations with pins in progress do not count toward the limit. A slower motion pushes other vertices ahead,
and its iterations count.
"""

STUCK_PIN_FRACTION = 1e-3
"""Advance below which pins are blocked, as a fraction of the surface thickness."""

PATH_FRACTIONS, MAX_DEVIATION = (1.0, 0.5, 0.25), 0.1
"""Limits of the advance of pins with their bodies.

They are the fractions of the path that are tried, and the maximum deviation from a straight line relative to
its length, which corresponds to an arc of three quarters of a radian.
"""


class AdvanceCandidate(NamedTuple):
    """Candidate displacement of all vertices.

    Attributes:
        fraction: Fraction of their remaining path that pins move.
        step: (n, 3) displacement [m].
        must_complete: Bodies that must complete the step, otherwise the candidate is rejected.
    """

    fraction: float
    step: np.ndarray
    must_complete: np.ndarray


class PinMotion:
    """Pinned vertices of a problem on their path.

    Attributes:
        in_progress: True if pins are moving without obstruction.
        is_blocked: True if an immovable object obstructs them.
        reached: Time of their motion at which the pins are [s].
    """

    def __init__(self, model: Model, states: States) -> None:
        self.model, self.states = model, states
        self.in_progress, self.is_blocked = False, False
        self._done, self._time, self.reached = 1.0, 0.0, 0.0
        self._targets = self._start = np.empty((0, 3))
        self._times: tuple[float, float] | None = None

    def set_targets(self, time: float, pinned: np.ndarray, from_caller: bool) -> np.ndarray:
        """Set the targets of a step; late pins continue from their present point of the motion.

        Args:
            time: Time of the targets [s].
            pinned: (k, 3) target positions [m].
            from_caller: True if the targets come from the caller instead of the motion of the model.

        Returns:
            Present positions (k, 3) [m].
        """
        time = min(time, self.model.duration) if math.isinf(time) else time
        self._times = None if from_caller else (self.reached, time)
        self._targets, self._start, self._time = pinned, self._positions, time
        self._done, self.is_blocked, self.in_progress = 0.0, False, False
        if from_caller:
            self.reached = time
        return self._start

    def set_time(self, time: float) -> None:
        """Set the time of the present positions [s]."""
        self._time = self.reached = time

    @property
    def _positions(self) -> np.ndarray:
        return self.states.positions[0, self.model.pinned]

    def _at(self, part: float) -> np.ndarray:
        """Positions at a fraction of the path: prescribed motion plus decaying initial offset from it."""
        if part >= 1.0:
            return self._targets
        off = self._start - self._targets
        if self._times is None:
            return self._targets + (1 - part) * off
        begin, end = self._times
        off = self._start - self.model.prescribed(begin)
        return self.model.prescribed(begin + part * (end - begin)) + (1 - part) * off

    @property
    def has_arrived(self) -> bool:
        """True if every prescribed vertex has reached its target position."""
        return self._done >= 1.0

    @property
    def lag(self) -> float:
        """Largest distance of a pin from its target [m]."""
        return 0.0 if self.has_arrived else _longest(self.displacement(1.0))

    @property
    def late_time(self) -> float | None:
        """Motion time of late pins [s]; None for pins on time."""
        return None if self.reached == self._time else self.reached

    @late_time.setter
    def late_time(self, time: float | None) -> None:
        self.reached = self._time if time is None else time

    def displacement(self, part: float) -> np.ndarray:
        """(k, 3) displacement by a fraction of the remaining path [m]."""
        return self.model.along(self._at(self._after(part)) - self._positions)

    def _after(self, part: float) -> float:
        """Fraction of the whole path after a fraction of the remaining path."""
        return 1.0 if part >= 1.0 else self._done + part * (1 - self._done)

    def _is_straight(self, part: float) -> bool:
        """True if a fraction of the remaining path is nearly straight."""
        path = self.displacement(part)
        bends = [
            _longest(self.displacement(part * k / PATH_SAMPLES) - k / PATH_SAMPLES * path)
            for k in range(1, PATH_SAMPLES)
        ]
        return max(bends) <= MAX_DEVIATION * _longest(path)

    def move(self, part: float) -> None:
        """Move the pins along a fraction of the remaining path."""
        self._done = self._after(part)
        if self._times is not None:
            begin, end = self._times
            self.reached = end if self.has_arrived else begin + self._done * (end - begin)
        self.states.pin(np.array(self._at(self._done)))

    def candidates(self, step: np.ndarray, body: np.ndarray, radii: np.ndarray) -> Iterator[AdvanceCandidate]:
        """Yield candidate displacements in the order of preference.

        Pins obstructed by their step bounds move along with their bodies, or else stay.

        Args:
            step: (n, 3) inertial displacement of all vertices [m].
            body: (n,) body index of each vertex.
            radii: (n,) radii of the step bounds [m].
        """
        pinned, path = self.model.pinned, self.displacement(1.0)
        if (_lengths(path) > MAX_RADIUS_FRACTION * radii[pinned]).any():
            must_complete = np.unique(body[pinned[path.any(axis=1)]])
            for fraction in filter(self._is_straight, PATH_FRACTIONS):
                shared = np.where(np.isin(body, must_complete)[:, None], fraction * step, step)
                shared[pinned] += self.displacement(fraction)
                yield AdvanceCandidate(fraction, shared, must_complete)
        yield AdvanceCandidate(0.0, step, np.empty(0, int))

    def advance(self, radii: np.ndarray, thickness: float, max_radius: float) -> bool:
        """Advance the pins within the step bounds.

        Args:
            radii: (n,) radii of the step bounds [m].
            thickness: Surface thickness [m], the scale below which pins count as blocked.
            max_radius: Largest radius without contacts [m].

        Returns:
            True if any pin moved.
        """
        self.in_progress = False
        if self.has_arrived:
            return False
        limit, part = MAX_RADIUS_FRACTION * radii[self.model.pinned].astype(float), 1.0
        for _ in range(MAX_REDUCTIONS):
            step = np.max(
                [_lengths(self.displacement(part * k / PATH_SAMPLES)) for k in range(1, PATH_SAMPLES + 1)],
                axis=0,
            )
            too_far = step > limit
            if not too_far.any():
                break
            part *= SAFETY_FACTOR * float((limit[too_far] / step[too_far]).min())
        longest = float(step.max(initial=0))
        self.is_blocked = bool(too_far.any()) or (part < 1.0 and longest < STUCK_PIN_FRACTION * thickness)
        if self.is_blocked:
            return False
        self.in_progress = part < 1.0 and longest >= MIN_PIN_FRACTION * max_radius
        self.move(part)
        return longest > 0

    def notes(self) -> list[str]:
        """Report notes about pins short of their targets."""
        if self.has_arrived:
            return []
        why = "a contact blocks them" if self.is_blocked else "more iterations are needed"
        late = "" if self.late_time is None else f", {self._time - self.late_time:.3g} s late"
        return [f"pinned vertices are {self.lag:.3g} m from their targets{late}: {why}"]


def _lengths(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt((vectors**2).sum(axis=1))


def _longest(vectors: np.ndarray) -> float:
    return float(_lengths(vectors).max(initial=0))


MAX_DEPTH_FRACTION = 0.9
"""Depth of a vertex in an obstacle that can be projected out at once, as a fraction of its step bound."""

BISECTIONS = 12
"""Number of bisections for the admissible fraction of the motion."""

MIN_OBSTACLE_FRACTION, STUCK_OBSTACLE_FRACTION = 0.02, 1e-3
"""Fractions of the motion in a step per contact update.

Obstacles that advance by MIN_OBSTACLE_FRACTION or more count as in progress; obstacles that advance by less
than STUCK_OBSTACLE_FRACTION are blocked.
"""


class ObstacleMotion:
    """Obstacles with prescribed motion, all at the same time parameter.

    Attributes:
        in_progress: True if the obstacles are moving without obstruction.
        is_blocked: True if the vertices in their way cannot move.
    """

    def __init__(self, model: Model, contacts: Contacts, states: States) -> None:
        self.model, self.contacts, self.states = model, contacts, states
        self.in_progress, self.is_blocked, self._was_delayed = False, False, False
        self._done = self._at = 1.0

    def begin(self) -> None:
        """Begin a step; obstacles reach their final poses unless vertices obstruct them."""
        self.in_progress, self.is_blocked, self._was_delayed = False, False, False
        self._done, self._at = 0.0 if self.contacts and self.contacts.moving.any() else 1.0, 1.0

    @property
    def has_arrived(self) -> bool:
        """True if all obstacles have reached their target poses."""
        return self._done >= 1.0

    def advance(self, radii: np.ndarray) -> bool:
        """Advance the obstacles as far as vertices can be projected out within their step bounds.

        Args:
            radii: (n,) radii of the step bounds [m].

        Returns:
            True if obstacles moved.
        """
        self.in_progress = False
        if self.has_arrived:
            return False
        if self._fits(1.0, radii):
            part = 1.0
        else:
            part, beyond = self._done, 1.0
            for _ in range(BISECTIONS):
                middle = 0.5 * (part + beyond)
                part, beyond = (middle, beyond) if self._fits(middle, radii) else (part, middle)
        gone, self._done = part - self._done, part
        self._was_delayed |= not self.has_arrived
        self.in_progress = not self.has_arrived and gone >= MIN_OBSTACLE_FRACTION
        self.is_blocked = not self.has_arrived and gone < STUCK_OBSTACLE_FRACTION
        if self._was_delayed:
            self._project_vertices()
        return self._was_delayed

    def finish(self) -> bool:
        """Move obstacles to their poses at the end of a step, regardless of vertices in their way.

        Returns:
            False if they were already there.
        """
        if self.has_arrived:
            return False
        self._done = 1.0
        self._project_vertices()
        return True

    def _fits(self, part: float, radii: np.ndarray) -> bool:
        self._set_poses(part)
        free = self.model.free
        x = self.model.rest + self.states.vectors(self.states.u)[0].astype(float)
        distance, _, nearest = distances_to(self.contacts.shapes, x[free])
        deep = -np.where(self.contacts.moving[nearest], distance, 0.0)
        return bool((deep <= MAX_DEPTH_FRACTION * radii[free]).all())

    def _set_poses(self, part: float) -> None:
        """Set the obstacle poses at a fraction of their motion."""
        if part == self._at:
            return
        contacts, obstacles = self.contacts, self.contacts.obstacles
        assert obstacles is not None
        self._at, (begin, end), moving = part, contacts.times, contacts.moving
        poses = obstacles.poses(end if part >= 1.0 else begin + part * (end - begin))[moving]
        contacts.shapes.rows[moving, POSE : POSE + 12] = poses
        contacts.shapes.rows[moving, STEP : STEP + 12] = between(contacts.before[moving], poses)

    def _project_vertices(self) -> None:
        """Project vertices out of the obstacles at their present poses."""
        self._set_poses(self._done)
        self.contacts.device.upload(self.contacts.shapes.rows)
        self.contacts.moves += 1
        self.contacts.detect()
