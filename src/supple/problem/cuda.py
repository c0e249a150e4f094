"""CUDA device that runs the kernels of a problem."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, final

import numpy as np

from supple.kernels.cuda import (
    HIGH_THROUGHPUT,
    LOW_LATENCY,
    Arrivals,
    Mirror,
    launch,
    multiprocessors,
    require_device,
    synchronize,
)
from supple.kernels.devices import same
from supple.kernels.simd.load_store import WARP
from supple.problem.device import counts_of
from supple.problem.vertex_kernels import Clear, Prescribe, Steps, apply_to_vectors

MAX_CONCURRENT_VERTICES = 48_000
"""Number of vertices below which all work items of a color run concurrently."""

MAX_STEPS_PER_LAUNCH = 16
"""Maximum number of steps per launch if no results are read in between.

Large meshes use one step per launch: the launch overhead is negligible there, and some GPUs abort launches
that take longer than seconds.
"""


@final
class Cuda:
    """CUDA device with mirrored host arrays.

    Host arrays are mirrored in device memory on first use. Kernel results stay there until the
    host calls `download`. An array that no kernel changed since its last transfer is not downloaded again. As
    with kernels of the CPU, changes on the host require an `upload`.
    """

    name: str = "cuda"
    is_remote: bool = True
    lanes: int = WARP
    threads: int = 1
    concurrent_batches: float | None

    def __init__(self, records: int, batch_size: int = 1) -> None:
        self.card = require_device()
        self.records = records
        self._mirror, self._arrivals = Mirror(), Arrivals()
        self._pending: tuple = ()
        self._step: tuple = ()
        self._synchronized: dict[int, weakref.ref] = {}
        self._times, self._steps_per_launch = 0, 1
        self._shape = LOW_LATENCY if batch_size * (records - 1) < MAX_CONCURRENT_VERTICES else HIGH_THROUGHPUT
        self.concurrent_batches = multiprocessors() * self._shape.threads / WARP / batch_size
        self.batch_size, self.active = batch_size, np.arange(batch_size, dtype=np.int32)

    def clone(self, dtype: np.dtype, records: int | None = None) -> Cuda:
        return Cuda(records or self.records)

    def limit_threads(self, batches_per_color: int) -> None:
        """No effect: a GPU needs one host thread."""

    def set_batch_size(self, batch_size: int) -> None:
        """Set the batch size and release the arguments of the last launches, to free the old state."""
        self._flush()
        self._step = ()
        self._mirror.clear_launches()
        self.batch_size, self.active = batch_size, np.arange(batch_size, dtype=np.int32)

    def upload_all(self, value: Any) -> None:
        """Upload arrays; pending operations could otherwise read a changed array."""
        self._mirror.upload_all(value)

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        self._flush()
        self._launch(kernel, phases, None, self.active, *args)

    def step(self, kernel: Callable, phases: int, *args: Any, widest: int | None = None) -> None:
        """Enqueue a step, which may run later together with others.

        One launch runs the pending vector operations, the step, and consecutive identical steps. It starts
        with one step and doubles the number up to `MAX_STEPS_PER_LAUNCH`, to keep the GPU from idling.
        """
        operations, self._pending = self._pending, ()
        step = kernel, phases, widest, self.active, operations, args
        if not same(step, self._step):
            self._flush()
            self._step = step
        self._times += 1
        if self._times == self._steps_per_launch:
            self._launch_steps()
            self._steps_per_launch = min(
                2 * self._steps_per_launch, MAX_STEPS_PER_LAUNCH if self._shape is LOW_LATENCY else 1
            )

    def apply_to_vectors(self, *operations: Any) -> None:
        """Queue operations until results are needed; one launch then runs all."""
        again = (
            isinstance(operations[0], Prescribe)
            and bool(self._pending)
            and self._pending[-1] is operations[0]
        )
        self._pending += () if again else operations

    def _launch_steps(self) -> None:
        times, self._times = self._times, 0
        if times:
            kernel, phases, widest, active, operations, args = self._step
            steps = Steps(times, counts_of(self, operations), operations)
            self._launch(kernel, times * (bool(operations) + phases), widest, active, steps, *args)

    def _flush(self) -> None:
        """Launch pending steps, then the operations that no step has taken yet."""
        self._launch_steps()
        self._steps_per_launch = 1
        operations, self._pending = self._pending, ()
        if operations:
            self._launch(apply_to_vectors, 1, None, self.active, counts_of(self, operations), operations)

    def _launch(
        self, kernel: Callable, phases: int, widest: int | None, active: np.ndarray, *args: Any
    ) -> None:
        self._synchronized.clear()
        state = self.batch_size, active, self.records
        launch(self._mirror, self._arrivals, kernel, phases, self._shape, widest, *state, *args)

    def wait(self) -> None:
        self._flush()
        synchronize()

    def download(self, array: np.ndarray, first: int = 0, last: int | None = None) -> None:
        self._flush()
        reference = self._synchronized.get(id(array))
        if reference is not None and reference() is array:
            return
        self._mirror.download(array, first, last)
        if first == 0 and last is None:
            self._synchronized[id(array)] = weakref.ref(array)

    def upload(self, array: np.ndarray, rows: int | None = None) -> None:
        self._flush()
        self._mirror.upload(array, rows)
        if rows is None:
            self._synchronized[id(array)] = weakref.ref(array)

    def assign(self, target: np.ndarray, source: np.ndarray, member: int | None = None) -> None:
        self._flush()
        n = self.records
        first, last = (0, len(target)) if member is None else (member * n, (member + 1) * n)
        self._mirror.assign(target, source, first, last)
        self._synchronized.pop(id(target), None)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        array = np.zeros(shape, dtype)
        self._mirror.clear(array)
        return array

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        array = np.empty(shape, dtype)
        self._mirror.reserve(array)
        return array

    def clear(self, array: np.ndarray) -> None:
        if self.batch_size > 1 or array not in self._mirror:
            self._flush()
            self._mirror.clear(array)
            self._synchronized.pop(id(array), None)
        if self.batch_size == 1:  # even if just cleared: the first step then needs no kernel of its own
            self.apply_to_vectors(Clear(array))

    def duplicate(self, array: np.ndarray, first: int, last: int) -> Any:
        self._flush()
        return self._mirror.duplicate(array, first, last)
