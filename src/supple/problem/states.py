"""Variables of a solve in device memory: displacements, velocities and net forces of the batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from supple.kernels import RECORD, kernel
from supple.model.model import Conditions, Model
from supple.model.state import State
from supple.problem.device import Device
from supple.problem.dirichlet_rows import normal_records
from supple.problem.history_variables import HistoryVariables
from supple.problem.vertex_kernels import Predict, Prescribe, UpdateVelocity


class States:
    """State of the batch, as padded vectors (batch (n + 1), 4); the last of each batch member is padding.

    A batch without time stepping has one array for u and û, and no velocities.

    Attributes:
        u: Displacements [m].
        net: Net forces [N].
        anchor: Inertial target û [m].
        last: Displacements at the beginning of the step [m].
        velocity: Velocities [m/s].
        constrained_at: Prescribed displacements along constrained directions, if there are any [m].
        history: History variables.
    """

    u: np.ndarray
    anchor: np.ndarray
    history: HistoryVariables

    def __init__(self, model: Model, dtype: np.dtype, device: Device) -> None:
        self.model, self.dtype, self.device = model, dtype, device
        self._slot = np.full(model.vertices + 1, -1)
        self._slot[model.pinned] = np.arange(len(model.pinned))
        self._normals = normal_records(model, dtype)
        self._batch_size = 0
        self.resize(1, moving=True)

    def resize(self, batch_size: int, moving: bool) -> None:
        """Allocate a batch at rest.

        Existing memory of the right size is reused, since first access to new memory is slow.

        Args:
            batch_size: Batch size.
            moving: True to allocate inertial targets and velocities for time stepping.
        """
        shape = batch_size * (self.model.vertices + 1), RECORD
        if batch_size != self._batch_size or moving != (self.anchor is not self.u):
            self.u = np.zeros(shape, self.dtype)
            self.net = self.device.zeros(shape, self.dtype)
            self.anchor, self.last, self.velocity = (
                np.zeros(shape if moving else (1, RECORD), self.dtype) for _ in range(3)
            )
            if not moving:
                self.anchor = self.u
            self._targets = np.zeros((batch_size * len(self.model.pinned), RECORD), self.dtype)
            self._prescribe = Prescribe(
                self.u, self._slot, self._targets, len(self.model.pinned), self._normals
            )
            self.constrained_at = np.zeros(shape if self._normals else (1, RECORD), self.dtype)
        self.u[:] = 0
        self._batch_size, self._target_positions, self._in_motion = batch_size, np.empty(0), False

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.u, self.anchor, self.net, self.last, self.velocity, self._targets, self.constrained_at

    def vectors(self, records: np.ndarray) -> np.ndarray:
        """(batch, n, 3) view of padded vectors, downloaded to the host."""
        self.device.download(records)
        return _vectors(records, self.model)

    def _set(self, records: np.ndarray, vectors: Any) -> None:
        _vectors(records, self.model)[:] = vectors
        self.device.upload(records)

    @property
    def positions(self) -> np.ndarray:
        """(batch, n, 3) float64 positions [m]."""
        return positions_from(self, self.u)

    @positions.setter
    def positions(self, positions: np.ndarray) -> None:
        self._set(self.u, positions - self.model.rest)

    def begin(self, conditions: Sequence[Conditions]) -> None:
        """Set every batch member to the initial positions of its equilibrium."""
        rest, every = self.model.rest, _vectors(self.u, self.model)
        starts = {id(c.initial): c.initial for c in conditions}
        if len(starts) == 1:  # e.g. if all begin at the initial positions of the scene
            (initial,) = starts.values()
            every[:] = 0 if initial is None else initial - rest
        else:
            for u, c in zip(every, conditions, strict=True):
                u[:] = 0 if c.initial is None else c.initial - rest
        pinned = conditions[0].pinned if len(conditions) == 1 else np.stack([c.pinned for c in conditions])
        self.model.apply_dirichlet(every, pinned - rest[self.model.pinned])
        self.device.upload(self.u)

    def get_states(self) -> list[State]:
        """States from which the next step of each batch member continues."""
        return list(self.each())

    def each(self) -> Iterator[State]:
        """Yield states one by one to save memory; consume all before the next step."""
        moving = self.anchor is not self.u
        velocities: Iterable = self.vectors(self.velocity) if moving else repeat(None)
        for u, v, history in zip(
            self.vectors(self.u), velocities, self.history.get_variables(), strict=moving
        ):
            moved = np.zeros(u.shape, u.dtype) if v is None else _copy_as(v[None], v.dtype)[0]
            yield State(_copy_as(u[None], u.dtype)[0], moved, history)

    def set_states(self, states: Sequence[State]) -> None:
        """Restore the states of the batch, history variables included."""
        self.history.set_variables([state.history for state in states])
        self._set(self.u, [state.displacements for state in states])
        self.set_velocities([state.velocities for state in states])

    def set_velocities(self, velocities: Any) -> None:
        """Start a motion with velocities (n, 3) or (batch, n, 3) [m/s]."""
        self._set(self.velocity, velocities)
        self._in_motion = False

    def set_anchor(self, anchor: np.ndarray) -> None:
        """Set û = anchor - rest from positions (n, 3) or (batch, n, 3) [m]."""
        self._set(self.anchor, anchor - self.model.rest)

    def on_device(self, member: int | None = None) -> Any:
        """Duplicate u of one or all batch members in device memory; None on the CPU."""
        n = self.model.vertices + 1
        first, last = (0, len(self.u)) if member is None else (member * n, (member + 1) * n)
        return self.device.duplicate(self.u, first, last)

    def velocities(self, dt: float, damping: float) -> np.ndarray:
        """(batch, n, 3) velocities at the end of a step [m/s]."""
        return (1.0 - damping) * (to_float64(self, self.u) - to_float64(self, self.last)) / dt

    def update_velocity(self, last: np.ndarray, dt: float, damping: float = 0.0) -> None:
        """Set velocities from the displacements of a step.

        Args:
            last: Padded vectors of the displacements at its beginning [m].
            dt: Step size [s].
            damping: Fraction of the velocities that is lost.
        """
        self.device.apply_to_vectors(UpdateVelocity(self.u, last, self.velocity, float(dt), 1.0 - damping))
        self._in_motion = False

    def pin(self, positions: np.ndarray) -> None:
        """Move the pinned vertices to positions (k, 3) or (batch, k, 3) [m]."""
        self.device.apply_to_vectors(self.set_targets(positions))

    def predict(self, dt: float, damping: float, pinned: np.ndarray) -> None:
        """Begin a backward Euler step: v = (1 - damping) Δu/Δt and u = û = uₙ + Δt v.

        Pinned vertices move to their targets. A change of u by prescribed positions since the last step
        counts as velocity.

        Args:
            dt: Step size Δt [s].
            damping: Fraction of the velocities lost in the last step.
            pinned: (k, 3) targets of the pinned vertices [m].
        """
        keep = 1.0 - damping if self._in_motion else -1.0
        prediction = Predict(self.u, self.last, self.velocity, self.anchor, float(dt), keep)
        self.device.apply_to_vectors(prediction, self.set_targets(pinned))
        self._in_motion = True

    def set_prediction(self, anchor: np.ndarray) -> None:
        """Set û and u of a step that has begun to (batch, n, 3) [m], except for pinned vertices."""
        self._set(self.anchor, anchor)
        self._set(self.u, anchor)
        self.device.apply_to_vectors(self._prescribe)

    @property
    def dirichlet_operation(self) -> Prescribe:
        """Operation that moves pinned vertices to their targets along constrained directions."""
        return self._prescribe

    def set_targets(self, positions: np.ndarray) -> Prescribe:
        """Set the targets of the pinned vertices.

        Args:
            positions: (k, 3) or (batch, k, 3) [m].

        Returns:
            The operation that moves them there.
        """
        if positions is self._target_positions:  # read-only, therefore unchanged
            return self._prescribe
        if not np.array_equal(positions, self._target_positions):
            moved = self.model.along(positions - self.model.rest[self.model.pinned])
            self._targets.reshape(self._batch_size, len(self.model.pinned), RECORD)[..., :3] = moved
            self.device.upload(self._targets)
            if self._normals:
                _vectors(self.constrained_at, self.model)[:, self.model.pinned] = moved
                self.device.upload(self.constrained_at)
        self._target_positions = positions.copy() if positions.flags.writeable else positions
        return self._prescribe


@kernel
def copy_vectors(vectors, target):
    """Copy vectors (batch, n, 3); NumPy would restart its loop for every three numbers."""
    for member in range(target.shape[0]):
        for i in range(target.shape[1]):
            for k in range(3):
                target[member, i, k] = vectors[member, i, k]


@kernel
def add_rest_positions(vectors, rest, target):
    """Set target = rest + vectors (batch, n, 3), with rest (n, 3)."""
    for member in range(target.shape[0]):
        for i in range(target.shape[1]):
            for k in range(3):
                target[member, i, k] = rest[i, k] + vectors[member, i, k]


def _copy_as(vectors: np.ndarray, dtype: np.dtype) -> np.ndarray:
    target = np.empty(vectors.shape, dtype)
    copy_vectors(vectors, target)
    return target


def _vectors(records: np.ndarray, model: Model) -> np.ndarray:
    return records.reshape(-1, model.vertices + 1, RECORD)[:, :-1, :3]


def to_float64(states: States, records: np.ndarray) -> np.ndarray:
    """(batch, n, 3) padded vectors in float64."""
    return _copy_as(states.vectors(records), np.dtype(float))


def positions_from(states: States, records: np.ndarray) -> np.ndarray:
    """(batch, n, 3) float64 positions for padded displacement vectors [m]."""
    displacements = states.vectors(records)
    target = np.empty(displacements.shape)
    add_rest_positions(displacements, states.model.rest, target)
    return target


def vectors_of(states: States, records: np.ndarray, members: Sequence[int]) -> np.ndarray:
    """(k, n, 3) padded vectors of some batch members; only these are downloaded."""
    n = states.model.vertices + 1
    for member in sorted(set(members)):
        states.device.download(records, member * n, (member + 1) * n)
    return _vectors(records, states.model)[list(members)]


def apply_drag(states: States, drag: np.ndarray) -> None:
    """Apply drag forces -α m v to a step that has begun.

    The minimum of both potentials of `Model.inertia` is at û = uₙ + Δt vₙ/(1 + α Δt).

    Args:
        states: State of the batch.
        drag: (n,) α Δt.
    """
    last, anchor = (to_float64(states, records) for records in (states.last, states.anchor))
    states.set_prediction(last + (anchor - last) / (1 + drag)[:, None])
