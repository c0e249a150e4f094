"""Who runs kernels: threads of this machine, or a device (`problem.cuda`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numba import types
from numba.extending import intrinsic

from supple.kernels.numbers import number_pointer
from supple.kernels.team import threads_for
from supple.kernels.threads import run


class Runner(Protocol):
    """What those ask for who have something found by kernels, wherever that is. far: whether what they see is
    not the memory of this machine."""

    far: bool

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        """Run a kernel of that many phases."""

    def pull(self, array: np.ndarray, first: int = 0, last: int | None = None) -> None:
        """Bring what kernels have written into an array, or into its rows first, ..., last - 1, to the
        host."""

    def push(self, array: np.ndarray, rows: int | None = None) -> None:
        """Let kernels see what the host has written into an array, or into its first rows."""

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Memory that is zero where kernels see it."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Memory for what kernels write, with anything in it."""


class Host:
    """Threads of this machine. Kernels work on the host's arrays themselves."""

    far: bool = False

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        run(kernel, self.threads, threads_for(phases), *args)

    def pull(self, array: np.ndarray, first: int = 0, last: int | None = None) -> None:
        """It is here."""

    def push(self, array: np.ndarray, rows: int | None = None) -> None:
        """Kernels see it."""

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)


HOST = Host()
"""One thread."""


def _indivisible(how: str) -> Any:
    """The code of counters[index] = how(counters[index], value) as one step; the value before."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = number_pointer(context, builder, sig.args[0], args[0], args[1])
        return builder.atomic_rmw(how, pointer, args[2], "monotonic")

    return codegen


@intrinsic
def count_up(typingctx, counters, index, amount):
    """counters[index] += amount, whole numbers, as one indivisible step, by threads of the CPU or a device;
    returns the value before. Nothing may depend on who comes first."""
    return types.int64(counters, types.int64, types.int64), _indivisible("add")


@intrinsic
def mark_bits(typingctx, counters, index, bits):
    """counters[index] |= bits, as `count_up`."""
    return types.int64(counters, types.int64, types.int64), _indivisible("or")


@intrinsic
def keep_least(typingctx, counters, index, value):
    """counters[index] = min(counters[index], value), as `count_up`."""
    return types.int64(counters, types.int64, types.int64), _indivisible("min")


@intrinsic
def keep_most(typingctx, counters, index, value):
    """counters[index] = max(counters[index], value), as `count_up`."""
    return types.int64(counters, types.int64, types.int64), _indivisible("max")
