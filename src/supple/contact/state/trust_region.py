"""Trust region of intersection-free contact: a ball around every vertex between contact updates.

A contact term that prevents intersections gives every vertex a ball that it must not leave. Updates of single
vertices project onto it immediately, all other updates by `clamp`. Pinned vertices have bounds too
(`PinMotion`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact.state.obstacle_contact import Contacts
from supple.contact.state.obstacle_kernels import copy_to_all
from supple.contact.state.prescribed_motion import ObstacleMotion, PinMotion
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
from supple.problem.vertex_kernels import apply_operation


class StepBounds(NamedTuple):
    """One ball per vertex, as padded vectors (batch (n + 1), 4).

    Attributes:
        center: Center, as a displacement [m].
        radius: Radius as first number [m].
    """

    center: Any
    radius: Any


@device_function
def _project_to_ball(x, c, radius):
    """Project x onto the ball around c."""
    d = sub(x, c)
    square = dot(d, d)
    outside = square > radius * radius
    t = radius / math.sqrt(where(outside, square, 0.0 * square + 1.0))
    y = add(c, scale(t, d))
    return where(outside, y[0], x[0]), where(outside, y[1], x[1]), where(outside, y[2], x[2])


def clamp_to_bounds(step_bounds: Any, own: Any, batch: Any, x: Any) -> Any:
    """Project the displacements x of a vertex batch onto their balls; `()` means no bounds."""


@overload_by_type(clamp_to_bounds)
def _clamp_to_bounds(step_bounds, own, batch, x):
    if len(step_bounds) == 0:
        return lambda step_bounds, own, batch, x: x
    return lambda step_bounds, own, batch, x: _project_to_ball(
        x, gather(step_bounds.center, own, batch, 0), gather(step_bounds.radius, own, batch, 0)[0]
    )


class ClampToBounds(NamedTuple):
    """Operation that projects u onto the balls after an update without bounds.

    Attributes:
        u: Displacements.
        step_bounds: Step bounds.
        copies_of_u: Arrays that receive a copy of u.
    """

    u: Any
    step_bounds: Any
    copies_of_u: Any


@apply_operation.of(ClampToBounds)
def _clamp_operation(operation, item, i):
    o, k = operation, i + vector_offset(item)
    x = _project_to_ball(
        record_at(o.u, k), record_at(o.step_bounds.center, k), record_at(o.step_bounds.radius, k)[0]
    )
    store_record(o.u, k, x)
    copy_to_all(o.copies_of_u, o.u, k)


RADIUS_ROUNDINGS = 8
"""Reduction of a radius, in roundings of the displacement."""

MAX_EXHAUSTED_VERTICES, EXHAUSTED_FRACTION = 0.01, 0.95
"""Condition for a contact update.

