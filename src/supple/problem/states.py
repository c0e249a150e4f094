"""Variables of a solve in device memory: displacements, velocities and net forces of the batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from supple.kernels import RECORD, kernel
from supple.model.model import Conditions, Model
from supple.model.state import State
from supple.problem.constrained_dofs import normal_records
from supple.problem.device import Device
from supple.problem.history import HistoryVariables
from supple.problem.vertex_kernels import Coast, Put, Settle


class States:
    """State of the batch, as padded vectors (batch (n + 1), 4); the last of each batch member is padding.

    A batch without time stepping has one array for u and û, and no velocities.

    Attributes:
        u: Displacements [m].
        net: Net forces [N].
        anchor: Inertial target û [m].
        last: Displacements at the beginning of the step [m].
        velocity: Velocities [m/s].
        held_at: Prescribed displacements along constrained directions, if there are any [m].
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
            self._put = Put(self.u, self._slot, self._targets, len(self.model.pinned), self._normals)
            self.held_at = np.zeros(shape if self._normals else (1, RECORD), self.dtype)
        self.u[:] = 0
        self._batch_size, self._aims, self._going = batch_size, np.empty(0), False

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.u, self.anchor, self.net, self.last, self.velocity, self._targets, self.held_at

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
        return placed(self, self.u)

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
        self.model.hold(every, pinned - rest[self.model.pinned])
        self.device.upload(self.u)

    def take(self) -> list[State]:
        """States from which the next step of each batch member continues."""
        return list(self.each())

    def each(self) -> Iterator[State]:
        """Yield states one by one to save memory; consume all before the next step."""
        moving = self.anchor is not self.u
        velocities: Iterable = self.vectors(self.velocity) if moving else repeat(None)
        for u, v, history in zip(self.vectors(self.u), velocities, self.history.take(), strict=moving):
            moved = np.zeros(u.shape, u.dtype) if v is None else _taken(v[None], v.dtype)[0]
            yield State(_taken(u[None], u.dtype)[0], moved, history)

    def put(self, states: Sequence[State]) -> None:
        """Restore the states of the batch, history variables included."""
        self.history.put([state.history for state in states])
        self._set(self.u, [state.displacements for state in states])
        self.set_velocities([state.velocities for state in states])

    def set_velocities(self, velocities: Any) -> None:
        """Start a motion with velocities (n, 3) or (batch, n, 3) [m/s]."""
        self._set(self.velocity, velocities)
        self._going = False

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
        return (1.0 - damping) * (exactly(self, self.u) - exactly(self, self.last)) / dt

    def settle(self, last: np.ndarray, dt: float, damping: float = 0.0) -> None:
        """Set velocities from the displacements of a step.

        Args:
            last: Padded vectors of the displacements at its beginning [m].
            dt: Step size [s].
            damping: Fraction of the velocities that is lost.
        """
        self.device.on_records(Settle(self.u, last, self.velocity, float(dt), 1.0 - damping))
        self._going = False

    def pin(self, positions: np.ndarray) -> None:
        """Move the pinned vertices to positions (k, 3) or (batch, k, 3) [m]."""
        self.device.on_records(self.aim(positions))

    def coast(self, dt: float, damping: float, pinned: np.ndarray) -> None:
        """Begin a backward Euler step: v = (1 - damping) Δu/Δt and u = û = uₙ + Δt v.

        Pinned vertices move to their targets. A change of u by prescribed positions since the last step
        counts as velocity.

        Args:
            dt: Step size Δt [s].
            damping: Fraction of the velocities lost in the last step.
            pinned: (k, 3) targets of the pinned vertices [m].
        """
        keep = 1.0 - damping if self._going else -1.0
        coast = Coast(self.u, self.last, self.velocity, self.anchor, float(dt), keep)
        self.device.on_records(coast, self.aim(pinned))
        self._going = True

    def coast_to(self, anchor: np.ndarray) -> None:
        """Set û and u of a step that has begun to (batch, n, 3) [m], except for pinned vertices."""
        self._set(self.anchor, anchor)
        self._set(self.u, anchor)
        self.device.on_records(self._put)

    @property
    def prescribing(self) -> Put:
        """Operation that moves pinned vertices to their targets along constrained directions."""
        return self._put

    def aim(self, positions: np.ndarray) -> Put:
        """Set the targets of the pinned vertices.

        Args:
            positions: (k, 3) or (batch, k, 3) [m].

        Returns:
            The operation that moves them there.
        """
        if positions is self._aims:  # read-only, therefore unchanged
            return self._put
        if not np.array_equal(positions, self._aims):
            moved = self.model.along(positions - self.model.rest[self.model.pinned])
            self._targets.reshape(self._batch_size, len(self.model.pinned), RECORD)[..., :3] = moved
            self.device.upload(self._targets)
            if self._normals:
                _vectors(self.held_at, self.model)[:, self.model.pinned] = moved
                self.device.upload(self.held_at)
        self._aims = positions.copy() if positions.flags.writeable else positions
        return self._put


@kernel
def take_vectors(vectors, found):
    """Copy vectors (batch, n, 3); NumPy would restart its loop for every three numbers."""
    for copy in range(found.shape[0]):
        for i in range(found.shape[1]):
            for k in range(3):
                found[copy, i, k] = vectors[copy, i, k]


@kernel
def put_vectors(vectors, rest, found):
    """Set found = rest + vectors (batch, n, 3), with rest (n, 3)."""
    for copy in range(found.shape[0]):
        for i in range(found.shape[1]):
            for k in range(3):
                found[copy, i, k] = rest[i, k] + vectors[copy, i, k]


def _taken(vectors: np.ndarray, dtype: np.dtype) -> np.ndarray:
    found = np.empty(vectors.shape, dtype)
    take_vectors(vectors, found)
    return found


def _vectors(records: np.ndarray, model: Model) -> np.ndarray:
    return records.reshape(-1, model.vertices + 1, RECORD)[:, :-1, :3]


def exactly(states: States, records: np.ndarray) -> np.ndarray:
    """(batch, n, 3) padded vectors in float64."""
    return _taken(states.vectors(records), np.dtype(float))


def placed(states: States, records: np.ndarray) -> np.ndarray:
    """(batch, n, 3) float64 positions for padded displacement vectors [m]."""
    here = states.vectors(records)
    found = np.empty(here.shape)
    put_vectors(here, states.model.rest, found)
    return found


def vectors_of(states: States, records: np.ndarray, members: Sequence[int]) -> np.ndarray:
    """(k, n, 3) padded vectors of some batch members; only these are downloaded."""
    n = states.model.vertices + 1
    for member in sorted(set(members)):
        states.device.download(records, member * n, (member + 1) * n)
    return _vectors(records, states.model)[list(members)]


def slow_down(states: States, drag: np.ndarray) -> None:
    """Apply drag forces -α m v to a step that has begun.

    The minimum of both potentials of `Model.inertia` is at û = uₙ + Δt vₙ/(1 + α Δt).

    Args:
        states: State of the batch.
        drag: (n,) α Δt.
    """
    last, anchor = (exactly(states, records) for records in (states.last, states.anchor))
    states.coast_to(last + (anchor - last) / (1 + drag)[:, None])
