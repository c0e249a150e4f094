"""CUDA: the same kernels as a grid of threads. Imported only when a device is asked for."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from functools import cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda still asks NumPy for a name that NumPy 2.5 has dropped
    setattr(np, "row_stack", np.vstack)  # noqa: B010

from cuda.bindings import driver
from cuda.core import LaunchConfig
from cuda.core import launch as start
from llvmlite import ir
from numba import cuda, types
from numba.extending import intrinsic

from supple.kernels.access import WARP, Place
from supple.kernels.compile import physics
from supple.kernels.device import DeviceError
from supple.kernels.pack import PackType
from supple.kernels.team import enter, leave, proceed, records, records_at_once


class Grid(NamedTuple):
    """All threads of a cooperative launch. A warp does one item at a time: 2^shift lanes of it, each shared
    by 32 / 2^shift threads. active (k,): the copies of the state to work on, which the rows of a
    two-dimensional grid divide among them; records: how many each copy has; arrivals (1,): how often a block
    has arrived at the end of a phase, of all launches, modulo 2³²; before: that number when this launch
    starts."""

    shift: Any
    active: Any
    records: Any
    arrivals: Any
    before: Any


@enter.of(Grid)
def _enter(team, phase, first, last):
    inner = cuda.threadIdx.x & (WARP - 1)
    width = 1 << team.shift
    copy = types.int64(team.active[cuda.blockIdx.y])
    return Place(
        types.int64(first + ((cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) >> 5)),
        types.int64(inner & (width - 1)),
        types.int64(inner >> team.shift),
        types.int64(width),
        types.int64(cuda.blockIdx.y),
        copy,
        copy * team.records,
    )


@proceed.of(Grid)
def _proceed(team, phase, place, first, last):
    number = place.number + ((cuda.gridDim.x * cuda.blockDim.x) >> 5)
    slot, copy = place.slot, place.copy
    if number >= last and slot + cuda.gridDim.y < len(team.active):
        slot += cuda.gridDim.y
        copy = types.int64(team.active[slot])
        number = types.int64(first + ((cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) >> 5))
    return Place(number, place.lane, place.part, place.width, slot, copy, copy * team.records)


@intrinsic
def _arrive(typingctx, counter):
    """Add one to a counter, after which all that this block has written before can be seen."""

    def codegen(context, builder, sig, args):
        pointer = context.make_array(counter)(context, builder, args[0]).data
        kind = ir.FunctionType(ir.VoidType(), [pointer.type])
        asm = ir.InlineAsm(kind, "red.release.gpu.global.add.u32 [$0], 1;", "l,~{memory}", side_effect=True)
        builder.call(asm, [pointer])
        return context.get_dummy_value()

    return types.void(counter), codegen


@intrinsic
def _arrived(typingctx, counter):
    """The counter now; what blocks wrote before they added to it can be seen."""

    def codegen(context, builder, sig, args):
        pointer = context.make_array(counter)(context, builder, args[0]).data
        kind = ir.FunctionType(ir.IntType(32), [pointer.type])
        asm = ir.InlineAsm(kind, "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}", side_effect=True)
        return builder.call(asm, [pointer])

    return types.uint32(counter), codegen


@records.of(Grid)
def _records(team, array):
    return team.records


@records_at_once.of(Grid)
def _records_at_once(team):
    return WARP


@leave.of(Grid)
def _leave(team, phase, first, last):
    """Wait for all blocks. Cheaper than cooperative groups' sync of the grid."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        blocks = cuda.gridDim.x * cuda.gridDim.y
        target = types.uint32(team.before + (phase + 1) * blocks)
        _arrive(team.arrivals)
        while types.int32(types.uint32(_arrived(team.arrivals) - target)) < 0:
            pass
    cuda.syncthreads()


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
    while offset >= place.width:
        v = (_exchange(v[0], offset),)
        offset >>= 1
    return v


@physics
def sum_nine(place, v):
    """The sums of nine packs, whose exchanges overlap."""
    offset = WARP // 2
    while offset >= place.width:
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
def sum_over_warp(value):
    """The sum of a number over all threads of a warp, the same in each."""
    offset = WARP // 2
    while offset > 0:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, offset)
        offset >>= 1
    return value