It is due if a fraction MAX_EXHAUSTED_VERTICES of the vertices is beyond a fraction
EXHAUSTED_FRACTION of the radius.
"""

NEAR_BOUND_FRACTION = 0.25
"""Fraction of the radius used by a vertex above which the balls are moved along."""


class TrustRegion:
    """Step bounds of the vertices of a problem, if a contact term requires them.

    Attributes:
        step_bounds: The bounds, () without intersection-free contact.
        checked: True if the present positions are known to be free of intersections.
        step_begun: True if a step has begun since the last contact update.
        outdated: True if vertices left their balls on a path known to be free of intersections.
        pins: Pinned vertices on their path.
        obstacle_motion: Obstacles with prescribed motion.
        neighbors, nearby_pairs: Cached neighborhoods of the contact term.
        start_notes: Notes on the initial positions of a motion.
    """

    def __init__(
        self, model: Model, dtype: np.dtype, device: Device, states: States, contacts: Contacts
    ) -> None:
        self.model, self.dtype, self.device, self.states = model, dtype, device, states
        self._is_required = any(dynamic_term.intersection_free for _, dynamic_term in model.dynamic_terms)
        self.step_bounds: StepBounds | tuple[()] = ()
        self.checked, self.step_begun, self.outdated = False, True, True
        self.pins, self.obstacle_motion = PinMotion(model, states), ObstacleMotion(model, contacts, states)
        self.neighbors: Any = None
        self.nearby_pairs: Any = None
        self.start_notes: list[str] = []
        self.resize()

    def __bool__(self) -> bool:
        """True if vertices have step bounds."""
        return self._is_required

    def resize(self) -> None:
        """Allocate the bounds for the present batch size."""
        if self._is_required:
            shape = len(self.states.u), RECORD
            self.step_bounds = StepBounds(np.zeros(shape, self.dtype), np.zeros(shape, self.dtype))

    def restore_bounds(self) -> None:
        """Project u onto the step bounds after an update without bounds."""
        if self:
            self.device.apply_to_vectors(*self.clamp())

    def clamp(self, *copies_of_u: np.ndarray) -> tuple[ClampToBounds, ...]:
        """Operations that project u onto the step bounds.

        Args:
            copies_of_u: Arrays that receive a copy of u.
        """
        return (ClampToBounds(self.states.u, self.step_bounds, copies_of_u),) if self._is_required else ()

    def set_bounds(self, radius: np.ndarray) -> None:
        """Set bounds with radii (n,) [m] around the present positions."""
        assert self.step_bounds
        u = self.states.vectors(self.states.u)[0]
        slack = RADIUS_ROUNDINGS * float(np.finfo(self.dtype).eps) * np.abs(u).max(axis=1, initial=0)
        self.device.assign(self.step_bounds.center, self.states.u)
        self.step_bounds.radius[:-1, 0] = np.maximum(radius - slack, 0)
        self.device.upload(self.step_bounds.radius)
        self.outdated = False

    @property
    def radii(self) -> np.ndarray:
        """(n,) radii of the bounds [m]."""
        assert self.step_bounds
        return self.states.vectors(self.step_bounds.radius)[0, :, 0]

    def fraction_beyond(self, part: float) -> float:
        """Fraction of vertices beyond a given fraction of their radius."""
        assert self.step_bounds
        u, center = (self.states.vectors(records)[0] for records in (self.states.u, self.step_bounds.center))
        return float((((u - center) ** 2).sum(axis=1) > (part * self.radii) ** 2).mean())

    @property
    def near_bound(self) -> bool:
        """True if a vertex would soon reach its bound."""
        return self.outdated or self.fraction_beyond(NEAR_BOUND_FRACTION) > 0

    @property
    def needs_update(self) -> bool:
        """True if a contact update is due: bounds are used up, or pins or obstacles have not arrived."""
        if not self.step_bounds:
            return False
        return (
            self.outdated
            or not self.has_arrived
            or self.fraction_beyond(EXHAUSTED_FRACTION) > MAX_EXHAUSTED_VERTICES
        )

    def set_targets(self, time: float, pinned: np.ndarray, from_caller: bool) -> np.ndarray:
        """Begin a step in which pinned vertices move to targets.

        Args:
            time: Time of the targets [s].
            pinned: (k, 3) target positions [m].
            from_caller: True if the targets come from the caller instead of the motion of the model.

        Returns:
            Present positions (k, 3) [m].
        """
        self.step_begun = True
        self.obstacle_motion.begin()
        return self.pins.set_targets(time, pinned, from_caller)

    def notes(self, moves: bool) -> list[str]:
        """Report notes: initial positions (once), and pins short of their targets.

        Args:
            moves: True in time stepping; otherwise notes on the initial positions are dropped.
        """
        start, self.start_notes = self.start_notes if moves else [], []
        return start + self.pins.notes()

    @property
    def has_arrived(self) -> bool:
        """True if pins and obstacles have reached their targets."""
        return self.pins.has_arrived and self.obstacle_motion.has_arrived

    @property
    def is_blocked(self) -> bool:
        """True if an immovable object obstructs pins or obstacles."""
        return self.pins.is_blocked or self.obstacle_motion.is_blocked

    @property
    def in_progress(self) -> bool:
        """True if pins or obstacles are moving without obstruction."""
        return self.pins.in_progress or self.obstacle_motion.in_progress

    def advance_obstacles(self) -> bool:
        """Advance obstacles within newly set bounds; return True if any moved."""
        moved = bool(self) and self.obstacle_motion.advance(self.radii)
        if moved:
            self.restore_bounds()
        return moved

    def finish(self) -> bool:
        """Move obstacles to their final poses of a step.

        Returns:
            False if they were already there.
        """
        moved = self.obstacle_motion.finish()
        if moved:
            self.restore_bounds()
        return moved

    def set_time(self, time: float) -> None:
        """Set the time [s] of positions that were set by the caller."""
        self.pins.set_time(time)
        self.checked, self.outdated = False, True

    def begin(self, c: Conditions) -> np.ndarray:
        """Start an equilibrium under given conditions, with pins moving to their targets.

        Returns:
            Present positions of the pins (k, 3) [m].
        """
        if c.initial is not None:
            self.states.positions = c.initial[None]
        self.checked = False
        return self.set_targets(c.time, c.pinned, True)
