"""A problem whose arrays live on a CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.kernels.access import WARP
from supple.kernels.cuda import (
    FAT,
    WIDE,
    Arrivals,
    Mirror,
    launch,
    multiprocessors,
    require_device,
    synchronise,
)
from supple.kernels.device import same
from supple.model import Model
from supple.ordering import Links, batch_links
from supple.solvers.problem import Problem
from supple.solvers.records import Clear, Put, Steps

SMALL = 48_000
"""Below this many vertices a colour's items all run at once."""

AT_ONCE = 16
"""How many steps that nobody looks at share one launch, at most; on large meshes none do, since launches do
not matter there, and some cards end what takes longer than seconds."""


class CudaProblem(Problem):
    """The potential of one step on a CUDA device. Host arrays are mirrored there on first use; what kernels
    write stays there until it is pulled."""

    device = "cuda"

    def __init__(self, model: Model, precision: str, copies: int = 1) -> None:
        self.card = require_device()
        self.copies = copies
        self._mirror, self._arrivals = Mirror(), Arrivals()
        self._waiting: tuple = ()
        self._step: tuple = ()
        self._times, self._together = 0, 1
        small = copies * model.vertices < SMALL
        self._shape = FAT if small else WIDE
        self._at_once = multiprocessors() * self._shape.threads / WARP / copies
        super().__init__(model, precision, threads=1, lanes=WARP, at_once=self._at_once)
        if copies == 1:
            self._upload()

    def _upload(self) -> None:
        """Have everything on the device before the clock of a solve starts, and before operations that wait
        could find it changed."""
        rows = tuple((elements.own, elements.rows) for elements in self.elements)
        records = self.u, self.anchor, self.net, self.last, self.velocity, self._targets
        self._mirror.upload((self.terms, self.vertices, records, rows))

    def _on_records(self, *operations: Any) -> None:
        """They wait until somebody needs their results, so that one launch does all of them."""
        again = isinstance(operations[0], Put) and bool(self._waiting) and self._waiting[-1] is operations[0]
        self._waiting += () if again else operations

    def step(self, kernel: Callable, phases: int, *args: Any, widest: int | None = None) -> None:
        """Steps wait too: one launch does their operations on records and their work, and that of some that
        follow and are the same. It is one at first and then ever more, lest the device waits for the host."""
        operations, self._waiting = self._waiting, ()
        step = kernel, phases, widest, self.active, operations, args
        if not same(step, self._step):
            self._catch_up()
            self._step = step
        self._times += 1
        if self._times == self._together:
            self._do_steps()
            self._together = min(2 * self._together, AT_ONCE if self._shape is FAT else 1)

    def _do_steps(self) -> None:
        times, self._times = self._times, 0
        if times:
            kernel, phases, widest, active, operations, args = self._step
            steps = Steps(times, self._counts(operations), operations)
            self._launch(kernel, times * (bool(operations) + phases), widest, active, steps, *args)

    def _catch_up(self) -> None:
        """Do what waits: steps, then operations that no step has taken yet."""
        self._do_steps()
        self._together = 1
        operations, self._waiting = self._waiting, ()
        if operations:
            super()._on_records(*operations)

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        self._catch_up()
        self._launch(kernel, phases, None, self.active, *args)

    def _launch(
        self, kernel: Callable, phases: int, widest: int | None, active: np.ndarray, *args: Any
    ) -> None:
        state = self.copies, active, self.model.vertices + 1
        launch(self._mirror, self._arrivals, kernel, phases, self._shape, widest, *state, *args)

    def _forget_launches(self) -> None:
        """Let go of what the last ones were given."""
        self._catch_up()
        self._step = ()
        self._mirror.forget_launches()

    def batch_links(self) -> Links | None:
        return batch_links(self.model.terms, self.model.free, self.dtype, self.lanes, self._at_once)

    def wait(self) -> None:
        self._catch_up()
        synchronise()

    def pull(self, array: np.ndarray) -> None:
        self._catch_up()
        self._mirror.pull(array)

    def push(self, array: np.ndarray, rows: int | None = None) -> None:
        self._catch_up()
        self._mirror.push(array, rows)

    def assign(self, target: np.ndarray, source: np.ndarray, copy: int | None = None) -> None:
        self._catch_up()
        n = self.model.vertices + 1
        first, last = (0, len(target)) if copy is None else (copy * n, (copy + 1) * n)
        self._mirror.assign(target, source, first, last)

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        array = super().zeros(shape)
        self._mirror.clear(array)
        return array

    def clear(self, array: np.ndarray) -> None:
        if self.copies > 1 or array not in self._mirror:
            self._catch_up()
            self._mirror.clear(array)
        if self.copies == 1:  # even then, lest the first step is a kernel of its own
            self._on_records(Clear(array))

    def displacements_on_device(self, copy: int = 0) -> Any:
        return self.all_displacements_on_device()

    def all_displacements_on_device(self) -> Any:
        self._catch_up()
        return self._mirror.duplicate(self.u, 0, len(self.u))
