"""Kernel execution on CPU threads, interface shared with GPUs (`problem.cuda`), and atomic operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numba import types
from numba.extending import intrinsic

from supple.kernels.parallel.thread_pool import run
from supple.kernels.parallel.thread_team import threads_for
from supple.kernels.simd.scalars import number_pointer


class Runner(Protocol):
    """Interface of a device that runs kernels.

    Attributes:
        is_remote: True if device memory is separate from host memory.
    """

    is_remote: bool

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        """Run a kernel with the given number of phases."""

    def download(self, array: np.ndarray, first: int = 0, last: int | None = None) -> None:
        """Download an array, or its rows first to last - 1, from device memory."""

    def upload(self, array: np.ndarray, rows: int | None = None) -> None:
        """Upload an array, or its leading rows, to device memory."""

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Allocate an array of zeros in device memory."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Allocate an uninitialized array in device memory."""


class Host:
    """CPU threads; kernels work on host arrays directly."""

    is_remote: bool = False

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        run(kernel, self.threads, threads_for(phases), *args)

    def download(self, array: np.ndarray, first: int = 0, last: int | None = None) -> None:
        """No operation: host memory is device memory."""

    def upload(self, array: np.ndarray, rows: int | None = None) -> None:
        """No operation: host memory is device memory."""

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)


HOST = Host()
"""Host with one thread."""


def _atomic_operation(operation: str) -> Any:
    """Code generator of counters[index] = how(counters[index], value) as an atomic operation."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = number_pointer(context, builder, sig.args[0], args[0], args[1])
        return builder.atomic_rmw(operation, pointer, args[2], "monotonic")

    return codegen


@intrinsic
def atomic_add(typingctx, counters, index, amount):
    """Atomic counters[index] += amount for integers, on CPU or GPU; returns the previous value.

    The order of threads is undefined, so no result may depend on it.
    """
    return types.int64(counters, types.int64, types.int64), _atomic_operation("add")


@intrinsic
def atomic_or(typingctx, counters, index, bits):
    """Atomic counters[index] |= bits; returns the previous value."""
    return types.int64(counters, types.int64, types.int64), _atomic_operation("or")


@intrinsic
def atomic_min(typingctx, counters, index, value):
    """Atomic counters[index] = min(counters[index], value); returns the previous value."""
    return types.int64(counters, types.int64, types.int64), _atomic_operation("min")


@intrinsic
def atomic_max(typingctx, counters, index, value):
    """Atomic counters[index] = max(counters[index], value); returns the previous value."""
    return types.int64(counters, types.int64, types.int64), _atomic_operation("max")
