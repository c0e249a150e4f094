"""CUDA: the same kernels as a grid of threads. Imported only when a device is asked for."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda still asks NumPy for a name that NumPy 2.5 has dropped
    setattr(np, "row_stack", np.vstack)  # noqa: B010

from llvmlite import ir
from numba import cuda, types
from numba.extending import intrinsic

from supple.kernels.compile import physics
from supple.kernels.pack import PackType
from supple.kernels.team import enter, leave, proceed

WARP = 32
"""Threads that exchange values directly; one warp does one item."""

BLOCK = 128
"""Threads per block."""


class Grid(NamedTuple):
    """All threads of a cooperative launch. A warp does one item at a time: 2^shift lanes of it, each shared
    by 32 / 2^shift threads."""

    shift: Any


@enter.of(Grid)
def _enter(team, phase, first, last):
    thread = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    inner = thread & (WARP - 1)
    width = 1 << team.shift
    return (
        types.int64(first + (thread >> 5)),
        types.int64(inner & (width - 1)),
        types.int64(inner >> team.shift),
        types.int64(WARP >> team.shift),
        types.int64(width),
    )


@proceed.of(Grid)
def _proceed(team, phase, place, first, last):
    warps = (cuda.gridDim.x * cuda.blockDim.x) >> 5
    return (place[0] + warps, place[1], place[2], place[3], place[4])


@leave.of(Grid)
def _leave(team, phase, first, last):
    cuda.cg.this_grid().sync()


@intrinsic
def _number_of(typingctx, pack):
    """The one number of a pack."""

    def codegen(context, builder, sig, args):
        return builder.extract_element(args[0], ir.IntType(32)(0))

    return pack.dtype(pack), codegen


@intrinsic
def _pack_with(typingctx, number):
    """A pack of one number."""

    def codegen(context, builder, sig, args):
        vector = ir.Constant(ir.VectorType(args[0].type, 1), ir.Undefined)
        return builder.insert_element(vector, args[0], ir.IntType(32)(0))

    return PackType(number, 1)(number), codegen


@physics
def _exchange(value, offset):
    """A pack plus that of the thread `offset` further on."""
    number = _number_of(value)
    return _pack_with(number + cuda.shfl_xor_sync(0xFFFFFFFF, number, offset))


@physics
def sum_one(place, v):
    """The sum of a pack over the threads that share a lane."""
    offset = WARP // 2
    while offset >= place[4]:
        v = (_exchange(v[0], offset),)
        offset >>= 1
    return v


@physics
def sum_nine(place, v):
    """The sums of nine packs, whose exchanges overlap."""
    offset = WARP // 2
    while offset >= place[4]:
        v = (
            _exchange(v[0], offset),
            _exchange(v[1], offset),
            _exchange(v[2], offset),
            _exchange(v[3], offset),
            _exchange(v[4], offset),
            _exchange(v[5], offset),
            _exchange(v[6], offset),
            _exchange(v[7], offset),
            _exchange(v[8], offset),
        )
        offset >>= 1
    return v


@physics
def least_over_parts(place, pack):
    """The least of a pack over the threads that share a lane."""
    value = _number_of(pack)
    offset = WARP // 2
    while offset >= place[4]:
        value = min(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, offset))
        offset >>= 1
    return _pack_with(value)


@cache
def _compiled(kernel: Callable) -> Any:
    """The CUDA version of a kernel, from the very same Python function."""
    return cuda.jit(kernel.py_func, fastmath=True)  # type: ignore[attr-defined]


class DeviceError(ValueError):
    """There is no usable CUDA device; the message says what to do."""


def require_device() -> str:
    """The name of the card."""
    if not find_spec("numba_cuda"):
        raise DeviceError("device='cuda' needs numba-cuda: pip install 'supple[cuda]'; or use device='cpu'")
    try:
        name = cuda.get_current_device().name
    except Exception as error:
        reason = " ".join(str(error).split())
        raise DeviceError(
            f"device='cuda' needs an NVIDIA card with its driver, and none answers here ({reason}); "
            "use device='cpu'"
        ) from error
    return name.decode() if isinstance(name, bytes) else str(name)


class Mirror:
    """Device copies of host arrays, found by identity and dropped with them."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """The same structure of tuples with every array replaced by its device copy."""
        if isinstance(value, np.ndarray):
            copy = self._copies.get(id(value))
            if copy is None:
                copy = self._copies[id(value)] = cuda.to_device(value)
                weakref.finalize(value, self._copies.pop, id(value), None)
            return copy
        if isinstance(value, tuple):
            items = [self.of(item) for item in value]
            return type(value)._make(items) if hasattr(value, "_fields") else tuple(items)  # type: ignore[attr-defined]
        return value

    def pull(self, array: np.ndarray) -> None:
        if id(array) in self._copies:
            self._copies[id(array)].copy_to_host(array)

    def push(self, array: np.ndarray) -> None:
        if id(array) in self._copies:
            self._copies[id(array)].copy_to_device(array)

    def assign(self, target: np.ndarray, source: np.ndarray) -> None:
        self.of(target).copy_to_device(self.of(source))


def launch(kernel: Callable, width: int, *args: Any) -> None:
    """Run a kernel on as many blocks as can be on the device at once, one warp per item."""
    compiled = _compiled(kernel)
    team = Grid(width.bit_length() - 1)
    arguments = (team, *args)
    specialised = compiled.specialize(*arguments) if hasattr(compiled, "specialize") else compiled
    blocks = _most_blocks(specialised)
    specialised[blocks, BLOCK](*arguments)


@cache
def _most_blocks(specialised: Any) -> int:
    definition = next(iter(specialised.overloads.values()))
    return int(definition.max_cooperative_grid_blocks(BLOCK))


REDUCE_BLOCKS = 128


@cache
def _reduction() -> Any:
    """A kernel that sums columns of squares and finds maxima in a fixed order, in float64."""

    @cuda.jit
    def reduce(net, sizes, softness, u, out):
        shared = cuda.shared.array((BLOCK, 5), types.float64)
        t = cuda.threadIdx.x
        r2, s2, a2, length, ratio = 0.0, 0.0, 0.0, 0.0, 0.0
        step = cuda.gridDim.x * cuda.blockDim.x
        i = cuda.blockIdx.x * cuda.blockDim.x + t
        while i < net.shape[0] - 1:
            for axis in range(3):
                r2 += types.float64(net[i, axis]) * net[i, axis]
                length = max(length, abs(types.float64(u[i, axis])))
            i += step
        lanes = sizes.shape[2]
        i = cuda.blockIdx.x * cuda.blockDim.x + t
        while i < sizes.shape[0] * lanes:
            s, a = (
                types.float64(sizes[i // lanes, 0, i % lanes]),
                types.float64(sizes[i // lanes, 1, i % lanes]),
            )
            s2 += s * s
            a2 += a * a
            ratio = max(ratio, s * softness[i // lanes, i % lanes])
            i += step
        shared[t, 0], shared[t, 1], shared[t, 2], shared[t, 3], shared[t, 4] = r2, s2, a2, length, ratio
        half = BLOCK // 2
        while half > 0:
            cuda.syncthreads()
            if t < half:
                for k in range(3):
                    shared[t, k] += shared[t + half, k]
                for k in range(3, 5):
                    shared[t, k] = max(shared[t, k], shared[t + half, k])
            half //= 2
        if t == 0:
            for k in range(5):
                out[cuda.blockIdx.x, k] = shared[0, k]

    return reduce


def measure(net: Any, sizes: Any, softness: Any, u: Any) -> tuple[float, float, float, float, float]:
    """(Σ|r|², Σs², Σ(tr A)², max|u|, max s·softness) from device arrays: net forces (n + 1, 4), s and tr A
    (batches, 2, lanes), and displacements (n + 1, 4)."""
    out = cuda.device_array((REDUCE_BLOCKS, 5), np.float64)
    _reduction()[REDUCE_BLOCKS, BLOCK](net, sizes, softness, u, out)
    rows = out.copy_to_host()
    return (*rows[:, :3].sum(axis=0), *rows[:, 3:].max(axis=0))
