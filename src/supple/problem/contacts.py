"""Vertices and obstacles: what each vertex may touch, found again and again in the course of a solve.

Where a step begins, and every few sweeps, each vertex finds the shapes that are nearest to it and takes the
planes through its closest points on them [PBNG section 7.2]; one that is inside is put onto the surface.
Kernels see () where a model has no obstacles, and compile it to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.contact import Friction, Planes
from supple.contact.shapes import FRICTION
from supple.kernels import RECORD
from supple.model import Model
from supple.problem.contact_records import Clamp, Detect, Remember
from supple.problem.device import Device
from supple.problem.states import States

SNAP = 8
"""Roundings of an edge: a vertex this close to its anchor is put there, lest rounding makes it creep."""


class Contacts:
    """What the vertices of a problem touch; planes are () where there is no obstacle."""

    def __init__(self, model: Model, dtype: np.dtype, device: Device, states: States) -> None:
        self.model, self.dtype, self.device, self.states = model, dtype, device, states
        self.obstacles = model.obstacles
        self.planes: Planes | tuple[()] = ()
        if self.obstacles is None:
            return
        self.shapes = self.obstacles.shapes(0.0)
        self._rest = np.zeros((model.vertices + 1, RECORD))
        self._rest[:-1, :3] = model.rest
        self._free = np.append(_wholly_free(model), 0).astype(dtype)
        self._snap = SNAP * float(np.finfo(dtype).eps) * model.mean_edge
        self.resize()

    def __bool__(self) -> bool:
        """Whether there is an obstacle."""
        return self.obstacles is not None

    def refuse(self, method: str, *others: str) -> None:
        """Refuse obstacles for a method that does not know how to treat them, with some that do."""
        if self.obstacles is not None:
            raise ValueError(
                f"{method} cannot keep bodies out of obstacles yet, and the scene has "
                f"{self.obstacles.names[0]!r}; {', '.join(others)} can"
            )

    def resize(self) -> None:
        """Room for as many copies of the state as there are."""
        if self.obstacles is None:
            return
        shape = self.obstacles.planes, len(self.states.u), RECORD

        def records() -> np.ndarray:
            return np.zeros(shape, self.dtype)

        rough = self.obstacles.rough
        self._start = np.zeros(shape[1:] if rough else (1, RECORD), self.dtype)
        self._which = np.full((len(self.states.u), 3), -1, np.int32)
        friction = Friction(records(), records()) if rough else ()
        self.planes = Planes(records(), records(), records(), records(), friction)

    def clamp(self, *followers: np.ndarray) -> tuple[Clamp, ...]:
        """What `clamp_all` does, with further records that are to be as u is."""
        if not self.planes:
            return ()
        return (Clamp(self.states.u, self._free, self.planes, self._snap, followers),)

    @property
    def rough(self) -> bool:
        """Whether an obstacle has friction."""
        return self.obstacles is not None and self.obstacles.rough

    def found(self, copy: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of a copy of the state: normals, feet [m] and the forces [N] that were evaluated last, (planes, n,
        3) each, and the numbers (planes, n) of the shapes, -1 for none."""
        n = self.model.vertices + 1
        own = slice(copy * n, (copy + 1) * n - 1)
        arrays = [getattr(self.planes, name) for name in ("normal", "foot", "reaction")]
        for array in (*arrays, self._which):
            self.device.pull(array)
        normals, feet, forces = (array[:, own, :3].astype(float) for array in arrays)
        return normals, feet, forces, self._which[own, : len(normals)].T

    def friction_of(self, which: np.ndarray) -> np.ndarray:
        """μ of shapes by their numbers, 0 for none."""
        return np.where(which >= 0, self.shapes.rows[which, FRICTION], 0.0)

    def begin_step(self, time: float) -> None:
        """Know where vertices are before a step begins, and bring obstacles to where they are in the end [s]
        of it."""
        if self.obstacles is None:
            return
        if self.obstacles.rough:
            self.device.on_records(Remember(self.states.u, self._start))
        self.obstacles.advance(self.shapes, time)
        self.device.push(self.shapes.rows)

    def begin_anew(self, times: Sequence[float]) -> None:
        """Begin equilibria at times [s], one for each copy of the state, which must be the same."""
        if self.obstacles is None:
            return
        if len(set(times)) > 1:
            raise ValueError(
                "obstacles are where they are at one time for all variations that are solved together; solve "
                "those of different times one after the other"
            )
        self.begin_step(times[0])
        self.detect()

    def detect(self) -> None:
        """Find the planes at the present u."""
        if self.obstacles is None:
            return
        found = self.shapes, self.planes, self._which, self._snap
        self.device.on_records(Detect(self.states.u, self._rest, self._free, self._start, *found))


def _wholly_free(model: Model) -> np.ndarray:
    """(n,) True for vertices that nothing holds."""
    free = np.ones(model.vertices, bool)
    free[model.pinned] = False
    return free