@physics
def least_over_parts(place, pack):
    """The least of a pack over the threads that share a lane."""
    value = _number_of(pack)
    offset = WARP // 2
    while offset >= place.width:
        value = min(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, offset))
        offset >>= 1
    return _pack_with(value)


def require_device() -> str:
    """The name of the card."""
    try:
        name = cuda.get_current_device().name
    except Exception as error:
        reason = " ".join(str(error).split())
        raise DeviceError(
            f"device='cuda' needs an NVIDIA card with its driver, and none answers here ({reason}); "
            "use device='cpu'"
        ) from error
    return name.decode() if isinstance(name, bytes) else str(name)


@cache
def multiprocessors() -> int:
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def synchronise() -> None:
    """Wait for all that has been started on the device."""
    _check(driver.cuCtxSynchronize())


def free_memory() -> int:
    """Bytes that can still be allocated on the device."""
    cuda.current_context().deallocations.clear()  # Numba delays what has been freed
    return int(cuda.current_context().get_memory_info()[0])


def _check(answer: tuple) -> None:
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(_lost(answer[0].name))


def _lost(reason: str) -> str:
    return (
        f"the CUDA device stopped answering ({reason}); nothing of this solve was kept. Start a new Python "
        "process, or use device='cpu'"
    )


KNOWN_TUPLES = 24
"""How many tuples of arguments are remembered; a launch has fewer than ten."""


def _to_device(array: np.ndarray) -> Any:
    try:
        return cuda.to_device(np.ascontiguousarray(array))
    except Exception as error:
        if "OUT_OF_MEMORY" not in str(error).upper():
            raise DeviceError(_lost(" ".join(str(error).split()))) from error
        raise DeviceError(
            f"the CUDA device has no room for another {array.nbytes / 2**20:,.0f} MiB "
            f"({free_memory() / 2**20:,.0f} MiB are free); use precision='float32', a smaller mesh, fewer "
            "equilibria at_once, or device='cpu'"
        ) from error


POINTER = 4
"""The address of an array among the fields by which kernels are given it."""


