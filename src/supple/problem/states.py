"""What changes in the course of a solve, for every copy of a model's state, where kernels see it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from supple.kernels import RECORD, kernel
from supple.model import Conditions, Model
from supple.problem.device import Device
from supple.problem.held import normal_records
from supple.problem.records import Coast, Put, Settle
from supple.problem.remembered import Remembered
from supple.state import State


class States:
    """Records (copies (n + 1), 4), the last of each copy being padding: displacements u and net forces `net`;
    û, towards which inertia pulls, is `anchor`; u at the beginning of the step is `last`; `velocity`;
    `held_at`, where vertices that are held along some directions are to be along these, if there are any.
    Copies that do not move in time have one array for u and û, and no velocities.
    """

    u: np.ndarray
    anchor: np.ndarray
    remembered: Remembered

    def __init__(self, model: Model, dtype: np.dtype, device: Device) -> None:
        self.model, self.dtype, self.device = model, dtype, device
        self._slot = np.full(model.vertices + 1, -1)
        self._slot[model.pinned] = np.arange(len(model.pinned))
        self._normals = normal_records(model, dtype)
        self._copies = 0
        self.resize(1, moving=True)

    def resize(self, copies: int, moving: bool) -> None:
        """Room for so many copies, all at rest; known memory is kept, since to touch new one takes longer."""
        shape = copies * (self.model.vertices + 1), RECORD
        if copies != self._copies or moving != (self.anchor is not self.u):
            self.u = np.zeros(shape, self.dtype)
            self.net = self.device.zeros(shape, self.dtype)
            self.anchor, self.last, self.velocity = (
                np.zeros(shape if moving else (1, RECORD), self.dtype) for _ in range(3)
            )
            if not moving:
                self.anchor = self.u
            self._targets = np.zeros((copies * len(self.model.pinned), RECORD), self.dtype)
            self._put = Put(self.u, self._slot, self._targets, len(self.model.pinned), self._normals)
            self.held_at = np.zeros(shape if self._normals else (1, RECORD), self.dtype)
        self.u[:] = 0
        self._copies, self._aims, self._going = copies, np.empty(0), False

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.u, self.anchor, self.net, self.last, self.velocity, self._targets, self.held_at

    def vectors(self, records: np.ndarray) -> np.ndarray:
        """(copies, n, 3) what records have for the vertices, as a view."""
        self.device.pull(records)
        return _vectors(records, self.model)

    def _set(self, records: np.ndarray, vectors: Any) -> None:
        _vectors(records, self.model)[:] = vectors
        self.device.push(records)

    @property
    def positions(self) -> np.ndarray:
        """(copies, n, 3) float64 [m]."""
        return placed(self, self.u)

    @positions.setter
    def positions(self, positions: np.ndarray) -> None:
        self._set(self.u, positions - self.model.rest)

    def begin(self, conditions: Sequence[Conditions]) -> None:
        """Put every copy where an equilibrium under conditions of its own starts from, all being at rest."""
        rest, every = self.model.rest, _vectors(self.u, self.model)
        starts = {id(c.start): c.start for c in conditions}
        if len(starts) == 1:  # as where all begin at the scene's own start
            (start,) = starts.values()
            every[:] = 0 if start is None else start - rest
        else:
            for u, c in zip(every, conditions, strict=True):
                u[:] = 0 if c.start is None else c.start - rest
        pinned = conditions[0].pinned if len(conditions) == 1 else np.stack([c.pinned for c in conditions])
        self.model.hold(every, pinned - rest[self.model.pinned])
        self.device.push(self.u)

    def take(self) -> list[State]:
        """What the next step of each copy goes on from: u, the velocities that were set last, and what
        elements remember."""
        return list(self.each())

    def each(self) -> Iterator[State]:
        """One by one, so that not all of them must be kept, and before any of them moves on."""
        moving = self.anchor is not self.u
        velocities: Iterable = self.vectors(self.velocity) if moving else repeat(None)
        for u, v, remembered in zip(self.vectors(self.u), velocities, self.remembered.take(), strict=moving):
            moved = np.zeros(u.shape, u.dtype) if v is None else _taken(v[None], v.dtype)[0]
            yield State(_taken(u[None], u.dtype)[0], moved, remembered)

    def put(self, states: Sequence[State]) -> None:
        self.remembered.put([state.remembered for state in states])
        self._set(self.u, [state.displacements for state in states])
        self.set_velocities([state.velocities for state in states])

    def set_velocities(self, velocities: Any) -> None:
        """Start a motion with velocities (n, 3) or (copies, n, 3) [m/s]."""
        self._set(self.velocity, velocities)
        self._going = False

    def set_anchor(self, anchor: np.ndarray) -> None:
        """û = anchor - rest, positions (n, 3) or (copies, n, 3) [m]."""
        self._set(self.anchor, anchor - self.model.rest)

    def on_device(self, copy: int | None = None) -> Any:
        """An array with the records u of one copy or all, where the kernels' is; None on the CPU."""
        n = self.model.vertices + 1
        first, last = (0, len(self.u)) if copy is None else (copy * n, (copy + 1) * n)
        return self.device.duplicate(self.u, first, last)

    def velocities(self, dt: float, damping: float) -> np.ndarray:
        """(copies, n, 3) at the end of a step [m/s]."""
        return (1.0 - damping) * (exactly(self, self.u) - exactly(self, self.last)) / dt

    def settle(self, last: np.ndarray, dt: float, damping: float = 0.0) -> None:
        """Let velocities be those with which u was reached from records in a time dt [s], but for a part."""
        self.device.on_records(Settle(self.u, last, self.velocity, float(dt), 1.0 - damping))
        self._going = False

    def pin(self, positions: np.ndarray) -> None:
        """Move the pinned vertices to positions (k, 3) or (copies, k, 3) [m]."""
        self.device.on_records(self.aim(positions))

    def coast(self, dt: float, damping: float, pinned: np.ndarray) -> None:
        """Begin a backward Euler step of Δt where the last one has ended: v = (1 - damping) Δu/Δt, and u = û
        = uₙ + Δt v, but for the pinned vertices, which move to positions (k, 3) [m]. What has been prescribed
        meanwhile counts as velocity."""
        keep = 1.0 - damping if self._going else -1.0
        coast = Coast(self.u, self.last, self.velocity, self.anchor, float(dt), keep)
        self.device.on_records(coast, self.aim(pinned))
        self._going = True

    def coast_to(self, anchor: np.ndarray) -> None:
        """Let a step that has begun have û (copies, n, 3) [m] as its anchor and its start, but for the pinned
        vertices, which stay where they are led."""
        self._set(self.anchor, anchor)
        self._set(self.u, anchor)
        self.device.on_records(self._put)

    @property
    def prescribing(self) -> Put:
        """Puts pinned vertices where they are to be, as far as they are held."""
        return self._put

    def aim(self, positions: np.ndarray) -> Put:
        """Let pinned vertices be held at positions (k, 3) or (copies, k, 3) [m] from now on; returns what
        puts them there."""
        if positions is self._aims:  # which nobody can have changed
            return self._put
        if not np.array_equal(positions, self._aims):
            moved = self.model.along(positions - self.model.rest[self.model.pinned])
            self._targets.reshape(self._copies, len(self.model.pinned), RECORD)[..., :3] = moved
            self.device.push(self._targets)
            if self._normals:
                _vectors(self.held_at, self.model)[:, self.model.pinned] = moved
                self.device.push(self.held_at)
        self._aims = positions.copy() if positions.flags.writeable else positions
        return self._put


