"""Interface of the devices that run kernels: CPU threads of this machine, or a GPU (`cuda.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, final

import numpy as np

from supple.kernels import RECORD, Host, default_threads, lanes_of
from supple.problem.vertex_kernels import SINGLE_STEP, Clear, apply_to_vectors

MIN_BATCHES_PER_THREAD = 16
"""Batches per color and thread below which synchronization costs more than a further thread gains."""


class Device(Protocol):
    """Interface of a device for problems and solvers.

    Attributes:
        name: "cpu" or "cuda".
        is_remote: True if kernels use other memory than the host.
        lanes: Vertices or elements per packed batch.
        concurrent_batches: Number of packed batches that run concurrently; None if irrelevant.
        batch_size: Batch size.
        active: Batch members on which kernels work.
        records: Padded vectors per batch member.
        threads: Host threads.
    """

    name: str
    is_remote: bool
    lanes: int
    concurrent_batches: float | None
    batch_size: int
    active: np.ndarray
    records: int
    threads: int

    def clone(self, dtype: np.dtype, records: int | None = None) -> Device:
        """Create a device of the same class for batch size 1.

        Args:
            dtype: Working precision.
            records: Number of padded vectors; None for the same number.
        """

    def limit_threads(self, batches_per_color: int) -> None:
        """Limit the thread count if few batches per color make synchronization dominant."""

    def set_batch_size(self, batch_size: int) -> None:
        """Set the batch size and activate all members."""

    def upload_all(self, value: Any) -> None:
        """Upload the arrays of nested tuples before the clock of a solve starts."""

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        """Run a kernel with a given number of phases."""

    def step(self, kernel: Callable, phases: int, *args: Any, widest: int | None = None) -> None:
        """Run a kernel whose first argument is `Steps`; a device may defer and merge steps.

        Args:
            kernel: Kernel to run.
            phases: Number of its phases.
            args: Further arguments of the kernel.
            widest: Largest number of work items in a phase.
        """

    def apply_to_vectors(self, *operations: Any) -> None:
        """Apply operations to all padded vectors, in order."""

    def wait(self) -> None:
        """Block until all kernels have finished."""

    def download(self, array: np.ndarray, first: int = 0, last: int | None = None) -> None:
        """Download an array, or its rows first, ..., last - 1, to the host."""

    def upload(self, array: np.ndarray, rows: int | None = None) -> None:
        """Upload an array changed on the host, or its first rows."""

    def assign(self, target: np.ndarray, source: np.ndarray, member: int | None = None) -> None:
        """Copy source to target in device memory, for one batch member or all."""

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Allocate zeroed device memory."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Allocate uninitialized device memory for kernel output."""

    def clear(self, array: np.ndarray) -> None:
        """Set an array of solver memory to zero in device memory; not for padded vectors of the state."""

    def duplicate(self, array: np.ndarray, first: int, last: int) -> Any:
        """Duplicate rows of an array in device memory; None on the CPU."""


@contextmanager
def on_shared_data(device: Device) -> Iterator[None]:
    """Run kernels once, on data shared by the batch, after all pending work on the batch members."""
    device.wait()
    active, device.active = device.active, np.zeros(1, np.int32)
    try:
        yield
    finally:
        device.active = active


def counts_of(device: Device, operations: tuple) -> tuple[int, ...]:
    """Number of padded vectors of each operation."""
    return tuple(o.memory.size // RECORD if isinstance(o, Clear) else device.records for o in operations)


@final
class Cpu(Host):
    """CPU threads of this machine, for batch size 1."""

    name: str = "cpu"
    concurrent_batches: float | None = None
    batch_size: int = 1

    def __init__(self, records: int, dtype: np.dtype, threads: int | None = None) -> None:
        super().__init__(default_threads() if threads is None else threads)
        self.records, self.lanes = records, lanes_of(dtype)
        self.active = np.zeros(1, np.int32)

    def clone(self, dtype: np.dtype, records: int | None = None) -> Cpu:
        return Cpu(records or self.records, dtype, self.threads)

    def limit_threads(self, batches_per_color: int) -> None:
        self.threads = max(1, min(self.threads, batches_per_color // MIN_BATCHES_PER_THREAD))

    def set_batch_size(self, batch_size: int) -> None:
        if batch_size != 1:
            raise ValueError(f"the CPU solves one batch member at a time; got a batch size of {batch_size}")

    def upload_all(self, value: Any) -> None:
        """No effect: the arrays are in host memory."""

    def step(self, kernel: Callable, phases: int, *args: Any, widest: int | None = None) -> None:
        self.run(kernel, phases, SINGLE_STEP, *args)

    def apply_to_vectors(self, *operations: Any) -> None:
        self.run(apply_to_vectors, 1, counts_of(self, operations), operations)

    def wait(self) -> None:
        """No effect: kernels are synchronous."""

    def assign(self, target: np.ndarray, source: np.ndarray, member: int | None = None) -> None:
        target[:] = source

    def clear(self, array: np.ndarray) -> None:
        array[:] = 0

    def duplicate(self, array: np.ndarray, first: int, last: int) -> Any:
        return None