class Mirror:
    """Device copies of host arrays, found by identity and dropped with them."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[Any, list]] = {}
        self._tuples: dict[int, tuple[tuple, list, list]] = {}

    def of(self, array: np.ndarray) -> Any:
        """The device copy of a host array."""
        return self._entry(array)[0]

    def _entry(self, array: np.ndarray) -> tuple[Any, list]:
        entry = self._copies.get(id(array))
        if entry is None:
            copy = _to_device(array)
            pointer = copy.device_ctypes_pointer.value
            fields = [0, 0, copy.size, array.itemsize, pointer, *copy.shape, *copy.strides]
            entry = self._copies[id(array)] = copy, fields
            weakref.finalize(array, self._copies.pop, id(array), None)
        return entry

    def pull(self, array: np.ndarray) -> None:
        if id(array) in self._copies:
            _check(driver.cuMemcpyDtoH(array.ctypes.data, self._entry(array)[1][POINTER], array.nbytes))

    def push(self, array: np.ndarray) -> None:
        if id(array) in self._copies:
            _check(driver.cuMemcpyHtoD(self._entry(array)[1][POINTER], array.ctypes.data, array.nbytes))

    def assign(self, target: np.ndarray, source: np.ndarray, first: int, last: int) -> None:
        """target[first:last] = source[first:last] on the device."""
        row = source.strides[0]
        pointers = (self._entry(array)[1][POINTER] + first * row for array in (target, source))
        _check(driver.cuMemcpyDtoDAsync(*pointers, (last - first) * row, 0))

    def duplicate(self, array: np.ndarray, first: int, last: int) -> Any:
        """A further copy on the device of some rows, of which the mirror knows nothing."""
        made = _to_device(array[first:last])
        source = self._entry(array)[1][POINTER] + first * array.strides[0]
        _check(driver.cuMemcpyDtoD(made.device_ctypes_pointer.value, source, array[first:last].nbytes))
        return made

    def on_device(self, value: Any) -> Any:
        """The same structure of tuples with every array replaced by its device copy."""
        if isinstance(value, np.ndarray):
            return self.of(value)
        if isinstance(value, tuple):
            items = [self.on_device(item) for item in value]
            return type(value)._make(items) if hasattr(value, "_fields") else tuple(items)  # type: ignore[attr-defined]
        return int(value) if isinstance(value, Integral) else float(value)

    def flatten(self, value: Any, fields: list, kinds: list) -> None:
        """Append what a kernel is given for a value, and what its compilation depends on."""
        if isinstance(value, np.ndarray):
            fields += self._entry(value)[1]
            kinds += (value.dtype, value.ndim)
        elif isinstance(value, tuple):
            known = self._tuples.get(id(value))
            if known is None or known[0] is not value:
                known = self._tuples[id(value)] = value, [], [type(value)]
                for item in value:
                    self.flatten(item, known[1], known[2])
                if len(self._tuples) > KNOWN_TUPLES:
                    self._tuples.pop(next(iter(self._tuples)))
            fields += known[1]
            kinds += (*known[2], None)
        else:
            whole = isinstance(value, Integral)
            fields.append(ctypes.c_int64(int(value)) if whole else ctypes.c_double(float(value)))
            kinds.append(int if whole else float)


class Shape(NamedTuple):
    """registers per thread and threads per block that a kernel is compiled and launched with: one block then
    fills a multiprocessor, and all blocks meet sooner the fewer they are."""

    registers: int
    threads: int


FAT, WIDE, SPACIOUS = Shape(168, 384), Shape(128, 512), Shape(248, 256)
"""For launches whose items all run at once, where each must be done soon; for larger ones; for float64."""


class Launcher(NamedTuple):
    """A kernel compiled for the types of its arguments, how many blocks of it can be on the device at once,
    and the threads of each."""

    kernel: Any
    blocks: int
    threads: int


_launchers: dict[tuple, Launcher] = {}


@cache
def _compiled(kernel: Callable, registers: int) -> Any:
    """The CUDA version of a kernel, from the very same Python function."""
    options: Any = {"fastmath": True, "max_registers": registers}
    return cuda.jit(kernel.py_func, **options)  # type: ignore[attr-defined]


class Arrivals:
    """Counts how often blocks have arrived at the end of a phase, on the device and here."""

    def __init__(self) -> None:
        self.counter = np.zeros(1, np.uint32)
        self.total = 0


def launch(
    mirror: Mirror, arrivals: Arrivals, kernel: Callable, phases: int, shape: Shape, grid: tuple, *args: Any
) -> None:
    """Run a kernel of that many phases on as many blocks as can be on the device at once, one warp per item;
    grid: the first three entries of `Grid`.

    Numba's own launch finds out the types of all arguments every time, which takes longer than a sweep.
    """
    fields: list = []
    kinds: list = [kernel, shape]
    shift, active, records_each = grid
    team = Grid(shift, active, records_each, arrivals.counter, arrivals.total % 2**32)
    for value in (*team, *args):
        mirror.flatten(value, fields, kinds)
    key = tuple(kinds)
    if key not in _launchers:
        specialised = _compiled(kernel, shape.registers).specialize(*mirror.on_device((team, *args)))
        definition = next(iter(specialised.overloads.values()))
        blocks = int(definition.max_cooperative_grid_blocks(shape.threads))
        _launchers[key] = Launcher(definition._codelibrary.get_cufunc().kernel, blocks, shape.threads)
    launcher = _launchers[key]
    rows = min(len(team.active), launcher.blocks)
    columns = launcher.blocks // rows
    _start(launcher, (columns, rows, 1), fields, cooperative=True)
    arrivals.total += phases * rows * columns


def _start(launcher: Launcher, grid: tuple[int, int, int], fields: list, cooperative: bool) -> None:
    try:
        start(
            _default_stream(), _configuration(grid, launcher.threads, cooperative), launcher.kernel, *fields
        )
    except Exception as error:
        raise DeviceError(_lost(" ".join(str(error).split()))) from error


@cache
def _configuration(grid: tuple[int, int, int], threads: int, cooperative: bool) -> Any:
    return LaunchConfig(grid=grid, block=(threads, 1, 1), is_cooperative=cooperative)


@cache
def _default_stream() -> Any:
    from numba.cuda.cudadrv import driver as numba_driver

    return numba_driver._to_core_stream(0)  # type: ignore[attr-defined]


REDUCE_BLOCKS, REDUCE_THREADS = 32, 256
"""Blocks that sum up one copy of the state, each a part; and threads of each."""


@cache
def _reduction() -> Any:
    """A kernel that sums columns of squares and finds maxima in a fixed order, in float64."""

    @cuda.jit
    def reduce(active, net, sizes, softness, u, out):
        shared = cuda.shared.array((REDUCE_THREADS, 5), types.float64)
        t, copy = cuda.threadIdx.x, active[cuda.blockIdx.y]
        r2, s2, a2, length, ratio = 0.0, 0.0, 0.0, 0.0, 0.0
        step = cuda.gridDim.x * cuda.blockDim.x
        i = cuda.blockIdx.x * cuda.blockDim.x + t
        count = net.shape[0] // sizes.shape[0]
        first = copy * count
        while i < count - 1:
            for axis in range(3):
                r2 += types.float64(net[first + i, axis]) * net[first + i, axis]
                length = max(length, abs(types.float64(u[first + i, axis])))
            i += step
        lanes = sizes.shape[3]
        i = cuda.blockIdx.x * cuda.blockDim.x + t
        while i < sizes.shape[1] * lanes:
            s = types.float64(sizes[copy, i // lanes, 0, i % lanes])
            a = types.float64(sizes[copy, i // lanes, 1, i % lanes])
            s2 += s * s
            a2 += a * a
            ratio = max(ratio, s * softness[copy, i // lanes, i % lanes])
            i += step
        shared[t, 0], shared[t, 1], shared[t, 2], shared[t, 3], shared[t, 4] = r2, s2, a2, length, ratio
        half = REDUCE_THREADS // 2
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
                out[copy, cuda.blockIdx.x, k] = shared[0, k]

    return reduce


@cache
def _summation() -> Any:
    """A kernel that sums the numbers of each copy in a fixed order, in float64."""

    @cuda.jit
    def add_up(active, values, out):
        shared = cuda.shared.array(REDUCE_THREADS, types.float64)
        t, copy = cuda.threadIdx.x, active[cuda.blockIdx.y]
        total = 0.0
        lanes = values.shape[3]
        i = cuda.blockIdx.x * cuda.blockDim.x + t
        while i < values.shape[1] * lanes:
            total += types.float64(values[copy, i // lanes, 0, i % lanes])
            i += cuda.gridDim.x * cuda.blockDim.x
        shared[t] = total
        half = REDUCE_THREADS // 2
        while half > 0:
            cuda.syncthreads()
            if t < half:
                shared[t] += shared[t + half]
            half //= 2
        if t == 0:
            out[copy, cuda.blockIdx.x] = shared[0]

    return add_up


def sums(mirror: Mirror, active: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(copies,) sums of values (copies, rows, 1, lanes) of the active copies."""
    out = np.zeros((len(values), REDUCE_BLOCKS))
    _reduce(_summation(), mirror, active, values, out)
    return out.sum(axis=1)


