"""Who runs kernels on the arrays of a problem: the threads of this machine, or a CUDA device (`cuda.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, final

import numpy as np

from supple.kernels import RECORD, Host, default_threads, lanes_of
from supple.problem.records import ONCE, Clear, on_records

MIN_BATCHES_PER_THREAD = 16
"""Below this many batches per colour and thread, waiting costs more than a further thread gains."""


class Device(Protocol):
    """What a problem and its solvers ask of a device.

    lanes: how many vertices or elements a batch has; at_once: how many batches can be worked on at once, None
    where that does not matter; copies of the state, of which the `active` ones are worked on, with
    so many `records` each; threads of this machine; far: whether kernels see other memory than the host.
    """

    name: str
    far: bool
    lanes: int
    at_once: float | None
    copies: int
    active: np.ndarray
    records: int
    threads: int

    def alike(self, dtype: np.dtype, records: int | None = None) -> Device:
        """Another device of this kind for one copy of the same state in a precision, or of one with so many
        records."""

    def suit(self, batches_per_colour: int) -> None:
        """Take no more threads than so many batches are worth."""

    def hold(self, copies: int) -> None:
        """Work on so many copies of the state from now on, all of them active."""

    def upload(self, value: Any) -> None:
        """Have the arrays in a structure of tuples before the clock of a solve starts."""

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        """Run a kernel of that many phases."""

    def step(self, kernel: Callable, phases: int, *args: Any, widest: int | None = None) -> None:
        """Run a kernel whose first argument is `Steps`; a device may do it later, and several at once.
        widest: how many items a phase of its own has at most."""

    def on_records(self, *operations: Any) -> None:
        """Do operations on records, one after the other."""

    def wait(self) -> None:
        """Return when all kernels are done."""

    def pull(self, array: np.ndarray, first: int = 0, last: int | None = None) -> None:
        """Bring what kernels have written into an array, or into its rows first, ..., last - 1, to the
        host."""

    def push(self, array: np.ndarray, rows: int | None = None) -> None:
        """Let kernels see what the host has written into an array, or into its first rows."""

    def assign(self, target: np.ndarray, source: np.ndarray, copy: int | None = None) -> None:
        """target[:] = source, where kernels see both; of one copy of the state or all."""

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Memory that is zero where kernels see it."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Memory for what kernels write, with anything in it."""

    def clear(self, array: np.ndarray) -> None:
        """array[:] = 0 where kernels see it; for what methods remember, not for records."""

    def duplicate(self, array: np.ndarray, first: int, last: int) -> Any:
        """A further array with those rows where the kernels' is, None on the CPU."""


@contextmanager
def for_all_copies(device: Device) -> Iterator[None]:
    """Kernels run once, on what the copies of the state share, after all that waits to be done to each."""
    device.wait()
    active, device.active = device.active, np.zeros(1, np.int32)
    try:
        yield
    finally:
        device.active = active


def counts_of(device: Device, operations: tuple) -> tuple[int, ...]:
    """How many records each of some operations has to do with."""
    return tuple(o.memory.size // RECORD if isinstance(o, Clear) else device.records for o in operations)


@final
class Cpu(Host):
    """Threads of this machine, which work on one copy of the state."""

    name: str = "cpu"
    at_once: float | None = None
    copies: int = 1

    def __init__(self, records: int, dtype: np.dtype, threads: int | None = None) -> None:
        super().__init__(default_threads() if threads is None else threads)
        self.records, self.lanes = records, lanes_of(dtype)
        self.active = np.zeros(1, np.int32)

    def alike(self, dtype: np.dtype, records: int | None = None) -> Cpu:
        return Cpu(records or self.records, dtype, self.threads)

    def suit(self, batches_per_colour: int) -> None:
        self.threads = max(1, min(self.threads, batches_per_colour // MIN_BATCHES_PER_THREAD))

    def hold(self, copies: int) -> None:
        if copies != 1:
            raise ValueError(f"the CPU works on one copy of the state at a time, not {copies}")

    def upload(self, value: Any) -> None:
        """They are there."""

    def step(self, kernel: Callable, phases: int, *args: Any, widest: int | None = None) -> None:
        self.run(kernel, phases, ONCE, *args)

    def on_records(self, *operations: Any) -> None:
        self.run(on_records, 1, counts_of(self, operations), operations)

    def wait(self) -> None:
        """Kernels are done when they return."""

    def assign(self, target: np.ndarray, source: np.ndarray, copy: int | None = None) -> None:
        target[:] = source

    def clear(self, array: np.ndarray) -> None:
        array[:] = 0

    def duplicate(self, array: np.ndarray, first: int, last: int) -> Any:
        return None