@kernel
def take_vectors(vectors, found):
    """found = vectors (copies, n, 3): NumPy would begin anew for every three numbers."""
    for copy in range(found.shape[0]):
        for i in range(found.shape[1]):
            for k in range(3):
                found[copy, i, k] = vectors[copy, i, k]


@kernel
def put_vectors(vectors, rest, found):
    """found = rest + vectors (copies, n, 3), rest (n, 3)."""
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
    """(copies, n, 3) what records have for the vertices, in float64."""
    return _taken(states.vectors(records), np.dtype(float))


def placed(states: States, records: np.ndarray) -> np.ndarray:
    """(copies, n, 3) float64 [m] where displacements in records take the vertices."""
    here = states.vectors(records)
    found = np.empty(here.shape)
    put_vectors(here, states.model.rest, found)
    return found


def vectors_of(states: States, records: np.ndarray, copies: Sequence[int]) -> np.ndarray:
    """(k, n, 3) what records have for the vertices of some copies, of which alone they are brought here."""
    n = states.model.vertices + 1
    for copy in sorted(set(copies)):
        states.device.pull(records, copy * n, (copy + 1) * n)
    return _vectors(records, states.model)[list(copies)]


def slow_down(states: States, drag: np.ndarray) -> None:
    """Let a step that has begun be slowed down by forces -α m v, drag (n,) α Δt: the least of both
    potentials, `Model.inertia`, is at û = uₙ + Δt vₙ/(1 + α Δt)."""
    last, anchor = (exactly(states, records) for records in (states.last, states.anchor))
    states.coast_to(last + (anchor - last) / (1 + drag)[:, None])