def measure(mirror: Mirror, active: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    """(copies, 5): Σ|r|², Σs², Σ(tr A)², max|u| and max s·softness of the active copies. arrays: net forces
    (copies (n + 1), 4), s and tr A (copies, batches, 2, lanes), softness (copies, batches, lanes),
    displacements (copies (n + 1), 4), and memory for the result (copies, REDUCE_BLOCKS, 5) in float64."""
    _reduce(_reduction(), mirror, active, *arrays)
    out = arrays[-1]
    return np.concatenate([out[:, :, :3].sum(axis=1), out[:, :, 3:].max(axis=1)], axis=1)


def _reduce(kernel: Any, mirror: Mirror, active: np.ndarray, *arrays: np.ndarray) -> None:
    """Run a reduction and bring its result, the last array, to the host."""
    fields: list = []
    kinds: list = [kernel]
    for value in (active, *arrays):
        mirror.flatten(value, fields, kinds)
    key = tuple(kinds)
    if key not in _launchers:
        specialised = kernel.specialize(*mirror.on_device((active, *arrays)))
        definition = next(iter(specialised.overloads.values()))
        handle = definition._codelibrary.get_cufunc().kernel
        _launchers[key] = Launcher(handle, REDUCE_BLOCKS, REDUCE_THREADS)
    _start(_launchers[key], (REDUCE_BLOCKS, len(active), 1), fields, cooperative=False)
    mirror.pull(arrays[-1])
