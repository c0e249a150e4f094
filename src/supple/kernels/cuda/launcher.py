"""Compilation and launch of kernels on a CUDA device.

Numba's own launch determines the types of all arguments every time, which takes longer than a sweep. Here
they are cached.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from numbers import Integral
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from cuda.bindings import driver
from numba import cuda, types
from numba.core import event
from numba.cuda.core import config
from numba.np.numpy_support import from_dtype

from supple.kernels.compile.disk_cache import cache_directory, cache_in_files, can_cache
from supple.kernels.cuda.device_memory import Mirror, check
from supple.kernels.cuda.thread_grid import BatchGrid, Grid
from supple.kernels.devices import same
from supple.kernels.simd.load_store import WARP


class Shape(NamedTuple):
    """Launch configuration of a kernel: one block fills a multiprocessor; fewer blocks synchronize faster.

    Attributes:
        registers: Registers per thread.
        threads: Threads per block.
    """

    registers: int
    threads: int


LOW_LATENCY, HIGH_THROUGHPUT = Shape(248, 256), Shape(128, 512)
"""Configurations for low latency, if all items run concurrently, and for throughput."""


class Arrivals:
    """Counts of block arrivals at the end of phases, on device and host."""

    def __init__(self) -> None:
        self.counter = np.zeros(1, np.uint32)
        self.total = 0


def launch(
    mirror: Mirror,
    arrivals: Arrivals,
    kernel: Callable,
    phases: int,
    shape: Shape,
    widest: int | None,
    batch_size: int,
    active: np.ndarray,
    records: int,
    *args: Any,
) -> None:
    """Run a kernel, one warp per item, on all blocks that fit on the device simultaneously.

    Args:
        mirror: Device copies of host arrays.
        arrivals: Barrier counter.
        kernel: Kernel to run.
        phases: Number of phases of the kernel.
        shape: Launch configuration.
        widest: Number of items of the largest phase. Fewer items than warps are spread over all
            multiprocessors.
        batch_size: Batch size.
        active: (k,) active batch members.
        records: Number of vertex vectors per batch member.
        *args: Arguments of the kernel.
    """
    state = records, arrivals.counter, arrivals.total % 2**32
    team = Grid(*state) if batch_size == 1 else BatchGrid(*state, active)
    launcher, fields = _prepare(mirror, kernel, shape, team, args)
    rows = min(len(active), launcher.blocks)
    columns, threads = launcher.blocks // rows, shape.threads
    if widest is not None and widest * WARP < columns * threads:
        warps = max(1, -(-widest // columns))
        columns, threads = max(1, -(-widest // warps)), WARP * warps
    launcher.start((columns, rows, 1), threads, fields)
    arrivals.total += phases * rows * columns


_one_launch = Lock()


class Launcher:
    """Kernel compiled for the types of its arguments, all 8 bytes long.

    Attributes:
        blocks: Number of blocks that fit on the device simultaneously.
    """

    def __init__(self, compiled: Any, shape: Shape, fields: list) -> None:
        self._function = driver.CUfunction(int(compiled._codelibrary.get_cufunc().handle))
        self.blocks = int(compiled.max_cooperative_grid_blocks(shape.threads))
        self._layout = struct.Struct("=" + "".join("d" if isinstance(f, float) else "q" for f in fields))
        self._values = ctypes.create_string_buffer(self._layout.size)
        first = ctypes.addressof(self._values)
        self._pointers = (ctypes.c_void_p * len(fields))(*range(first, first + self._layout.size, 8))

    def start(self, grid: tuple[int, int, int], threads: int, fields: list) -> None:
        arguments = ctypes.addressof(self._pointers)
        sizes = self._function, *grid, threads, 1, 1, 0, 0, arguments
        with _one_launch:  # the driver copies the values before it returns
            self._layout.pack_into(self._values, 0, *fields)
            check(driver.cuLaunchCooperativeKernel(*sizes))


_launchers: dict[tuple, Launcher] = {}


def _prepare(
    mirror: Mirror, kernel: Callable, shape: Shape, team: tuple, args: tuple
) -> tuple[Launcher, list]:
    """Find or compile the launcher for a team and arguments; also returns the flattened argument values."""
    fields: list = []
    type_key: list = [kernel, shape, type(team)]
    for value in team:
        mirror.flatten(value, fields, type_key)
    last = mirror.calls.get(kernel)
    if last is None or not same((shape, type(team), args), last[:3]):
        own_fields: list = []
        for value in args:
            mirror.flatten(value, own_fields, type_key)
        key = tuple(type_key)
        if key not in _launchers:
            compiled = _load_or_compile(kernel, shape, (team, *args))
            _launchers[key] = Launcher(compiled, shape, fields + own_fields)
        last = mirror.calls[kernel] = Call(shape, type(team), args, _launchers[key], own_fields)
    return last.launcher, fields + last.fields


class Call(NamedTuple):
    """Last launch of a kernel: configuration, team and arguments."""

    shape: Shape
    team: type
    args: tuple
    launcher: Launcher
    fields: list


def _load_or_compile(kernel: Callable, shape: Shape, args: tuple) -> Any:
    dispatcher = _dispatcher(kernel, shape.registers)
    signature = tuple(_numba_type(value) for value in args)
    cached = dispatcher._cache.load_overload(signature, dispatcher.targetctx)
    if cached is not None:
        cached.bind()
        return cached
    with event.trigger_event("numba:compile", {"dispatcher": kernel}):
        return dispatcher.compile(signature)


def _numba_type(value: Any) -> Any:
    """Numba type of an argument."""
    if isinstance(value, np.ndarray):
        return types.Array(from_dtype(value.dtype), value.ndim, "C")
    if isinstance(value, tuple):
        return types.BaseTuple.from_types(
            [_numba_type(item) for item in value], type(value) if hasattr(value, "_fields") else None
        )
    return types.int64 if isinstance(value, Integral) else types.float64


@cache
def _dispatcher(kernel: Callable, registers: int) -> Any:
    """CUDA version of a kernel, compiled from the same Python function and cached on disk if possible."""
    options: Any = {"fastmath": True, "max_registers": registers, "cache": can_cache()}
    with _cache_folder(f"cuda {registers}"):
        dispatcher = cuda.jit(kernel.py_func, **options)  # type: ignore[attr-defined]
    if can_cache():
        cache_in_files(dispatcher._cache, f"cuda {registers}")
    return dispatcher


@contextmanager
def _cache_folder(folder: str) -> Iterator[None]:
    """Context manager with a separate Numba cache folder: Numba's keys ignore the number of registers."""
    before, config.CACHE_DIR = config.CACHE_DIR, str(cache_directory() / folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before
